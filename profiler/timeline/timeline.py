"""`Timeline`: all that both user interfaces draw of one trace, for any window and at any zoom."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from profiler.ledger.gap_reader import GapReader
from profiler.ledger.own_rows import SpecialRows
from profiler.ledger.parts import GapDetail
from profiler.ledger.report import StallReport
from profiler.ledger.source import ledger_source
from profiler.ledger.stall_report import stall_report
from profiler.open_silences import OpenSilences, open_silences_among
from profiler.replay import Replay
from profiler.scheduler_state import SchedulerState
from profiler.timeline import choice
from profiler.timeline.cache import load_index
from profiler.timeline.kpis import Kpis, largest
from profiler.timeline.lanes import LaneMaker
from profiler.timeline.requests import Requests, requests_of
from profiler.timeline.strip import counters, strip
from profiler.timeline.sums import sums
from profiler.timeline.tiles import Counters, Lane, LaneRef, Strip, Sums
from profiler.token_gaps import DeviceTime
from traces.reader import Trace, open_trace

__all__ = ["Timeline", "open_timeline"]

_LISTED = 50  # of each list of a stall report; views sort and scroll them


def open_timeline(path: Path) -> "Timeline":
    """The timeline of the trace at `path`; raises TraceError as `open_trace` does."""
    return Timeline(open_trace(path))


class Timeline:
    """Windows, lanes, counters, sums and states of one trace; times are the trace's nanoseconds.

    Of a growing trace it shows what `refresh` last read. Not for use by several threads at once.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._index = load_index(trace)

    @property
    def path(self) -> Path:
        """Where the trace lies."""
        return self.trace.path

    @property
    def ranks(self) -> tuple[int, ...]:
        """The trace's ranks."""
        return self.trace.ranks

    @property
    def num_forwards(self) -> int:
        """Forwards that have a time."""
        return len(self._index.forwards)

    @property
    def num_requests(self) -> int:
        """Requests that the trace has an entry of."""
        return len(self._requests.rid)

    @property
    def start_ns(self) -> int:
        """The first arrival or forward; 0 when there is neither."""
        return self._index.start_ns

    @property
    def end_ns(self) -> int:
        """Just after the last result or arrival, so that [start_ns, end_ns) holds everything."""
        return self._index.end_ns

    @property
    def chunk_budget_tokens(self) -> int | None:
        """The configured chunk size; where chunking is off or unknown, the largest chunk budget seen."""
        engine = self.trace.meta.get("engine")
        size = engine.get("chunked_prefill_size") if isinstance(engine, dict) else None
        if isinstance(size, int) and size > 0:
            return size
        return largest(self._index.forwards.chunk_budget_start_tokens)

    @property
    def largest_forward_tokens(self) -> int | None:
        """Most tokens, prefill and decode together, of one forward."""
        return self.kpis.largest_forward_tokens

    @property
    def stalls(self) -> pl.DataFrame:
        """`profiler.stalls.stalls`: those of at least twice their request's median gap, longest first."""
        return self._index.stalls

    @property
    def kpis(self) -> Kpis:
        """The numbers that stand above the picture."""
        return self._index.kpis

    @cached_property
    def summary(self) -> dict[str, Any]:
        """`profiler.summary.summarize`; takes seconds on a trace of a million forwards."""
        from profiler.summary import summarize  # loads scipy, which no picture waits for

        return summarize(self.trace)

    def strip(self, start_ns: int, end_ns: int, columns: int) -> Strip:
        """Forwards in [start_ns, end_ns), reduced to a few a column."""
        index = self._index
        return strip(index.forwards, index.pyramid, index.start_ns, start_ns, end_ns, columns)

    def lane_refs(self, start_ns: int, end_ns: int, limit: int) -> tuple[list[LaneRef], int]:
        """Requests to draw in a window, by arrival, and how many there are."""
        return choice.lane_refs(self._requests, self._index.rows, self._index.stalls, start_ns, end_ns, limit)

    def lane_rids(self, start_ns: int, end_ns: int, limit: int) -> tuple[list[int], int]:
        """The requests of `lane_refs`, in its order, for lists of which few are on screen."""
        return choice.lane_rids(self._requests, self._index.stalls, start_ns, end_ns, limit)

    def lane(self, rid: int, start_ns: int, end_ns: int, columns: int) -> Lane:
        """A request's items in a window, reduced to a few a column."""
        return self._lanes.lane(rid, start_ns, end_ns, columns)

    def counters(self, start_ns: int, end_ns: int, columns: int) -> Counters:
        """Step lines of KV pages, in-flight chunks and queues over a window."""
        return counters(self._index.forwards, start_ns, end_ns, columns)

    def sums(self, start_ns: int, end_ns: int) -> Sums:
        """Exact sums over [start_ns, end_ns)."""
        return sums(self._index.forwards, self._index.emitted, self._index.stalls, start_ns, end_ns)

    def gap(self, rid: int, token_index: int) -> GapDetail | None:
        """The gap before a request's token, taken apart."""
        return self._gap_reader.gap(rid, token_index)

    def gap_at(self, rid: int, t_ns: int) -> GapDetail | None:
        """The gap of a request that holds a time."""
        return self._gap_reader.at(rid, t_ns)

    def longest_gap(self, rid: int) -> GapDetail | None:
        """A request's longest gap."""
        return self._gap_reader.longest(rid)

    def worst_gap(self) -> GapDetail | None:
        """The longest gap of all; None when no request gave two tokens."""
        worst = self._index.worst
        return None if worst is None else self.gap(*worst)

    @cached_property
    def stall_report(self) -> StallReport:
        """The ledger of all gaps; takes seconds on a trace of a million forwards."""
        return stall_report(self.trace, top=_LISTED)

    @cached_property
    def open_silences(self) -> OpenSilences | None:
        """Requests that are silent at the end, for longer than in any gap they had; None for nobody."""
        index = self._index
        return open_silences_among(self.trace, index.forwards, index.rows, index.lifecycle)

    def state_at(self, t_ns: int) -> SchedulerState:
        """The scheduler's state at a time."""
        return self._replay.at(t_ns)

    def next_stall(self, t_ns: int) -> dict[str, Any] | None:
        """The first listed stall that begins after a time."""
        starts, by_time = self._stall_starts
        at = int(np.searchsorted(starts, t_ns, side="right"))
        return self._index.stalls.row(int(by_time[at]), named=True) if at < len(by_time) else None

    def previous_stall(self, t_ns: int) -> dict[str, Any] | None:
        """The last listed stall that begins before a time."""
        starts, by_time = self._stall_starts
        at = int(np.searchsorted(starts, t_ns, side="left")) - 1
        return self._index.stalls.row(int(by_time[at]), named=True) if at >= 0 else None

    def forward_start(self, t_ns: int, step: int) -> int | None:
        """Start of the next (1) or previous (-1) forward; None at the end of the trace."""
        starts = self._index.forwards.start_ns
        at = int(np.searchsorted(starts, t_ns, side="right" if step > 0 else "left")) - (step < 0)
        return int(starts[at]) if 0 <= at < len(starts) else None

    def start_of_forward(self, forward_id: int) -> int | None:
        """When a forward began; None if the trace has no such forward."""
        at = np.flatnonzero(self._index.forwards.forward_id == forward_id)
        return int(self._index.forwards.start_ns[at[0]]) if len(at) else None

    def ref(self, rid: int) -> LaneRef:
        """A request as views name it."""
        return choice.ref(self._requests, self._index.rows, rid)

    def request_by_name(self, text: str) -> int | None:
        """The request of exactly this name."""
        return self._requests.by_name(text)

    def search(self, text: str, limit: int) -> list[LaneRef]:
        """Requests whose name contains the text, whatever its case."""
        return [self.ref(rid) for rid in self._requests.search(text, limit)]

    def refresh(self) -> bool:
        """Read what a growing trace has gained; whether there was anything."""
        if not self.trace.poll():
            return False
        self._index = load_index(self.trace)
        for name in (
            "_requests",
            "_lanes",
            "_gap_reader",
            "_replay",
            "_stall_starts",
            "open_silences",
            "stall_report",
            "summary",
        ):
            self.__dict__.pop(name, None)
        return True

    @cached_property
    def _requests(self) -> Requests:
        return requests_of(self.trace)

    @cached_property
    def _lanes(self) -> LaneMaker:
        index = self._index
        return LaneMaker(
            forwards=index.forwards,
            rows=index.rows,
            lifecycle=index.lifecycle,
            device_time=DeviceTime.of_forwards(index.forwards),
            mixed_extra_ns=index.mixed_extra_ns,
            delays=index.delays,
            end_ns=index.end_ns,
        )

    @cached_property
    def _gap_reader(self) -> GapReader:
        index = self._index
        special = SpecialRows.of(index.rows)
        source = ledger_source(self.trace, index.forwards, special, index.mixed_extra_ns)
        return GapReader(source, index.rows.only, self._requests.name)

    @cached_property
    def _replay(self) -> Replay:
        index = self._index
        return Replay(self.trace, index.forwards, index.rows, self._requests, index.lifecycle, index.start_ns)

    @cached_property
    def _stall_starts(self) -> tuple[Any, Any]:
        """Starts of the listed stalls in time order, and where each stands in the list."""
        starts = self._index.stalls["start_ns"].to_numpy()
        by_time = np.argsort(starts, kind="stable")
        return starts[by_time], by_time
