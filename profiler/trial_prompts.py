"""Prompts of a trial: token ids that stand for a length, and for what prompts have in common."""

from array import array
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.lazy_prompt import LazyPrompt
from profiler.prefix_hashes import HASHED_TOKENS
from profiler.trial import END_TOKEN

__all__ = ["made_prompt"]

Hashes = NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15
MASK = 2**64 - 1


def made_prompt(rid: int, tokens: int, hashes: Callable[[], Hashes] | None = None) -> LazyPrompt:
    """A prompt of so many tokens, made when wanted; without (blocks,) prefix hashes it is like no other.

    Two prompts share token ids exactly where they share hashes, which may cover less than `tokens`.
    """
    return LazyPrompt(tokens, partial(_token_ids, rid, tokens, hashes))


def _token_ids(rid: int, tokens: int, hashes: Callable[[], Hashes] | None) -> "array[int]":
    """A block's tokens are the two halves of its hash, and those behind the last block the request's own."""
    blocks = np.empty(0, dtype=np.uint64) if hashes is None else hashes()[: tokens // HASHED_TOKENS]
    halves = np.stack([blocks >> np.uint64(33), blocks & np.uint64(END_TOKEN)], axis=1)
    covered = np.repeat(halves % np.uint64(END_TOKEN), HASHED_TOKENS // 2, axis=0)
    own = (rid + 1) * GOLDEN & MASK
    rest = np.full(tokens - covered.size, (own >> 33) % END_TOKEN)
    ids: NDArray[np.int32] = np.concatenate([covered.reshape(-1), rest]).astype(np.int32)
    return array("i", ids.tobytes())
