"""What forwards need beside weights and KV: known envelopes, simulated runs, and what a memory holds."""

import random
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arithmetic import activation_estimate_bytes, kv_bytes_per_token
from engine.batch import ForwardMode
from engine.config import EngineConfig
from engine.errors import ConfigError
from profiler.gpu_memory import pool_tokens, reserved_bytes
from profiler.memory import BY_ACTIVATIONS, BY_RESERVE, memory_model
from profiler.memory_fit import fit_envelope
from tests.support.fitted_runs import H200, HARDWARE
from tests.support.shapes import LLAMA_8B
from tests.support.traces import MemoryTrace, forward, request

GIB = 2**30
CUDA = {"device": "cuda", "name": "NVIDIA H200"}
ENGINE = {"page_size": 16, "max_prefill_tokens": 4096, "chunked_prefill_size": 512}
WEIGHTS = LLAMA_8B.num_params * 2


def meta(**more: Any) -> dict[str, Any]:
    model = {**asdict(LLAMA_8B), "dtype": "bfloat16", "weight_bytes": WEIGHTS}
    return {"provenance": "measured", "model": model, "hardware": CUDA, "engine": ENGINE, **more}


def needing(
    at: int, tokens: int, activation_bytes: int | None, prefix_tokens: int = 0, decode_tokens: int = 0
) -> dict[str, Any]:
    """A forward that adds so much to what is held."""
    peak = None if activation_bytes is None else WEIGHTS + activation_bytes
    return forward(
        at,
        at * 1000,
        at * 1000 + 900,
        ForwardMode.EXTEND if tokens else ForwardMode.DECODE,
        extend_tokens=tokens,
        decode_tokens=decode_tokens,
        prefix_tokens=prefix_tokens,
        memory_allocated_bytes=WEIGHTS,
        memory_peak_bytes=peak,
        activation_est_bytes=activation_estimate_bytes(LLAMA_8B, tokens + decode_tokens, 1, 2),
    )


def trace_of(forwards: Sequence[dict[str, Any]], about: dict[str, Any] | None = None) -> MemoryTrace:
    requests = [
        request(0, prompt_tokens=1000, output_tokens=24, max_new_tokens=90),
        request(1, prompt_tokens=3000, output_tokens=200, max_new_tokens=200),
        request(2, prompt_tokens=100, output_tokens=None, max_new_tokens=50),
    ]
    return MemoryTrace({"forwards": forwards, "requests": requests}, about or meta())


def test_an_exact_law_is_found_again() -> None:
    def law(estimate: int, prefix: int) -> int:
        return 3_000_000 + round(1.25 * estimate) + 800 * prefix

    sizes = [(tokens, prefix) for tokens in (1, 60, 512, 900, 2048) for prefix in (0, 700, 4000)]
    estimates = {tokens: activation_estimate_bytes(LLAMA_8B, tokens, 1, 2) for tokens, _ in sizes}
    forwards = [
        needing(at, tokens, law(estimates[tokens], prefix), prefix)
        for at, (tokens, prefix) in enumerate(sizes)
    ]
    model = memory_model(trace_of(forwards))
    assert model.kind == "measured as the allocator's peak"
    assert model.num_forwards == 15
    assert model.largest_tokens == 2048
    assert model.share_above == 0
    told = model.forward_bytes(1500, 1, 2500)
    assert told == pytest.approx(law(activation_estimate_bytes(LLAMA_8B, 1500, 1, 2), 2500), rel=1e-3)


