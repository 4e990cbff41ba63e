"""Simulated runs: the wall of a 32K prompt by policy, what simulating costs, and the start of a real record.

    python benchmarks/simulated.py [--model CONFIG.json] [--gpu H200] [--azure FILE.csv] [--profile-speed]

Six requests decode when a prompt of 32,768 tokens comes: whole, in chunks of 8,192 and 2,048 tokens, and
with decode rows mixed into them. The parts of its forwards are printed with what they are made of, so that a
hand calculator can follow. Then 16 requests decode with recording on, which should reach 3,000 forwards a
second, and the first 1,000 requests of Azure's conversation record run through.
"""

import argparse
import cProfile
import pstats
import sys
import tempfile
import time
from array import array
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.arithmetic import ForwardSums
from engine.config import CHUNKING_OFF, EngineConfig
from engine.models.checkpoint import open_checkpoint
from engine.observer import ForwardRecord
from engine.request import Request, SamplingParams
from engine.workload import load_workload
from profiler.cost import OPERATORS
from profiler.cost_table import EFFICIENCIES
from profiler.summary import summarize
from traces.reader import open_trace
from ui.gpu_options import GpuOptions
from ui.simulating import SimulatedDevice, SimulatedSession, simulated_device

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
MODEL = CORPUS / "configs" / "meta-llama--Meta-Llama-3.1-8B.config.json"
AZURE = CORPUS / "workloads" / "AzureLLMInferenceTrace_conv.csv"
DECODERS, LONG_TOKENS, ARRIVAL_S = 6, 32_768, 0.5
CHUNK = 8_192  # whose forwards are taken apart
WANTED_FORWARDS_PER_S = 3_000
SPEED_ROWS, SPEED_STEPS, SPEED_ROUNDS = 16, 3_000, 5
AZURE_REQUESTS = 1_000


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to run the long prompt."""

    name: str
    config: EngineConfig


# The budget of a prefill forward must not cut what is to be whole.
POLICIES = (
    Policy("whole", EngineConfig(chunked_prefill_size=CHUNKING_OFF, max_prefill_tokens=2 * LONG_TOKENS)),
    Policy("chunked 8192", EngineConfig(chunked_prefill_size=8192)),
    Policy("chunked 2048", EngineConfig(chunked_prefill_size=2048)),
    Policy("mixed 8192", EngineConfig(chunked_prefill_size=8192, enable_mixed_chunk=True)),
    Policy("mixed 2048", EngineConfig(chunked_prefill_size=2048, enable_mixed_chunk=True)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=MODEL, help="a config.json")
    parser.add_argument("--gpu", default="H200")
    parser.add_argument("--azure", type=Path, default=AZURE, help="Azure's conversation record")
    parser.add_argument("--profile-speed", action="store_true", help="print what dominates the simulation")
    options = parser.parse_args()
    device = simulated_device(open_checkpoint(options.model, "dummy"), GpuOptions(gpu=options.gpu), "auto")
    with tempfile.TemporaryDirectory() as folder:
        picture(device, Path(folder))
        by_hand(device)
        speed(device, Path(folder), profile=options.profile_speed)
        azure(device, options.azure, Path(folder))


def picture(device: SimulatedDevice, folder: Path) -> None:
    """The longest gap between tokens and the long prompt's first token, by policy."""
    session = SimulatedSession(device, POLICIES[1].config)
    print("\n".join(session.assumptions()))
    print(f"\n{DECODERS} requests decode, a prompt of {LONG_TOKENS:,} tokens comes at {ARRIVAL_S} s")
    print(f"{'':14}{'longest gap':>14}{'p50 gap':>12}{'its first token':>18}{'longest forward':>18}")
    for policy in POLICIES:
        longest_ns = 0

        def note(record: ForwardRecord) -> None:
            nonlocal longest_ns
            longest_ns = max(longest_ns, record.result.end_ns - record.result.start_ns)

        path = folder / f"{policy.name.replace(' ', '-')}.chunkscope"
        SimulatedSession(device, policy.config).record_run(
            workload(), path, workload={"benchmark": policy.name}, on_step=note
        )
        trace = open_trace(path)
        told = summarize(trace)
        (long,) = (r for r in trace.table("requests").to_pylist() if r["name"] == "long")
        first_ms = (long["first_token_ns"] - long["arrival_ns"]) / 1e6
        gap_ms, usual_ms = told["worst_stall"]["gap_s"] * 1e3, told["itl_s"]["p50"] * 1e3
        print(
            f"{policy.name:14}{gap_ms:>11,.1f} ms{usual_ms:>9,.2f} ms{first_ms:>15,.1f} ms"
            f"{longest_ns / 1e6:>15,.1f} ms"
        )


def workload() -> list[Request]:
    """Requests that decode for some seconds, and the long one last."""
    decoding = [
        Request(i, f"decode{i}", tokens(512, i), SamplingParams(600, ignore_eos=True))
        for i in range(DECODERS)
    ]
    once = SamplingParams(16, ignore_eos=True)
    return [*decoding, Request(DECODERS, "long", tokens(LONG_TOKENS, 99), once, round(ARRIVAL_S * 1e9))]


def tokens(count: int, seed: int) -> "array[int]":
    return array("i", [seed * 1_000 + i % 1_000 for i in range(count)])


