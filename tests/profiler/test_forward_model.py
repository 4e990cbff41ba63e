"""A fitted model of forwards against forwards whose cost is known, and against traces that tell too little."""

import random
from dataclasses import asdict
from math import exp, log
from pathlib import Path
from typing import Any

import pytest

from engine.arithmetic import ForwardSums
from engine.batch import ForwardBatch
from engine.config import EngineConfig
from engine.peaks import Peaks
from engine.request import Request, SamplingParams
from profiler.cost import RooflineCost
from profiler.forward_model import ForwardModel, fit_forward_model
from tests.support.shapes import LLAMA_8B
from tests.support.simulated_trace import record_simulated
from traces.reader import Trace

H200 = Peaks("H200 SXM", "bfloat16", 989e12, 4.8e12, 141 * 2**30, link_bytes_per_s=450e9)
HARDWARE = {"device": "simulated", "name": "H200 SXM", "devices": 1, "peaks": asdict(H200)}
COST = RooflineCost(LLAMA_8B, H200, 2)


class Noisy:
    """The roofline with log-normal noise, and every 50th forward three times as long."""

    def __init__(self, noise: float) -> None:
        self._rng = random.Random(3)
        self._noise = noise

    def forward_ns(self, batch: ForwardBatch) -> int:
        factor = exp(self._rng.gauss(0, self._noise)) * (3 if self._rng.random() < 0.02 else 1)
        return round(COST.forward_ns(batch) * factor)


def requests(count: int = 40, seed: int = 0, longest: int = 12_000) -> list[Request]:
    rng = random.Random(seed)
    made, now = [], 0.0
    for rid in range(count):
        now += rng.expovariate(8.0)
        length = round(exp(rng.uniform(log(300), log(longest))))
        prompt = [rng.randrange(50_000)] * length
        sampling = SamplingParams(rng.randint(20, 150))
        made.append(Request(rid, f"r{rid}", prompt, sampling, round(now * 1e9)))
    return made


def run(path: Path, chunk: int, cost: Any = COST, **options: Any) -> Trace:
    config = EngineConfig(chunked_prefill_size=chunk, disable_radix_cache=True, **options)
    config = config.resolve(max_total_tokens=900_000, context_length=131_072)
    return record_simulated(path, requests(), config, cost, shape=LLAMA_8B, meta={"hardware": HARDWARE})


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    folder = tmp_path_factory.mktemp("simulated")
    return {
        "512": run(folder / "a.chunkscope", 512),
        "2048": run(folder / "b.chunkscope", 2048),
        "mixed": run(folder / "c.chunkscope", 512, enable_mixed_chunk=True),
    }


def extend(tokens: int, prefix: int = 0) -> ForwardSums:
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


def decode(rows: int, length: int) -> ForwardSums:
    return ForwardSums(0, rows, rows, 0, 0, rows * length, 0, rows * length)


def typical(model: ForwardModel, kind: str) -> float:
    return next(part.typical for part in model.residuals if part.kind == kind)


@pytest.mark.parametrize("name", ["512", "2048", "mixed"])
def test_simulated_forwards_are_told_again(traces: dict[str, Trace], name: str) -> None:
    model = fit_forward_model(traces[name])
    assert model.num_forwards > 300
    assert typical(model, "all") < 0.01
    assert all(part.typical < 0.03 for part in model.residuals)


def test_sizes_between_those_of_the_traces(traces: dict[str, Trace]) -> None:
    model = fit_forward_model([traces["512"], traces["2048"]])
    for prefix in (0, 3000, 10_000):
        for tokens in (600, 1000, 1500):
            sums = extend(tokens, prefix)
            assert model.seconds(sums) == pytest.approx(COST.seconds(sums), rel=0.04)
    for rows in (1, 3, 8):
        assert model.seconds(decode(rows, 4000)) == pytest.approx(COST.seconds(decode(rows, 4000)), rel=0.02)
