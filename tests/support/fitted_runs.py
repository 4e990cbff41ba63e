"""Runs of an 8B model on a simulated H200, for what is fitted to forwards whose cost is known."""

import random
from collections.abc import Sequence
from dataclasses import asdict
from math import exp, log
from pathlib import Path

from engine.arithmetic import ForwardSums
from engine.config import EngineConfig
from engine.executors.simulated import CostModel
from engine.peaks import Peaks
from engine.request import Request, SamplingParams
from engine.shapes import ModelShape
from profiler.cost import RooflineCost
from tests.support.shapes import LLAMA_8B
from tests.support.simulated_trace import record_simulated
from traces.reader import Trace

__all__ = ["COST", "H200", "HARDWARE", "decode_sums", "extend_sums", "record_8b"]

H200 = Peaks("H200 SXM", "bfloat16", 989e12, 4.8e12, 141 * 2**30, link_bytes_per_s=450e9)
HARDWARE = {"device": "simulated", "name": "H200 SXM", "devices": 1, "peaks": asdict(H200)}
COST = RooflineCost(LLAMA_8B, H200, 2)


def record_8b(
    path: Path,
    chunk: int,
    cost: CostModel = COST,
    *,
    shape: ModelShape = LLAMA_8B,
    peaks: Peaks = H200,
    **options: object,
) -> Trace:
    """A seeded workload of 28 requests. `peaks` are what meta tells, and options those of EngineConfig."""
    config = EngineConfig(chunked_prefill_size=chunk, disable_radix_cache=True, **options)  # type: ignore[arg-type]
    config = config.resolve(max_total_tokens=900_000, context_length=131_072)
    hardware = {**HARDWARE, "name": peaks.name, "peaks": asdict(peaks)}
    return record_simulated(path, _requests(), config, cost, shape=shape, meta={"hardware": hardware})


def extend_sums(tokens: int, prefix: int = 0) -> ForwardSums:
    """A prompt's last chunk."""
    return ForwardSums(
        extend_tokens=tokens,
        decode_tokens=0,
        rows_with_logits=1,
        pairs_prefix=tokens * prefix,
        pairs_causal=tokens * (tokens + 1) // 2,
        pairs_decode=0,
        prefix_tokens=prefix,
        kv_tokens=prefix + tokens,
    )


def decode_sums(rows: int, length: int) -> ForwardSums:
    """Decode rows of one length."""
    return ForwardSums(0, rows, rows, 0, 0, rows * length, 0, rows * length)


def _requests() -> Sequence[Request]:
    """Prompts of 300 to 12,000 tokens, even in their logarithm; eight arrive a second."""
    rng = random.Random(0)
    made, now_s = [], 0.0
    for rid in range(28):
        now_s += rng.expovariate(8.0)
        length = round(exp(rng.uniform(log(300), log(12_000))))
        prompt = [rng.randrange(50_000)] * length
        made.append(Request(rid, f"r{rid}", prompt, SamplingParams(rng.randint(20, 120)), round(now_s * 1e9)))
    return made
