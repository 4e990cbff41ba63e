"""Tokens and the gaps between them as numpy columns, for traces of millions of rows."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import Outcome
from profiler.forward_table import UNKNOWN_TIME, ForwardTable
from profiler.request_rows import RequestRows

__all__ = ["DeviceTime", "Gaps", "emitted_rows", "gap_frame", "longest_gap", "token_gaps"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Gaps:
    """(gaps,) columns in order of rid and token_index."""

    request: Ints  # position in `RequestRows.rids`
    before: Ints  # position in the `RequestRows` of the earlier token's row
    row: Ints  # and of the later one's, in the gap's own forward
    start_ns: Ints
    end_ns: Ints

    def of(self, chosen: NDArray[np.bool_]) -> "Gaps":
        """Some of them."""
        return Gaps(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def emitted_rows(rows: RequestRows, forwards: ForwardTable) -> tuple[Ints, Ints]:
    """Positions of rows that gave a token at a known time, and of their requests, by rid and token_index.

    A token that several ranks recorded counts once, on the lowest rank.
    """
    gave = (rows.outcome == Outcome.EMITTED.value) & (rows.token_index >= 0)
    at = np.flatnonzero(gave & (forwards.result_end_ns[rows.forward] != UNKNOWN_TIME))
    request = np.repeat(np.arange(len(rows.rids)), np.diff(rows.bounds))[at]
    index = rows.token_index[at]
    if ((np.diff(index) <= 0) & (np.diff(request) == 0)).any():
        order = np.lexsort((forwards.rank[rows.forward[at]], index, request))
        at, request, index = at[order], request[order], index[order]
        first = np.append(True, (np.diff(index) != 0) | (np.diff(request) != 0))[: len(at)]
        at, request = at[first], request[first]
    return at, request


def token_gaps(rows: RequestRows, forwards: ForwardTable, emitted: tuple[Ints, Ints] | None = None) -> Gaps:
    """Every gap between consecutive tokens of a request; `emitted` spares finding the rows that gave any."""
    at, request = emitted_rows(rows, forwards) if emitted is None else emitted
    follows = (np.diff(request) == 0) & (np.diff(rows.token_index[at]) == 1)
    later = np.flatnonzero(follows) + 1
    times = forwards.result_end_ns[rows.forward[at]]
    return Gaps(request[later], at[later - 1], at[later], times[later - 1], times[later])


def longest_gap(gaps: Gaps) -> int | None:
    """Which gap is the longest; of equals the earliest, then that of the lowest rid. None of no gaps."""
    lengths = gaps.end_ns - gaps.start_ns
    if not len(lengths):
        return None
    longest = np.flatnonzero(lengths == lengths.max())
    return int(longest[gaps.start_ns[longest].argmin()])


def gap_frame(gaps: Gaps, rows: RequestRows, forwards: ForwardTable) -> pl.DataFrame:
    """The gaps as `profiler.latency.gaps` gives them."""
    own = rows.forward[gaps.row]
    return pl.DataFrame(
        {
            "rank": forwards.rank[own].astype(np.uint32),
            "rid": rows.rids[gaps.request].astype(np.uint32),
            "token_index": rows.token_index[gaps.row].astype(np.int64),
            "start_ns": gaps.start_ns,
            "end_ns": gaps.end_ns,
            "gap_ns": gaps.end_ns - gaps.start_ns,
            "own_forward_id": forwards.forward_id[own].astype(np.uint32),
        }
    )


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """(forwards,) until each forward's result: device time of all, how many had started and had ended."""

    busy_ns: Ints
    started: Ints
    ended: Ints
    outlasts: NDArray[np.bool_]  # whether it ends after its own result
    overtaken: NDArray[np.bool_]  # whether the next one starts before its result
    forwards: ForwardTable

    @classmethod
    def of_forwards(cls, forwards: ForwardTable) -> "DeviceTime | None":
        """None where a device interval is unknown, or forwards are of several ranks or not in order."""
        if not forwards.on_device.all() or forwards.untimed or (forwards.rank != forwards.rank[:1]).any():
            return None
        if (np.diff(forwards.start_ns) < 0).any() or (np.diff(forwards.end_ns) < 0).any():
            return None
        lasting = forwards.end_ns > forwards.start_ns
        start, end, t = forwards.start_ns[lasting], forwards.end_ns[lasting], forwards.result_end_ns
        lengths = np.concatenate(([0], np.cumsum(end - start)))
        starts = np.concatenate(([0], np.cumsum(start)))
        started = np.searchsorted(start, t, side="left")
        ended = np.searchsorted(end, t, side="right")
        # Whole lengths of those that had ended, and t - start of those still under way.
        busy = lengths[ended] + (started - ended) * t - (starts[started] - starts[ended])
        following = np.append(forwards.start_ns[1:], np.iinfo(np.int64).max)
        return cls(busy, started, ended, forwards.end_ns > t, following < t, forwards)

    def of_others(self, gaps: Gaps, rows: RequestRows) -> tuple[Ints, Ints]:
        """Device time in each gap of forwards without a row of the request, and how many such forwards."""
        first, last = rows.forward[gaps.before], rows.forward[gaps.row]
        busy = self.busy_ns[last] - self.busy_ns[first]
        touching = np.where(gaps.end_ns > gaps.start_ns, self.started[last] - self.ended[first], 0)
        self._take_own(gaps, rows, slice(None), gaps.row, busy, touching)
        # Of its other rows only these can share time with the gap: those between its two tokens, the earlier
        # token's if its forward outlasts its result, and later ones that start before the gap ends.
        between = (gaps.row - gaps.before != 1) | self.outlasts[first]
        self._take_own_beyond(gaps, rows, np.flatnonzero(between), -1, busy, touching)
        self._take_own_beyond(gaps, rows, np.flatnonzero(self.overtaken[last]), 1, busy, touching)
        return busy, touching

    def _take_own(
        self, gaps: Gaps, rows: RequestRows, which: Ints | slice, at: Ints, busy: Ints, touching: Ints
    ) -> tuple[Ints, Ints]:
        """Take the forwards of the rows `at` out of the gaps `which`; returns their starts and ends."""
        forward = rows.forward[at]
        start, end = self.forwards.start_ns[forward], self.forwards.end_ns[forward]
        shared = np.minimum(end, gaps.end_ns[which]) - np.maximum(start, gaps.start_ns[which])
        overlaps = shared > 0
        busy[which] -= np.where(overlaps, shared, 0)
        touching[which] -= overlaps
        return start, end

    def _take_own_beyond(
        self, gaps: Gaps, rows: RequestRows, which: Ints, step: int, busy: Ints, touching: Ints
    ) -> None:
        """The same for rows before (-1) or after (1) the own one, as far as their forwards reach the gap."""
        at = gaps.row[which] + step
        while len(which):
            request = gaps.request[which]
            inside = (at >= rows.bounds[request]) & (at < rows.bounds[request + 1])
            which, at = which[inside], at[inside]
            start, end = self._take_own(gaps, rows, which, at, busy, touching)
            goes_on = end > gaps.start_ns[which] if step < 0 else start < gaps.end_ns[which]
            which, at = which[goes_on], at[goes_on] + step
