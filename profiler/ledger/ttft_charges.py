"""What chunks cost many spans of waiting at once, exact to the nanosecond."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.ledger.chunk_rows import ChunkRows
from profiler.ledger.rank_time import RankTime
from profiler.ledger.split import Split, split_all

__all__ = ["OwnParts", "Spans", "charge", "cover", "device_costs", "own_parts"]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spans:
    """(spans,) stretches of a rank's time, each of a request that waits."""

    start_ns: Ints
    end_ns: Ints

    def first(self, time: RankTime) -> Ints:
        """The first device interval that each may share time with."""
        return np.searchsorted(time.device.end_ns, self.start_ns, side="right")

    def last(self, time: RankTime) -> Ints:
        """The one after the last; that of `first` where it shares time with none."""
        after = np.searchsorted(time.device.start_ns, self.end_ns, side="left")
        first = self.first(time)
        return np.where(self.end_ns > self.start_ns, np.maximum(first, after), first)

    def inside_ns(self, time: RankTime, span: Ints, interval: Ints) -> Ints:
        """(pairs,) time that spans share with device intervals; not above 0 where they share none."""
        end_ns = np.minimum(self.end_ns[span], time.device.end_ns[interval])
        inside: Ints = end_ns - np.maximum(self.start_ns[span], time.device.start_ns[interval])
        return inside


@dataclass(frozen=True, slots=True)
class OwnParts:
    """(pairs,) spans with the device intervals of forwards in which their request has a row."""

    span: Ints
    interval: Ints
    is_chunk: Flags
    ns: Ints  # what they share, above 0

    @classmethod
    def none(cls) -> "OwnParts":
        """No request has a row."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(empty, empty, np.zeros(0, dtype=np.bool_), empty)


def own_parts(time: RankTime, spans: Spans, span: Ints, interval: Ints, is_chunk: Flags) -> OwnParts:
    """Those of the pairs that share time."""
    ns = spans.inside_ns(time, span, interval)
    some = ns > 0
    return OwnParts(span[some], interval[some], is_chunk[some], ns[some])


def cover(first: Ints, last: Ints, length: int) -> Ints:
    """(length,) how many of the ranges [first, last) hold each number."""
    marks = np.bincount(first, minlength=length + 1) - np.bincount(last, minlength=length + 1)
    counts: Ints = np.cumsum(marks)[:length]
    return counts


def charge(cost_ns: Ints, chunks: ChunkRows, split: Split, forward: Ints, ns: Ints, times: Ints) -> None:
    """Add to `cost_ns`, (chunks,), their shares of `ns` of some forwards, each as often as `times` says."""
    first, last = chunks.bounds(forward)
    some = np.flatnonzero((last > first) & (times > 0))
    entry, chunk, share_ns = split_all(ns[some], first[some], last[some], split)
    np.add.at(cost_ns, chunk, share_ns * times[some][entry])


def device_costs(time: RankTime, chunks: ChunkRows, split: Split, spans: Spans, own: OwnParts) -> Ints:
    """(chunks,) what each cost the spans by device time of forwards without a row of the request.

    Whole intervals are shared once, whoever waits for them; those that a span cuts, one by one.
    """
    cost_ns = np.zeros(len(chunks), dtype=np.int64)
    device, first, last = time.device, spans.first(time), spans.last(time)
    count = cover(first, last, len(device.start_ns))
    np.subtract.at(count, own.interval, 1)
    span, interval = _cut(spans, time, first, last, own)
    np.subtract.at(count, interval, 1)
    charge(cost_ns, chunks, split, time.position, device.end_ns - device.start_ns, count)
    inside = spans.inside_ns(time, span, interval)
    charge(cost_ns, chunks, split, time.position[interval], inside, np.ones_like(inside))
    return cost_ns


def _cut(spans: Spans, time: RankTime, first: Ints, last: Ints, own: OwnParts) -> tuple[Ints, Ints]:
    """Spans and the device intervals, but their own, that they share only a part of."""
    begins = np.flatnonzero((first < last) & (_at(time.device.start_ns, first) < spans.start_ns))
    ends = np.flatnonzero((first < last) & (_at(time.device.end_ns, last - 1) > spans.end_ns))
    span = np.concatenate([begins, ends])
    interval = np.concatenate([first[begins], last[ends] - 1])
    width = len(time.device.start_ns)
    key, where = np.unique(span * width + interval, return_index=True)
    where = where[~np.isin(key, own.span * width + own.interval)]
    return span[where], interval[where]


def _at(column: Ints, index: Ints) -> Ints:
    """Elements of a column, of its ends where an index lies beyond; zeros of an empty one."""
    if not len(column):
        return np.zeros(len(index), dtype=np.int64)
    found: Ints = column[index.clip(0, len(column) - 1)]
    return found
