"""One request's lane: its waits, chunks, tokens and stalls in a window, or buckets of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode, Outcome, Role
from profiler.forward_table import UNKNOWN, UNKNOWN_TIME, ForwardTable
from profiler.pyramid import Pyramid
from profiler.request_rows import RequestRows
from profiler.timeline.delays import Delays
from profiler.timeline.lifecycle import FOREVER, Lifecycle, Phase
from profiler.timeline.tiles import Lane, LaneKind
from profiler.token_gaps import DeviceTime, token_gaps

__all__ = ["LaneMaker"]

Ints = NDArray[np.int64]

SINGLES = 2  # items a column that are still shown each by itself
_FIELDS = ("kind", "start_ns", "end_ns", "forward", "number", "of", "tokens")


@dataclass(frozen=True, slots=True)
class LaneMaker:
    """Makes lanes of the requests of one trace."""

    forwards: ForwardTable
    rows: RequestRows
    lifecycle: Lifecycle
    device_time: DeviceTime | None
    mixed_extra_ns: Ints  # (forwards,) UNKNOWN where there is none
    delays: Delays
    end_ns: int

    def lane(self, rid: int, start_ns: int, end_ns: int, columns: int) -> Lane:
        """Items that reach into [start_ns, end_ns); buckets where there are more than about one a column."""
        items = self.items(rid)
        inside = (items["start_ns"] < end_ns) & (items["end_ns"] >= start_ns)
        items = {name: values[inside] for name, values in items.items()}
        ones = np.ones(len(items["kind"]), dtype=np.int64)
        lengths = items["end_ns"] - items["start_ns"]
        if len(ones) <= SINGLES * columns:
            return self._lane(rid, items, ones, lengths)
        return self._reduced(rid, items, lengths, start_ns, max(1.0, (end_ns - start_ns) / columns))

    def items(self, rid: int) -> dict[str, Ints]:
        """All items of a request as columns, in order of start; `forward` is a position, -1 for none."""
        one = self.rows.only(rid)
        parts = [self._waits(rid), self._chunks(one), self._tokens(one), *self._stalls(rid, one)]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in _FIELDS}
        order = np.argsort(columns["start_ns"], kind="stable")
        return {name: values[order] for name, values in columns.items()}

    def _waits(self, rid: int) -> dict[str, Ints]:
        """From arrival or retraction to the start of its next forward, which may be after its admission."""
        at = self.lifecycle.of(rid, Phase.WAITING)
        begin = self.lifecycle.since_ns[at]
        end = np.minimum(self.lifecycle.to_ns[at], self.end_ns)
        starts = self.forwards.start_ns[self.rows.forward[self.rows.of(rid)]]
        if len(starts):
            following = np.searchsorted(starts, end, side="left")
            admitted = (following < len(starts)) & (self.lifecycle.to_ns[at] != FOREVER)
            end = np.where(admitted, starts[np.minimum(following, len(starts) - 1)], end)
        return _items(LaneKind.QUEUED, begin, np.maximum(begin, end), np.full(len(at), -1))

    def _chunks(self, one: RequestRows) -> dict[str, Ints]:
        at = np.flatnonzero(one.role <= Role.LAST.value)
        forward = one.forward[at].astype(np.int64)
        attempt = one.attempt[at]
        first = np.flatnonzero(np.diff(attempt, prepend=-2))
        lengths = np.diff(first, append=len(at))
        number = np.arange(len(at)) - np.repeat(first, lengths) + 1
        whole = np.isin(one.role[at], (Role.LAST.value, Role.WHOLE.value))
        ended = np.repeat(np.logical_or.reduceat(whole, first), lengths) if len(at) else whole
        of = np.where(ended, np.repeat(lengths, lengths), UNKNOWN)
        tokens = one.extend_len[at].astype(np.int64)
        start, end = self.forwards.start_ns[forward], self.forwards.end_ns[forward]
        return _items(LaneKind.CHUNK, start, end, forward, number, of, tokens)

    def _tokens(self, one: RequestRows) -> dict[str, Ints]:
        results = self.forwards.result_end_ns[one.forward]
        gave = (one.outcome == Outcome.EMITTED.value) & (one.token_index >= 0)
        at = np.flatnonzero(gave & (results != UNKNOWN_TIME))
        forward = one.forward[at].astype(np.int64)
        return _items(LaneKind.TOKEN, results[at], results[at], forward, one.token_index[at].astype(np.int64))

    def _stalls(self, rid: int, one: RequestRows) -> list[dict[str, Ints]]:
        """Every stall, listed or not: up to the own forward, and the mixed extra at the end of it.

        Both within the gap: under overlap the own forward may begin before it.
        """
        gaps = token_gaps(one, self.forwards)
        forward = one.forward[gaps.row].astype(np.int64)
        number = one.token_index[gaps.row].astype(np.int64)
        own_start = np.clip(self.forwards.start_ns[forward], gaps.start_ns, gaps.end_ns)
        none = np.zeros(len(forward), dtype=np.int64)
        others = self.device_time.of_others(gaps, one)[0] if self.device_time else none
        held = _any_in(self.delays.held(rid), gaps.start_ns, gaps.end_ns)
        deferred = _any_in(self.delays.deferred(rid), gaps.start_ns, gaps.end_ns) & ~held
        kind = np.where(held, LaneKind.STALL_HELD, LaneKind.STALL_PREFILL)
        kind = np.where(deferred, LaneKind.STALL_DEFERRED, kind)
        is_stall = (others > 0) | held | deferred
        before = _items(kind, gaps.start_ns, own_start, forward, number)
        rides = (self.forwards.mode[forward] == ForwardMode.MIXED.value) & (
            one.role[gaps.row] == Role.DECODE.value
        )
        extra = self.mixed_extra_ns[forward]
        mixed = rides & (extra > 0)
        end = self.forwards.end_ns[forward]
        within = _items(LaneKind.STALL_MIXED, np.maximum(end - extra, gaps.start_ns), end, forward, number)
        unknown = rides & (extra == UNKNOWN)
        whole = _items(LaneKind.STALL_UNKNOWN, own_start, end, forward, number)
        return [
            {name: values[is_stall] for name, values in before.items()},
            {name: values[mixed] for name, values in within.items()},
            {name: values[unknown] for name, values in whole.items()},
        ]

    def _reduced(
        self, rid: int, items: dict[str, Ints], lengths: Ints, start_ns: int, column_ns: float
    ) -> Lane:
        """One bucket a kind and column; QUEUED items stay, since there are few of them."""
        order = np.argsort(items["kind"], kind="stable")
        items = {name: values[order] for name, values in items.items()}
        lengths = lengths[order]
        bounds = np.searchsorted(items["kind"], np.arange(len(LaneKind) + 1))
        origin = min(start_ns, int(items["start_ns"].min()))
        pyramid = Pyramid.build(bounds, items["start_ns"] - origin, lengths)
        level = pyramid.level_for(column_ns)
        if level is None:
            return self._lane(rid, items, np.ones_like(lengths), lengths)
        reduced = {name: values[level.longest] for name, values in items.items()}
        begin = (level.bucket << level.shift) + origin
        wide = level.count > 1
        reduced["start_ns"] = np.where(wide, np.minimum(begin, reduced["start_ns"]), reduced["start_ns"])
        reduced["end_ns"] = np.where(
            wide, np.maximum(begin + (1 << level.shift), reduced["end_ns"]), reduced["end_ns"]
        )
        return self._lane(rid, reduced, level.count, level.busy_ns)

    def _lane(self, rid: int, items: dict[str, Ints], count: Ints, busy_ns: Ints) -> Lane:
        order = np.argsort(items["start_ns"], kind="stable")
        forward = items["forward"][order]
        ids = np.full(len(forward), UNKNOWN, dtype=np.int64)
        known = forward != UNKNOWN
        ids[known] = self.forwards.forward_id[forward[known]]
        return Lane(
            rid=rid,
            kind=items["kind"][order].astype(np.uint8),
            start_ns=items["start_ns"][order],
            end_ns=items["end_ns"][order],
            forward_id=ids,
            number=items["number"][order],
            of=items["of"][order],
            tokens=items["tokens"][order],
            count=count[order],
            busy_ns=busy_ns[order],
        )


def _items(
    kind: "LaneKind | NDArray[np.int64]",
    start: Ints,
    end: Ints,
    forward: Ints,
    number: Ints | None = None,
    of: Ints | None = None,
    tokens: Ints | None = None,
) -> dict[str, Ints]:
    zeros = np.zeros(len(start), dtype=np.int64)
    return {
        "kind": zeros + kind,
        "start_ns": start,
        "end_ns": end,
        "forward": forward,
        "number": zeros if number is None else number,
        "of": zeros + UNKNOWN if of is None else of,
        "tokens": zeros if tokens is None else tokens,
    }


def _any_in(times: Ints, start: Ints, end: Ints) -> NDArray[np.bool_]:
    """Whether any of the times lies in (start, end] of each interval."""
    return np.searchsorted(times, end, side="right") > np.searchsorted(times, start, side="right")
