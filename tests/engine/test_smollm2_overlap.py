"""The real model gives the same tokens whether or not planning overlaps the forward before."""

from functools import cache

import numpy as np
import pytest

from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.device import DeviceExecutor
from engine.models.loader import LoadedModel, load_model
from engine.request import Request, SamplingParams
from engine.workload import random_ids
from tests.support.smollm2 import smollm2_path

SEEDS = [pytest.param(seed, marks=[] if seed < 2 else [pytest.mark.long]) for seed in range(20)]
POOL_TOKENS = 1024


@cache
def _model() -> LoadedModel:
    return load_model(smollm2_path(), device="cpu", dtype="float32")


def _config(rng: np.random.Generator, *, overlap: bool) -> EngineConfig:
    page_size = int(rng.choice([1, 4, 16]))
    return EngineConfig(
        chunked_prefill_size=page_size * int(rng.integers(16 // page_size, 64 // page_size + 1)),
        page_size=page_size,
        enable_mixed_chunk=bool(rng.integers(2)),
        disable_radix_cache=bool(rng.integers(2)),
        disable_overlap_schedule=not overlap,
        max_total_tokens=int(rng.choice([240, POOL_TOKENS])),  # the smaller one evicts, and retracts
        schedule_conservativeness=0.1,
    ).resolve(max_total_tokens=POOL_TOKENS, context_length=POOL_TOKENS)


def _requests(rng: np.random.Generator, vocab_size: int) -> list[tuple[int, Request]]:
    """Arrival rounds and requests; some are drawn at a temperature, some may stop early."""
    out = []
    for rid in range(int(rng.integers(3, 7))):
        sampling = SamplingParams(
            max_new_tokens=int(rng.integers(1, 14)),
            temperature=float(rng.choice([0.0, 0.0, 0.8])),
            seed=rid,
            stop_token_ids=frozenset(rng.integers(vocab_size, size=400).tolist()),
        )
        prompt = random_ids(int(rng.integers(1, 90)), vocab_size, 0, rid)
        out.append((int(rng.integers(0, 12)), Request(rid, f"r{rid}", prompt, sampling)))
    return out


def _outputs(seed: int, *, overlap: bool) -> list[list[int]]:
    loaded, rng, clock = _model(), np.random.default_rng(seed), MonotonicClock()
    config = _config(rng, overlap=overlap)
    executor = DeviceExecutor(loaded, config, clock)
    engine = Engine(config, executor, clock=clock, eos_token_ids=loaded.eos_token_ids)
    todo = _requests(rng, loaded.shape.vocab_size)
    round_ = 0
    while engine.has_work or round_ < 12:
        for arrival, request in todo:
            if arrival == round_:
                engine.submit(request)
        record = engine.step()
        assert record is None or record.overlapped <= overlap
        round_ += 1
    return [request.output_ids for _, request in todo]


@pytest.mark.parametrize("seed", SEEDS)
def test_overlap_changes_no_token(seed: int) -> None:
    outputs = _outputs(seed, overlap=True)
    assert outputs == _outputs(seed, overlap=False)
    assert all(outputs)
