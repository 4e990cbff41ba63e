"""Advice on published models, whose shapes and workload are large, simulated on an H200: a rerun keeps it."""

from array import array
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.models.checkpoint import open_checkpoint
from engine.request import Request, SamplingParams
from profiler.advice import advise
from profiler.latency import latency
from profiler.price_list import with_options
from profiler.price_rows import Limits, Options
from traces.reader import Trace, open_trace
from ui.gpu_options import GpuOptions
from ui.simulating import SimulatedDevice, SimulatedSession, simulated_device

CONFIGS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "configs"
MODELS = {"meta-llama--Meta-Llama-3.1-8B.config.json": 1, "meta-llama--Meta-Llama-3.1-70B.config.json": 4}
CHUNK = 2048

pytestmark = pytest.mark.skipif(not CONFIGS.is_dir(), reason=f"no corpus at {CONFIGS}")


def workload() -> list[Request]:
    """A stream of decodes, and prompts of 32K and 12K tokens into it."""
    decodes = [request(i, f"d{i}", 200, 40, 0.05 * i) for i in range(8)]
    return [*decodes, request(8, "long", 32_768, 8, 0.2), request(9, "longish", 12_288, 8, 0.3)]


def request(rid: int, name: str, prompt: int, output: int, arrival_s: float) -> Request:
    tokens = array("i", [rid * 1_000 + i % 1_000 for i in range(prompt)])
    return Request(rid, name, tokens, SamplingParams(output, ignore_eos=True), round(arrival_s * 1e9))


def record(device: SimulatedDevice, config: EngineConfig, path: Path) -> Trace:
    SimulatedSession(device, config).record_run(workload(), path, workload={})
    return open_trace(path)


@pytest.mark.parametrize(("config", "tp"), MODELS.items())
def test_what_is_recommended_keeps_the_limits_when_run_again(config: str, tp: int, tmp_path: Path) -> None:
    gpu = GpuOptions(gpu="H200", tp=tp)
    device = simulated_device(open_checkpoint(CONFIGS / config, "dummy"), gpu, "auto")
    base = EngineConfig(chunked_prefill_size=8192, page_size=16)
    advice = advise(record(device, base, tmp_path / "t.chunkscope"), chunks=(CHUNK,))
    assert advice.basis.model is None
    mixed = next(row for row in advice.rows if row.options == Options(CHUNK, mixed=True))
    interval = next(row for row in advice.rows if row.options == Options(CHUNK, interval=1))
    assert mixed.longest_wait_s is not None
    assert interval.longest_wait_s is not None
    assert mixed.ttft_p99_s is not None
    limits = Limits((mixed.longest_wait_s + interval.longest_wait_s) / 2, None, 1.01 * mixed.ttft_p99_s)
    chosen = advice.choose(limits).row
    assert chosen == mixed  # no other option keeps the limit on waits
    felt = latency(record(device, with_options(base, chosen.options), tmp_path / "again.chunkscope"))
    assert felt.itl.max == pytest.approx(mixed.longest_wait_s, abs=1e-9)
    assert felt.ttft.p99 == pytest.approx(mixed.ttft_p99_s, abs=1e-9)
    assert felt.itl.max is not None
    assert felt.itl.max <= (limits.itl_max_s or 0.0)
    (binding,) = advice.choose(Limits(itl_max_s=1e-3)).bindings
    assert binding.limit == "itl_max_s"
    assert (binding.best.decode_forward_s or 0.0) > 1e-3
