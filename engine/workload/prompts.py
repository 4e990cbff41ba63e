"""Token ids for prompts of which only a length, a group or block ids are known; made when they are needed.

All depend on the seed and on what names the prompt alone, so that the same file gives the same prompts again.
"""

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK_TOKENS", "block_ids", "random_ids", "shared_prefix"]

OWN_STREAM, GROUP_STREAM = 0, 1  # keep a seed's random streams apart
BLOCK_TOKENS = 512  # tokens a Mooncake hash id stands for
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def random_ids(count: int, vocab_size: int, seed: int, rid: int) -> "array[int]":
    """`count` random token ids that depend on seed and rid alone."""
    return _ids(np.random.default_rng((seed, OWN_STREAM, rid)), count, vocab_size)


def shared_prefix(count: int, vocab_size: int, seed: int, group: str) -> "array[int]":
    """The first `count` token ids of a group; a shorter prefix is the start of a longer one."""
    return _ids(np.random.default_rng((seed, GROUP_STREAM, *group.encode())), count, vocab_size)


def block_ids(count: int, vocab_size: int, seed: int, blocks: Sequence[int]) -> "array[int]":
    """`count` token ids, 512 for each 64-bit id in `blocks`; the last block may be cut.

    A block's tokens depend on seed and id alone, so prompts share tokens where they share ids. Token k of a
    block is SplitMix64's k-th output from a state that is the mixed id, reduced to the vocabulary.
    """
    with np.errstate(over="ignore"):
        states = _mix(np.array(blocks, dtype=np.uint64) + GOLDEN) ^ _mix(np.array([seed], dtype=np.uint64))
        steps = np.arange(1, BLOCK_TOKENS + 1, dtype=np.uint64) * GOLDEN
        tokens = _mix(_mix(states)[:, None] + steps) % np.uint64(vocab_size)
    return array("i", tokens.astype(np.int32).reshape(-1)[:count].tobytes())


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's output function."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _ids(rng: np.random.Generator, count: int, vocab_size: int) -> "array[int]":
    return array("i", rng.integers(vocab_size, size=count, dtype=np.int32).tobytes())
