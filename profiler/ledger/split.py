"""What a forward that several chunks share is split by, and the split: whole nanoseconds that sum exactly."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.arithmetic import ForwardSums
from profiler.culprits import split_exactly
from profiler.ledger.chunk_rows import ChunkRows
from profiler.price_rows import ForwardCostModel
from profiler.tables import TraceLike, frame

__all__ = ["Split", "split_all", "split_by_model", "split_by_tokens"]

Ints = NDArray[np.int64]

_BY_TOKENS = "tokens"
_WHOLE = 1_000_000  # weights by a cost model are millionths of their forward's: products stay within 64 bits
_SUMS = (
    *("extend_tokens", "decode_tokens"),
    *("pairs_prefix", "pairs_causal", "pairs_decode", "prefix_tokens", "kv_tokens"),
)


@dataclass(frozen=True, slots=True)
class Split:
    """Weights of chunks; those that have none among themselves are shared by tokens, then evenly."""

    name: str
    weight: Ints  # (chunks,) as `ChunkRows` has them, not negative
    tokens: Ints

    def of(self, total_ns: int, chunks: Sequence[int]) -> list[int]:
        """The shares of some chunks of one forward."""
        for weights in (self.weight, self.tokens):
            told = [int(weights[chunk]) for chunk in chunks]
            if any(told):
                return split_exactly(total_ns, told)
        return split_exactly(total_ns, [1] * len(chunks))


def split_by_tokens(chunks: ChunkRows) -> Split:
    """By the tokens that each chunk computed."""
    return Split(_BY_TOKENS, chunks.extend_len, chunks.extend_len)


def split_by_model(
    chunks: ChunkRows, trace: TraceLike, forward_id: Ints, cost: ForwardCostModel, name: str
) -> Split:
    """By what the forward would have taken less without each chunk, as a cost model says.

    `forward_id` are the ids of the forwards that `chunks` counts. Where the sums of a forward are unknown, by
    tokens.
    """
    weight = chunks.extend_len.copy()
    first = np.flatnonzero(np.diff(chunks.forward, prepend=-1))
    counts = np.diff(np.append(first, len(chunks)))
    shared = counts > 1
    table = frame(trace, "forwards", ["forward_id", *_SUMS]).drop_nulls()
    sums = {row[0]: row[1:] for row in table.iter_rows()}
    for begin, count in zip(first[shared].tolist(), counts[shared].tolist(), strict=True):
        told = sums.get(int(forward_id[chunks.forward[begin]]))
        if told is not None:
            at = slice(begin, begin + count)
            last = chunks.number[at] == chunks.of[at]
            weight[at] = _marginal(told, chunks.prefix_len[at], chunks.extend_len[at], last, cost)
    return Split(name, weight, chunks.extend_len)


def _marginal(
    told: tuple[int, ...],
    prefix_len: Ints,
    extend_len: Ints,
    last: NDArray[np.bool_],
    cost: ForwardCostModel,
) -> Ints:
    """(chunks,) what each adds to a forward, in millionths of the sum; 0 where it adds nothing."""
    extend, decode, prefix_pairs, causal, decode_pairs, prefixes, kv = told
    logits = decode + int(last.sum())
    whole_s = cost.seconds(
        ForwardSums(extend, decode, logits, prefix_pairs, causal, decode_pairs, prefixes, kv)
    )
    added = []
    for p, n, ends in zip(prefix_len.tolist(), extend_len.tolist(), last.tolist(), strict=True):
        left = ForwardSums(
            extend_tokens=extend - n,
            decode_tokens=decode,
            rows_with_logits=logits - ends,
            pairs_prefix=prefix_pairs - n * p,
            pairs_causal=causal - n * (n + 1) // 2,
            pairs_decode=decode_pairs,
            prefix_tokens=prefixes - p,
            kv_tokens=kv - n - p,
        )
        added.append(max(0.0, whole_s - cost.seconds(left)))
    total = sum(added)
    return np.array([round(_WHOLE * s / total) if total else 0 for s in added], dtype=np.int64)


def split_all(total_ns: Ints, first: Ints, last: Ints, split: Split) -> tuple[Ints, Ints, Ints]:
    """Shares of many totals at once, of each among the chunks first to last: entry, chunk and nanoseconds.

    As `Split.of`, for totals that are shared by all chunks of a forward.
    """
    counts = last - first
    entry = np.repeat(np.arange(len(total_ns)), counts)
    begins = np.cumsum(counts) - counts
    chunk = np.arange(len(entry)) - np.repeat(begins - first, counts)
    weight = _weights(entry, chunk, split, len(total_ns))
    whole = np.bincount(entry, weight, minlength=len(total_ns)).astype(np.int64)
    product = total_ns[entry] * weight
    parts = product // whole[entry]
    left = total_ns - np.bincount(entry, parts, minlength=len(total_ns)).astype(np.int64)
    open_rows = np.flatnonzero((counts > 1)[entry] & (left > 0)[entry])
    order = open_rows[np.lexsort((open_rows, -(product % whole[entry])[open_rows], entry[open_rows]))]
    rank = np.arange(len(order)) - np.searchsorted(entry[order], entry[order], side="left")
    parts[order[rank < left[entry[order]]]] += 1
    return entry, chunk, parts


def _weights(entry: Ints, chunk: Ints, split: Split, entries: int) -> Ints:
    """(rows,) weights; by tokens where an entry has none, evenly where it has no tokens either."""
    weight = split.weight[chunk]
    for instead in (split.tokens[chunk], np.ones(len(chunk), dtype=np.int64)):
        empty = np.bincount(entry, weight, minlength=entries) == 0
        weight = np.where(empty[entry], instead, weight)
    return weight
