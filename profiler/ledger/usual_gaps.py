"""Sums over the usual gaps of a trace, from counts by pairs of forwards."""

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.ledger.charges import Stretches
from profiler.ledger.forward_times import ForwardTimes
from profiler.ledger.gap_pairs import BlockGaps
from profiler.ledger.pair_parts import Extras, PairParts
from profiler.ledger.parts import HOST_KINDS, PartKind
from profiler.ledger.rank_time import RankTime

__all__ = ["UsualGaps"]

Ints = NDArray[np.int64]


class UsualGaps:
    """How often each stretch of device time lies in a gap, and how many gaps are open after each result."""

    def __init__(self, times: ForwardTimes, time: RankTime) -> None:
        self._times, self._time = times, time
        intervals, forwards = len(time.position), len(times.t_ns)
        self._steps = np.zeros(intervals + 1, dtype=np.int64)  # of the number of gaps that hold an interval
        self._own = np.zeros(intervals, dtype=np.int64)  # of these, how many are of requests with a row in it
        self._tails = np.zeros(forwards, dtype=np.int64)  # gaps from this result, inside others' interval
        self._heads = np.zeros(forwards, dtype=np.int64)  # and gaps to it
        self._opened = np.zeros(forwards, dtype=np.int64)
        self._closed = np.zeros(forwards, dtype=np.int64)
        self._riding: list[Stretches] = []

    def add(self, gaps: BlockGaps, parts: PairParts) -> None:
        """Count the pairs of a block."""
        times, before, own, count = self._times, gaps.before, gaps.own, gaps.count
        np.add.at(self._opened, before, count)
        np.add.at(self._closed, own, count)
        inside = times.straddles[before]
        first, last = times.started[before], _ended(times, own)
        apart = last >= first  # else the gap lies inside one interval
        np.add.at(self._steps, first[apart], count[apart])
        np.add.at(self._steps, last[apart], -count[apart])
        at = times.interval[own]
        ran = at >= 0
        whole = apart & ran & (at >= first) & (at < last)
        np.add.at(self._own, at[whole], count[whole])
        next_whole = apart & gaps.in_next & (times.straddles[own] < 0)
        np.add.at(self._own, times.ahead[own[next_whole]], count[next_whole])
        others_first = apart & (inside >= 0) & (at != inside)
        np.add.at(self._tails, before[others_first], count[others_first])
        others_last = apart & (times.straddles[own] >= 0) & ~gaps.in_next
        np.add.at(self._heads, own[others_last], count[others_last])
        within = np.flatnonzero(~apart & (at != inside) & ~gaps.in_next)
        if len(within):
            stretch = (inside[within], times.t_ns[before[within]], times.t_ns[own[within]])
            self._riding.append(self._others(*stretch, count[within]))
        self._ride(gaps, parts)

    def _ride(self, gaps: BlockGaps, parts: PairParts) -> None:
        """The stretches in which the requests decode themselves, with what others' chunks cost there."""
        position = self._time.position
        following = position[self._times.ahead[gaps.own]] if len(position) else gaps.own
        for forward, from_ns, extra, alone in (
            (gaps.own, parts.own_from_ns, parts.own_extra, PartKind.OWN_DECODE),
            (following, parts.next_from_ns, parts.next_extra, PartKind.OWN_OTHER),
        ):
            for kind, start_ns, end_ns in _ridden(from_ns, extra, alone):
                some = np.flatnonzero(end_ns > start_ns)
                columns = (kind[some], forward[some], start_ns[some], end_ns[some], gaps.count[some])
                self._riding.append(Stretches(*columns))

    def stretches(self) -> list[Stretches]:
        """All device time of these gaps."""
        times, device = self._times, self._time.device
        at = np.arange(len(device.start_ns))
        holding = np.cumsum(self._steps)[: len(at)] - self._own
        after, until = np.flatnonzero(self._tails), np.flatnonzero(self._heads)
        entered, left = times.straddles[after], times.straddles[until]
        return [
            *self._riding,
            self._others(at, device.start_ns, device.end_ns, holding),
            self._others(entered, times.t_ns[after], device.end_ns[entered], self._tails[after]),
            self._others(left, device.start_ns[left], times.t_ns[until], self._heads[until]),
        ]

    def _others(self, interval: Ints, start_ns: Ints, end_ns: Ints, count: Ints) -> Stretches:
        forward = self._time.position[interval]
        mode = self._times.mode[forward]
        kind = np.full(len(interval), PartKind.OTHERS_DECODE.value, dtype=np.int64)
        kind[mode == ForwardMode.EXTEND.value] = PartKind.OTHERS_PREFILL.value
        kind[mode == ForwardMode.MIXED.value] = PartKind.OTHERS_MIXED.value
        return Stretches(kind, forward, start_ns, end_ns, count)

    def host_over(self, edges_ns: Ints) -> Ints:
        """(edges - 1, kinds) waiting for the host between edges, in order of `HOST_KINDS`.

        What passes between two results counts where the earlier one lies.
        """
        used = np.flatnonzero((self._opened > 0) | (self._closed > 0))
        used = used[np.argsort(self._times.t_ns[used], kind="stable")]
        waiting = np.cumsum(self._opened[used] - self._closed[used])
        host = np.diff(self._times.host_ns[used], axis=0, append=self._times.host_ns[used[-1:]])
        spans = np.searchsorted(edges_ns, self._times.t_ns[used], side="right") - 1
        found = np.zeros((len(edges_ns) - 1, len(HOST_KINDS)), dtype=np.int64)
        np.add.at(found, spans.clip(0, len(found) - 1), host * waiting[:, None])
        return found


def _ended(times: ForwardTimes, forward: Ints) -> Ints:
    """How many device intervals have ended by the result of each forward."""
    return times.started[forward] - (times.straddles[forward] >= 0)


def _ridden(from_ns: Ints, extra: Extras, alone: PartKind) -> list[tuple[Ints, Ints, Ints]]:
    """Kind, start and end of a forward's time alone, and of what is extra of it."""
    kind = np.where(extra.unknown, PartKind.MIXED_UNKNOWN.value, PartKind.MIXED_EXTRA.value)
    own = np.full(len(from_ns), alone.value, dtype=np.int64)
    return [(own, from_ns, extra.from_ns), (kind, extra.from_ns, extra.until_ns)]