@settings(max_examples=min(settings().max_examples // 5, 200))
@given(st.integers(0, 2**32), st.integers(1, 300))
def test_an_envelope_lies_above_most_and_falls_nowhere(seed: int, count: int) -> None:
    rng = random.Random(seed)
    tokens = [round(np.exp(rng.uniform(0, 9))) for _ in range(count)]
    measured = pl.DataFrame(
        {
            "tokens": tokens,
            "prefix_tokens": [rng.choice([0, 0, rng.randrange(30_000)]) for _ in tokens],
            "activation_bytes": [round(size * 5000 * rng.uniform(0.2, 1)) for size in tokens],
            "estimate_bytes": [size * 4000 for size in tokens],
        }
    )
    envelope = fit_envelope(measured)
    assert min(envelope.base_bytes, envelope.share, envelope.prefix_token_bytes) >= 0
    assert envelope.share_above(measured) <= 0.1 if count >= 40 else 1
    assert envelope.at(8_000_000, 0) >= envelope.at(4_000_000, 0) >= 0


def test_one_wild_forward_of_many_lifts_it_little() -> None:
    forwards = [needing(at, 100 + at, 50_000 * (100 + at)) for at in range(400)]
    quiet = memory_model(trace_of(forwards)).forward_bytes(400)
    forwards[250] = needing(250, 350, 10 * GIB)
    wild = memory_model(trace_of(forwards))
    assert wild.forward_bytes(400) < 1.1 * quiet
    assert wild.share_above == pytest.approx(1 / 400)


def test_without_measured_memory_the_shape_tells() -> None:
    model = memory_model(trace_of([needing(0, 512, None)]))
    assert model.kind == "estimated from the shape"
    assert model.envelope is None
    assert model.share_above is None
    assert model.forward_bytes(512) == activation_estimate_bytes(LLAMA_8B, 512, 1, 2)
    assert all(row.extrapolated for row in model.rows([1, 512]))


def test_on_a_cpu_memory_is_resident_and_its_size_unknown() -> None:
    about = meta(hardware={"device": "cpu", "name": "EPYC", "threads": 2})
    model = memory_model(trace_of([needing(0, 512, 7_000_000)], about))
    assert model.kind == "measured as resident memory"
    assert model.memory_bytes is None
    (row,) = model.rows([512])
    assert (row.kept_free_bytes, row.kv_tokens, row.requests) == (None, None, None)
    assert row.activation_bytes == pytest.approx(7_000_000, rel=1e-3)
    (sized,) = model.with_memory(20 * GIB).rows([512])
    assert sized.kv_tokens is not None


def test_what_a_memory_holds_by_hand() -> None:
    forwards = [needing(at, tokens, 1_000_000 * tokens) for at, tokens in enumerate((256, 512, 1024))]
    model = memory_model(trace_of(forwards)).with_memory(24 * GIB)
    assert model.kept_free_by == BY_ACTIVATIONS
    assert model.kv_token_bytes == kv_bytes_per_token(LLAMA_8B, 2) == 131_072
    assert model.facts.request_tokens == 1024  # of 1,024, 3,200 and an unfinished 150
    row, whole = model.rows([512, None])
    assert row.activation_bytes == pytest.approx(512e6, rel=1e-6)
    assert not row.extrapolated
    tokens = (24 * GIB - WEIGHTS - row.activation_bytes) // 131_072
    assert row.kv_tokens == tokens // 16 * 16
    assert row.requests == row.kv_tokens // 1024
    assert whole.activation_bytes == pytest.approx(4096e6, rel=1e-2)  # max_prefill_tokens, of 4,100
    assert whole.extrapolated
    assert whole.kv_tokens is not None
    assert whole.kv_tokens < row.kv_tokens


def test_a_memory_too_small_holds_nothing() -> None:
    model = memory_model(trace_of([needing(0, 512, 10**8)])).with_memory(10 * GIB)
    (row,) = model.rows([512])
    assert (row.kv_tokens, row.requests) == (0, 0)


def test_many_decode_rows_may_need_more_than_a_small_chunk() -> None:
    prompts = [needing(0, 16, None)]
    decodes = needing(1, 0, None, decode_tokens=300)
    model = memory_model(trace_of([*prompts, decodes]))
    logits = activation_estimate_bytes(LLAMA_8B, 300, 300, 2)
    assert model.activation_bytes(16) == logits > model.forward_bytes(16)


def test_behind_a_long_prompt_a_chunk_needs_more() -> None:
    forwards = [needing(at, 512, 10**8 + 10_000 * prefix, prefix) for at, prefix in enumerate((0, 512, 2048))]
    model = memory_model(trace_of(forwards))
    assert model.activation_bytes(512) == pytest.approx(10**8 + 10_000 * (3000 - 512), rel=1e-3)


SIMULATED = meta(provenance="simulated", hardware=HARDWARE, engine={"max_prefill_tokens": 16384})


def test_a_simulated_run_keeps_free_what_its_pool_was_made_with() -> None:
    model = memory_model(trace_of([needing(0, 512, None)], SIMULATED))
    assert model.kind == "estimated from the shape"
    assert model.kept_free_by == BY_RESERVE
    assert model.memory_bytes == H200.memory_bytes
    for chunk in (2048, 16384):
        config = EngineConfig(chunked_prefill_size=chunk)
        assert model.kv_tokens(chunk) == pool_tokens(LLAMA_8B, H200, config, 2)
        assert model.kept_free_bytes(chunk) == reserved_bytes(H200.memory_bytes, config, 1)
    whole = EngineConfig(chunked_prefill_size=-1)
    assert model.kept_free_bytes(None) == reserved_bytes(H200.memory_bytes, whole, 1)


def test_of_several_devices_each_holds_its_part() -> None:
    halves = HARDWARE | {"devices": 2, "peaks": HARDWARE["peaks"] | {"num_devices": 2}}  # type: ignore[operator]
    model = memory_model(MemoryTrace({}, _without_weights(SIMULATED | {"hardware": halves})))
    assert model.kv_token_bytes == 131_072 // 2
    assert model.facts.weight_bytes == model.setting.shape.num_params * 2 < 0.6 * WEIGHTS


def _without_weights(about: dict[str, Any]) -> dict[str, Any]:
    """Weights that meta.json does not count are the shape's."""
    return about | {"model": {k: v for k, v in about["model"].items() if k != "weight_bytes"}}


def test_a_trace_without_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="tells no model"):
        memory_model(MemoryTrace({}))


def test_other_prompts_than_the_traces_own_may_be_asked_for() -> None:
    model = memory_model(trace_of([needing(0, 512, None)]))
    other = model.with_prompts(30_000, 40_000)
    assert other.activation_bytes(None) == other.forward_bytes(30_000)
    assert other.activation_bytes(None) > other.activation_bytes(4096) == other.forward_bytes(4096)
    assert model.with_prompts(100, 300).activation_bytes(None) == model.forward_bytes(300)
