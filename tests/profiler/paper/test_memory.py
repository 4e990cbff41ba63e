"""What fits: as for dense models elsewhere, and by hand for windows, latents and states."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.arithmetic import activation_estimate_bytes, kv_bytes_per_token
from engine.config import EngineConfig
from engine.peaks import Peaks
from engine.shapes import ModelShape
from profiler.gpu_memory import pool_tokens
from profiler.paper.attention import GroupedAttention
from profiler.paper.elements import ElementBytes
from profiler.paper.feed_forward import DenseFeedForward
from profiler.paper.latent import LatentAttention
from profiler.paper.memory import PaperMemory, activation_bytes, sequence_bytes
from profiler.paper.model import Layer, PaperModel
from profiler.paper.read import model_from
from profiler.paper.recurrent import LinearAttention
from profiler.tensor_parallel import shard
from tests.support.cli import TINY_CONFIG

GIB = 2**30
WIDE, FP8_KV = ElementBytes(), ElementBytes(kv=1)
PEAKS = Peaks("H200 SXM", "bfloat16", 989e12, 4.8e12, 141 * GIB)
LLAMA_8B: dict[str, Any] = {
    **TINY_CONFIG,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}
LATENT = LatentAttention(128, 1536, 512, 128, 64, 128)
DENSE = DenseFeedForward(1024)


def memory_of(model: PaperModel, size: ElementBytes = WIDE, **changes: Any) -> PaperMemory:
    memory = PaperMemory(model, size, 141 * GIB, 1, 1, request_tokens=4096, longest_prompt=32_768)
    return replace(memory, **changes)


def model_of(*layers: tuple[Any, int]) -> PaperModel:
    kinds = tuple((Layer(attention, DENSE), count) for attention, count in layers)
    return PaperModel("m", "m", 4096, 32_000, 2**20, kinds)


@given(st.sampled_from([1, 2, 4]), st.sampled_from([512, 8192, 16384]), st.sampled_from([1, 16, 64]))
def test_a_dense_model_has_the_pool_of_simulated_runs(tp: int, chunk: int, page: int) -> None:
    shape = shard(ModelShape.from_hf_config(LLAMA_8B, "x"), tp)
    model = model_from(LLAMA_8B, "x").split(tp)
    config = EngineConfig(chunked_prefill_size=chunk, page_size=page)
    expected = pool_tokens(shape, replace(PEAKS, num_devices=tp), config, 2)
    told = memory_of(model, tp=tp, page_size=page)
    assert told.kv_tokens(chunk) == expected
    assert told.requests(chunk) == expected // 4096
    assert (told.weight_bytes, told.kv_token_bytes) == (2 * shape.num_params, kv_bytes_per_token(shape, 2))


@given(st.integers(1, 20_000), st.integers(1, 300))
def test_a_dense_model_has_the_activations_of_the_estimate(tokens: int, rows: int) -> None:
    shape = ModelShape.from_hf_config(LLAMA_8B, "x")
    told = activation_bytes(model_from(LLAMA_8B, "x"), tokens, rows)
    assert told == activation_estimate_bytes(shape, tokens, rows, 2)


def test_a_latent_takes_its_own_bytes_on_every_device() -> None:
    model = model_of((LATENT, 61))
    assert memory_of(model, FP8_KV).kv_token_bytes == 35_136  # as lmsys.org has it for DeepSeek in 8 bits
    assert memory_of(model).kv_token_bytes == memory_of(model.split(8)).kv_token_bytes == 2 * 35_136


def test_a_window_keeps_no_more_than_itself() -> None:
    full = GroupedAttention(32, 8, 128)
    model = model_of((full, 3), (replace(full, window=1000), 5))
    layer = 2 * 8 * 128 * 2
    assert sequence_bytes(model, 400, WIDE) == 8 * layer * 400
    assert sequence_bytes(model, 4096, WIDE) == 3 * layer * 4096 + 5 * layer * 1000
    told = memory_of(model)
    assert (told.kv_token_bytes, told.full_token_bytes) == (8 * layer, 3 * layer)
    free = told.kv_bytes(8192)
    assert told.requests(8192) == free // (3 * layer * 4096 + 5 * layer * 1000)
    assert told.kv_tokens(8192) // 4096 == told.requests(8192)


def test_a_state_is_kept_by_every_request_and_no_token() -> None:
    linear = LinearAttention(16, 48, 128, 128, 4)
    told = memory_of(model_of((linear, 48), (GroupedAttention(24, 4, 256), 16)))
    state = 48 * (48 * 128 * 128 * 4 + 3 * (2 * 2048 + 6144) * 2)
    assert told.state_bytes == state
    assert told.kv_token_bytes == told.full_token_bytes == 65_536
    assert told.request_bytes == state + 4096 * 65_536


def test_larger_chunks_leave_less_and_whole_prompts_least() -> None:
    told = memory_of(model_from(LLAMA_8B, "x"))
    left = [told.kv_tokens(chunk) for chunk in (512, 8192, 16_384, None)]
    assert left == sorted(left, reverse=True)
    assert left[0] > left[-1]
    assert told.activation_bytes(None) == told.activation_bytes(32_768)


def test_what_does_not_fit_leaves_nothing() -> None:
    told = memory_of(model_from(LLAMA_8B, "x"), memory_bytes=20 * GIB)
    assert told.kv_bytes(8192) < 0
    assert (told.kv_tokens(8192), told.requests(8192)) == (0, 0)


@pytest.mark.parametrize("page", [1, 16, 64])
def test_requests_are_counted_in_whole_pages(page: int) -> None:
    told = memory_of(model_from(LLAMA_8B, "x"), page_size=page, request_tokens=1000)
    assert told.request_bytes == -(-1000 // page) * page * told.kv_token_bytes