def by_hand(device: SimulatedDevice) -> None:
    """The whole prompt's forward, operator by operator, and the chunks of 8,192 tokens."""
    shape, peaks, n = device.shard, device.peaks, LONG_TOKENS
    took = operators(device, 0, n, logits=1)
    gemm, prefix, causal, elementwise = (
        EFFICIENCIES[kind] for kind in ("GEMM", "ATTENTION_PREFIX", "ATTENTION_CAUSAL", "ELEMENTWISE")
    )
    layers, q, peak = shape.num_layers, shape.q_size, f"{peaks.flops_per_s:.4g}"
    moved = f"{took['ELEMENTWISE'] * elementwise.memory * peaks.bytes_per_s:.4g}"
    gemms_s = sum(took[name] for name in ("QKV", "O", "GATE_UP", "DOWN"))
    lines = (
        ("GEMMs", gemms_s, f"2 x {n} x {layers} x {shape.layer_gemm_params} / ({gemm.compute} x {peak})"),
        (
            "triangle",
            took["ATTENTION_CAUSAL"],
            f"4 x {q} x {layers} x {n} x {n + 1} / 2 / ({causal.compute} x {peak})",
        ),
        ("head", took["HEAD"], f"{shape.vocab_size} x {shape.hidden_size} x {device.element_bytes} bytes"),
        ("element-wise", took["ELEMENTWISE"], f"{moved} bytes / ({elementwise.memory} x bandwidth)"),
        ("overhead", took["OVERHEAD"], f"{layers} layers and a forward"),
    )
    print(f"\nThe whole prompt's forward without others: {sum(took.values()) * 1e3:,.1f} ms")
    for name, seconds, text in lines:
        print(f"  {name:14}{seconds * 1e3:>10,.1f} ms  {text}")
    rectangle = f"4 x {q} x {layers} x prefix x {CHUNK} / ({prefix.compute} x {peak})"
    print(f"Its chunks of {CHUNK:,} tokens, with the rectangle {rectangle}")
    for at in range(0, n, CHUNK):
        took = operators(device, at, CHUNK, logits=at + CHUNK == n)
        total_ms, rectangle_ms = sum(took.values()) * 1e3, took["ATTENTION_PREFIX"] * 1e3
        print(f"  prefix {at:>6,}{total_ms:>11,.1f} ms, of which the rectangle {rectangle_ms:,.1f} ms")


def operators(device: SimulatedDevice, prefix: int, extend: int, *, logits: int) -> dict[str, float]:
    """Seconds of each operator of a forward with one prompt's chunk."""
    pairs = extend * (extend + 1) // 2
    sums = ForwardSums(extend, 0, int(logits), extend * prefix, pairs, 0, prefix, prefix + extend)
    return dict(zip(OPERATORS, device.cost_model().operator_seconds(sums), strict=True))


def speed(device: SimulatedDevice, folder: Path, *, profile: bool) -> None:
    """Forwards a second of 16 rows: planned, simulated and recorded."""
    for page_size in (1, 16):
        config = EngineConfig(page_size=page_size, max_total_tokens=200_000 // page_size * page_size)
        rates = [decode(device, config, folder / f"s{page_size}-{i}.chunkscope") for i in range(SPEED_ROUNDS)]
        wall, cpu = (median(column) for column in zip(*rates, strict=True))
        print(
            f"\n{SPEED_ROWS} rows, pages of {page_size}, recorded: {wall:,.0f} forwards/s by the clock, "
            f"{cpu:,.0f} by the CPU's time (median of {SPEED_ROUNDS}; wanted {WANTED_FORWARDS_PER_S:,})"
        )
    if profile:
        profiler = cProfile.Profile()
        profiler.enable()
        decode(device, replace(config, page_size=1), folder / "profiled.chunkscope")
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def decode(device: SimulatedDevice, config: EngineConfig, path: Path) -> tuple[float, float]:
    """Forwards per second of wall and of CPU time."""
    session = SimulatedSession(device, config)
    sampling = SamplingParams(SPEED_STEPS, ignore_eos=True)
    requests = [Request(i, f"r{i}", tokens(100 + i, i), sampling) for i in range(SPEED_ROWS)]
    steps: list[int] = []
    start, cpu_start = time.perf_counter(), time.process_time()
    session.record_run(requests, path, workload={}, on_step=lambda record: steps.append(0))
    return len(steps) / (time.perf_counter() - start), len(steps) / (time.process_time() - cpu_start)


def azure(device: SimulatedDevice, record: Path, folder: Path) -> None:
    """The first requests of the record, at the times it says."""
    if not record.is_file():
        print(f"\nNo record at {record}: give --azure")
        return
    shape = device.checkpoint.shape
    workload = load_workload(record, vocab_size=shape.vocab_size, limit=AZURE_REQUESTS)
    session = SimulatedSession(device, EngineConfig())
    session.check(workload.requests, workload.where)
    path = folder / "azure.chunkscope"
    start = time.perf_counter()
    session.record_run(workload.requests, path, workload={"path": str(record)})
    took = time.perf_counter() - start
    told = summarize(open_trace(path))
    print(
        f"\n{record.name}, first {told['requests']:,} requests: {told['forwards']:,} forwards in {took:.1f} s"
    )
    first, gap_s = told["ttft_s"], told["worst_stall"]["gap_s"]
    print(
        f"  first token p50 {first['p50'] * 1e3:,.0f} ms, p99 {first['p99'] * 1e3:,.0f} ms; "
        f"longest gap {gap_s * 1e3:,.0f} ms; ended: {told['requests_by_finish']}"
    )


if __name__ == "__main__":
    main()
