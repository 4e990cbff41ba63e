"""Simulated serving beside four recorded vLLM runs: throughput, first tokens and gaps, with the ratios.

    python benchmarks/served.py [--measured FOLDER] [--configs FOLDER]

The runs are those of casys-kaist/LLMServingSim, bench/examples/*/vllm (MIT): vLLM 0.19.0, bfloat16, 300
requests of ShareGPT lengths at 10 a second, decode rows mixed with prompts of at most 2,048 tokens a forward.
The same requests arrive here at the same times. A ratio is measured over simulated time: above 1 the
simulation is too fast.
"""

import argparse
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.arithmetic import kv_bytes_per_token
from engine.clock import VirtualClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.simulated import SimulatedExecutor
from engine.models.checkpoint import open_checkpoint
from engine.request import Request, SamplingParams
from engine.workload import random_ids
from ui.gpu_options import GpuOptions
from ui.simulating import SimulatedDevice, simulated_device

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
PAGE = 16
PCIE_GB_S = 64  # one way, 16 lanes of generation 5: what such cards have between them, before any loss
RESERVED = 0.01  # of the outputs to come, nearly nothing: vLLM admits what fits now, and preempts
VLLM_SHARE = 0.9  # gpu_memory_utilization; what its activations take is not known and not taken off
LLAMA, QWEN = "meta-llama--Meta-Llama-3.1-8B", "Qwen--Qwen3-32B"


@dataclass(frozen=True, slots=True)
class Served:
    """One recorded run; its files begin with `name`."""

    name: str
    config: str
    gpu: str
    running: int
    tp: int = 1
    kv_tokens: int | None = None  # where the source tells it


RUNS = (
    Served("llmservingsim_RTX4090_Llama-3.1-8B", LLAMA, "RTX 4090", 256, kv_tokens=41_408),
    Served("llmservingsim_RTXPRO6000_Llama-3.1-8B", LLAMA, "RTX PRO 6000", 128),
    Served("llmservingsim_RTXPRO6000_Qwen3-32B", QWEN, "RTX PRO 6000", 128, tp=2),
)
NOT_SERVED = "llmservingsim_RTXPRO6000_Qwen3-30B-A3B is left out: a mixture of experts"


@dataclass(frozen=True, slots=True)
class Felt:
    """Seconds: all requests together, to the first token, and between tokens of a request on average."""

    span_s: float
    first_p50_s: float
    first_max_s: float
    between_mean_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measured", type=Path, default=CORPUS / "measured")
    parser.add_argument("--configs", type=Path, default=CORPUS / "configs")
    options = parser.parse_args()
    print(NOT_SERVED)
    heads = ("all requests", "first p50", "first max", "between")
    print(f"{'':46}" + "".join(f"{head:>14}" for head in heads))
    for run in RUNS:
        path = options.measured / f"{run.name}_requests.jsonl"
        if not path.is_file():
            print(f"{run.name}: no file {path}: give --measured")
            continue
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        measured, ours = as_measured(rows), simulated(run, rows, options.configs)
        told = (("simulated", ours), ("measured", measured))
        for label, felt in told:
            print(f"{run.name if felt is ours else '':34}{label:>12}" + cells(felt, " s"))
        ratio = Felt(*(getattr(measured, key) / getattr(ours, key) for key in Felt.__slots__))
        print(f"{'':34}{'ratio':>12}" + cells(ratio, "  "))


def cells(felt: Felt, unit: str) -> str:
    values = (felt.span_s, felt.first_p50_s, felt.first_max_s, felt.between_mean_s)
    return "".join(f"{value:>12.4g}{unit}" for value in values)


def as_measured(rows: list[dict[str, float]]) -> Felt:
    firsts = [row["first_token_ts"] - row["queued_ts"] for row in rows]
    between = [
        (row["last_token_ts"] - row["first_token_ts"]) / (row["output_toks"] - 1)
        for row in rows
        if row["output_toks"] > 1
    ]
    span = max(row["last_token_ts"] for row in rows) - min(row["queued_ts"] for row in rows)
    return Felt(span, median(firsts), max(firsts), mean(between))


def simulated(run: Served, rows: list[dict[str, float]], configs: Path) -> Felt:
    """The same requests on the simulated GPU, mixed in chunks of 2,048 tokens."""
    checkpoint = open_checkpoint(configs / f"{run.config}.config.json", "dummy")
    device = simulated_device(
        checkpoint, GpuOptions(gpu=run.gpu, tp=run.tp, link_bandwidth=PCIE_GB_S), "bfloat16"
    )
    config = EngineConfig(
        chunked_prefill_size=2048,
        enable_mixed_chunk=True,
        max_running_requests=run.running,
        page_size=PAGE,
        schedule_conservativeness=RESERVED,
    )
    config = replace(device.resolve(config), max_total_tokens=run.kv_tokens or vllm_pool(device))
    clock = VirtualClock()
    executor = SimulatedExecutor(device.cost_model(), clock, checkpoint.shape.vocab_size)
    requests = [request(i, row, min(r["queued_ts"] for r in rows)) for i, row in enumerate(rows)]
    Engine(config, executor, clock=clock).run(requests)
    firsts = [(r.first_token_ns - r.arrival_ns) / 1e9 for r in requests if r.first_token_ns is not None]
    between = [
        (r.finish_ns - r.first_token_ns) / (r.output_len - 1) / 1e9
        for r in requests
        if r.first_token_ns is not None and r.finish_ns is not None and r.output_len > 1
    ]
    return Felt(clock.now_ns() / 1e9, median(firsts), max(firsts), mean(between))


def vllm_pool(device: SimulatedDevice) -> int:
    """Tokens in whole pages that fit in vLLM's default share of the memory beside the weights."""
    free = VLLM_SHARE * device.peaks.memory_bytes - device.shard.num_params * device.element_bytes
    return int(free // kv_bytes_per_token(device.shard, device.element_bytes)) // PAGE * PAGE


def request(rid: int, row: dict[str, float], first_s: float) -> Request:
    sampling = SamplingParams(int(row["output_toks"]))
    prompt = random_ids(int(row["input_toks"]), 32_000, 0, rid)
    return Request(rid, f"r{rid}", prompt, sampling, round((row["queued_ts"] - first_s) * 1e9))


if __name__ == "__main__":
    main()
