"""Chunk size and KV pool of a GPU by SGLang's rules."""

from dataclasses import replace

import pytest

from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.peaks import Peaks
from profiler.gpu_memory import default_chunk_tokens, pool_tokens, reserved_bytes
from profiler.tensor_parallel import shard
from tests.support.shapes import LLAMA_8B

GIB, MIB = 2**30, 2**20
H200 = Peaks("H200 SXM", "bfloat16", 989e12, 4.8e12, 141 * GIB)


@pytest.mark.parametrize(
    ("gib", "chunk"), [(16, 2048), (20, 4096), (48, 4096), (60, 8192), (141, 8192), (160, 16384)]
)
def test_the_chunk_grows_with_the_memory(gib: int, chunk: int) -> None:
    assert default_chunk_tokens(gib * GIB) == chunk


@pytest.mark.parametrize(
    ("gib", "chunk", "tp", "mib"),
    [
        (141, 8192, 1, 512 + 1.5 * 8192 + 128 + 512),
        (141, 2048, 1, 10240),  # at least
        (141, -1, 1, 512 + 1.5 * 16384 + 128 + 512),  # max_prefill_tokens
        (24, 4096, 1, 512 + 1.5 * 4096 + 128 + 96),
        (24, 1024, 8, 512 + 1.5 * 2048 + 1024 + 320),
        (16, 2048, 4, 512 + 1.5 * 2048 + 512 + 16),
    ],
)
def test_what_is_kept_free(gib: int, chunk: int, tp: int, mib: float) -> None:
    config = EngineConfig(chunked_prefill_size=chunk)
    assert reserved_bytes(gib * GIB, config, tp) == mib * MIB


def test_the_pool_is_what_the_weights_leave() -> None:
    config = EngineConfig(chunked_prefill_size=8192, page_size=64)
    tokens = pool_tokens(LLAMA_8B, H200, config, 2)
    free = 141 * GIB - 13440 * MIB - 8_030_261_248 * 2
    kv_token_bytes = 2 * 32 * 1024 * 2
    assert tokens % 64 == 0
    assert tokens * kv_token_bytes <= free < (tokens + 64) * kv_token_bytes


def test_ranks_hold_a_part_of_weights_and_kv_each() -> None:
    config = EngineConfig(chunked_prefill_size=8192)
    one = pool_tokens(LLAMA_8B, H200, config, 2)
    half = pool_tokens(shard(LLAMA_8B, 2), replace(H200, num_devices=2), config, 2)
    assert 2 * one < half < 2.3 * one


def test_weights_that_do_not_fit_are_refused() -> None:
    small = replace(H200, name="T4", memory_bytes=16 * GIB)
    with pytest.raises(
        ConfigError, match=r"^--gpu T4: of 16\.0 GiB, 15\.0 GiB of weights and .* larger --tp$"
    ):
        pool_tokens(LLAMA_8B, small, EngineConfig(chunked_prefill_size=2048), 2)


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 32])
def test_ranks_split_heads_columns_and_vocabulary(tp: int) -> None:
    part = shard(LLAMA_8B, tp)
    assert part.num_heads * tp == 32
    assert part.num_kv_heads == max(1, 8 // tp)
    assert part.intermediate_size * tp == 14336
    assert part.vocab_size * tp >= 128256
    assert (part.hidden_size, part.head_dim, part.num_layers) == (4096, 128, 32)


@pytest.mark.parametrize("tp", [3, 5, 64])
def test_heads_that_cannot_be_divided_are_refused(tp: int) -> None:
    with pytest.raises(ConfigError, match=f"^--tp {tp}: 32 heads, 8 KV heads and 14336 feed-forward columns"):
        shard(LLAMA_8B, tp)


def test_kv_heads_are_split_or_repeated_but_not_both() -> None:
    shape = replace(LLAMA_8B, num_heads=24, num_kv_heads=6, intermediate_size=1200)
    assert [shard(shape, tp).num_kv_heads for tp in (2, 3, 6, 12, 24)] == [3, 2, 1, 1, 1]
    with pytest.raises(ConfigError, match=r"^--tp 4: 24 heads, 6 KV heads"):
        shard(shape, 4)
