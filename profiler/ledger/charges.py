"""What stretches of device time cost those who waited through them, summed over all gaps at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.ledger.chunk_rows import ChunkRows
from profiler.ledger.split import Split, split_all

__all__ = ["ChunkCharges", "Stretches", "charge", "joined", "until_each"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stretches:
    """(stretches,) columns: device time of a forward, and in how many gaps it lies."""

    kind: Ints  # PartKind
    forward: Ints  # position in the `ForwardTable`
    start_ns: Ints
    end_ns: Ints
    count: Ints

    def some(self, chosen: "NDArray[np.bool_] | Ints") -> "Stretches":
        """Some of them."""
        return Stretches(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


@dataclass(frozen=True, slots=True)
class ChunkCharges:
    """(chunks,) what each chunk cost, as `ChunkRows` has them."""

    cost_ns: Ints
    gaps: Ints  # in which it cost something
    longest_ns: Ints  # the most that it took of one


def joined(parts: list[Stretches]) -> Stretches:
    """Those of all, without what has no length or lies in no gap."""
    empty = np.zeros(0, dtype=np.int64)
    names = Stretches.__dataclass_fields__
    every = Stretches(*(np.concatenate([empty, *(getattr(p, name) for p in parts)]) for name in names))
    return every.some((every.end_ns > every.start_ns) & (every.count > 0))


def charge(stretches: Stretches, chunks: ChunkRows, split: Split) -> ChunkCharges:
    """Each stretch shared among the chunks of its forward, in each of its gaps."""
    first, last = chunks.bounds(stretches.forward)
    some = np.flatnonzero(last > first)
    length = (stretches.end_ns - stretches.start_ns)[some]
    entry, chunk, ns = split_all(length, first[some], last[some], split)
    count = stretches.count[some][entry]
    cost, gaps, longest = (np.zeros(len(chunks), dtype=np.int64) for _ in range(3))
    np.add.at(cost, chunk, ns * count)
    np.add.at(gaps, chunk, np.where(ns > 0, count, 0))
    np.maximum.at(longest, chunk, ns)
    return ChunkCharges(cost, gaps, longest)


def until_each(stretches: Stretches, edges_ns: Ints) -> Ints:
    """(edges,) time of all stretches before each edge, of each as often as it counts.

    Sums of products wrap around 64 bits and back: only their differences are looked at.
    """
    weights = stretches.count
    return _before(stretches.start_ns, weights, edges_ns) - _before(stretches.end_ns, weights, edges_ns)


def _before(t_ns: Ints, weight: Ints, edges_ns: Ints) -> Ints:
    """(edges,) sum of weight * (edge - t) over the times before each edge."""
    order = np.argsort(t_ns, kind="stable")
    t, weight = t_ns[order], weight[order]
    counts = np.append(0, np.cumsum(weight))
    products = np.append(0, np.cumsum(weight * t))
    at = np.searchsorted(t, edges_ns, side="left")
    sums: Ints = counts[at] * edges_ns - products[at]
    return sums
