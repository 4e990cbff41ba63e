"""Level of detail: intervals of many tracks, reduced to buckets whose width is a power of two of nanoseconds.

Level L has buckets of 2**L ns, from time 0. An interval belongs to the bucket in which it starts. Each level
keeps, of every bucket that has any, the number of intervals, their whole length and the longest of them, so
counts and busy time are the same at all levels. Knows nothing of what the intervals are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Level", "Pyramid"]

Ints = NDArray[np.int64]

_FINEST_ITEMS = 4  # the finest level has about this many intervals a bucket
_SHRINKS = 0.7  # a level that is not at least this much smaller than the one below is left out


@dataclass(frozen=True, slots=True)
class Level:
    """(buckets,) columns in order of track and time; those of track i lie at bounds[i] to bounds[i + 1]."""

    shift: int  # a bucket is 2**shift nanoseconds
    bounds: Ints  # (tracks + 1,)
    bucket: Ints  # number of the bucket: its start is bucket << shift
    count: Ints
    busy_ns: Ints
    longest: Ints  # position of the longest interval, the first of equals

    def window(self, track: int, start_ns: int, end_ns: int) -> slice:
        """Buckets of a track that have a part in [start_ns, end_ns)."""
        low, high = int(self.bounds[track]), int(self.bounds[track + 1])
        first, last = np.searchsorted(
            self.bucket[low:high], [start_ns >> self.shift, -(-end_ns >> self.shift)], side="left"
        )
        return slice(low + int(first), low + int(last))


@dataclass(frozen=True, slots=True)
class Pyramid:
    """The levels, finest first; empty when there are no intervals."""

    levels: tuple[Level, ...]

    @classmethod
    def build(cls, bounds: Ints, start_ns: Ints, length_ns: Ints) -> "Pyramid":
        """From intervals in order of track and start; those of track i lie at bounds[i] to bounds[i + 1].

        Starts are 0 or later, lengths 0 or more. The intervals themselves stay with the caller.
        """
        if not len(start_ns):
            return cls(())
        span_ns = int(start_ns.max()) + 1
        shift = max(0, (span_ns * _FINEST_ITEMS // len(start_ns)).bit_length() - 1)
        level = _from_intervals(shift, bounds, start_ns, length_ns)
        levels = [level]
        while span_ns >> level.shift:
            level = _coarser(level, length_ns)
            if len(level.bucket) <= _SHRINKS * len(levels[-1].bucket) or not span_ns >> level.shift:
                levels.append(level)
        return cls(tuple(levels))

    def level_for(self, bucket_ns: float) -> Level | None:
        """The coarsest level with buckets no wider than `bucket_ns`; None: take the intervals themselves."""
        fits = [level for level in self.levels if 1 << level.shift <= bucket_ns]
        return fits[-1] if fits else None


def _from_intervals(shift: int, bounds: Ints, start_ns: Ints, length_ns: Ints) -> Level:
    ones = np.ones(len(start_ns), dtype=np.int64)
    at = np.arange(len(start_ns))
    return _reduced(shift, bounds, start_ns >> shift, ones, length_ns, at, length_ns)


def _coarser(level: Level, length_ns: Ints) -> Level:
    return _reduced(
        level.shift + 1,
        level.bounds,
        level.bucket >> 1,
        level.count,
        level.busy_ns,
        level.longest,
        length_ns[level.longest],
    )


def _reduced(
    shift: int, bounds: Ints, bucket: Ints, count: Ints, busy_ns: Ints, longest: Ints, longest_ns: Ints
) -> Level:
    """Neighbours of one track and bucket put together."""
    new = np.empty(len(bucket), dtype=np.bool_)
    new[:1] = True
    new[1:] = bucket[1:] != bucket[:-1]
    new[bounds[:-1][bounds[:-1] < len(bucket)]] = True
    first = np.flatnonzero(new)
    return Level(
        shift=shift,
        bounds=np.searchsorted(first, bounds),
        bucket=bucket[first],
        count=np.add.reduceat(count, first),
        busy_ns=np.add.reduceat(busy_ns, first),
        longest=longest[_first_largest(longest_ns, first)],
    )


def _first_largest(values: Ints, first: Ints) -> Ints:
    """Position of the first largest value of each run that begins at `first`."""
    largest = np.maximum.reduceat(values, first)
    lengths = np.diff(first, append=len(values))
    hits = np.flatnonzero(values == np.repeat(largest, lengths))
    run_of_hit = np.searchsorted(first, hits, side="right") - 1
    return hits[np.flatnonzero(np.diff(run_of_hit, prepend=-1))]
