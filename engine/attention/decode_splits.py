"""Into how many pieces a decode row's keys are split, so that a small batch fills the device too."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["head_tiles", "split_cap", "split_lens"]

MIN_SPLIT = 32  # keys; lengths of splits are its multiples
LEAST_CAP = 8
PROGRAMS_PER_CORE = 2  # that a batch of few rows may be split into


def head_tiles(num_heads: int, num_kv_heads: int, heads_per_tile: int) -> int:
    """Programs per row and split: each takes up to `heads_per_tile` query heads of one KV head."""
    return num_kv_heads * -(-num_heads // num_kv_heads // heads_per_tile)


def split_cap(rows: int, tiles: int, cores: int) -> int:
    """The most splits of a row in a batch of `rows`: more than the least where cores would stand idle."""
    return max(LEAST_CAP, -(-PROGRAMS_PER_CORE * cores // (rows * tiles)))


def split_lens(lengths: NDArray[np.int32], tiles: int, cores: int, cap: int) -> NDArray[np.int32]:
    """(rows,) keys per split of rows of `lengths` keys; no row gets more than `cap` splits.

    SGLang's rule: two chunk lengths, one that evens out rows of different lengths and one that gives each of
    `cores` about one program, more of them where rows are long; the shorter counts. Rows of no keys have none
    of this and get 1.
    """
    rows = lengths[lengths > 0].astype(np.int64)
    if not len(rows):
        return np.ones_like(lengths)
    longest, shortest = int(rows.max()), int(rows.min())
    if longest * 8 < shortest * 10:
        shortest = longest
    evening = min(-(-longest // shortest), cap)
    wanted = cores * max(math.log2(longest / 64), 1.0)
    filling = min(math.ceil(wanted / (len(rows) * tiles)), cap)
    chunk = min(-(-longest // evening), -(-longest // filling))
    splits = np.maximum(-(-lengths.astype(np.int64) // chunk), 1)
    per_split = np.maximum(-(-lengths // splits), 1)
    whole: NDArray[np.int32] = (-(-per_split // MIN_SPLIT) * MIN_SPLIT).astype(np.int32)
    return whole
