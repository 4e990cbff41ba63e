"""A timeline as the screen asks for it: tiles kept until the trace grows, one caller at a time."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import TypeVar, cast

from profiler.ledger.parts import GapDetail
from profiler.scheduler_state import SchedulerState
from profiler.timeline.kpis import Kpis
from profiler.timeline.tiles import Counters, Lane, LaneRef, Strip
from profiler.timeline.timeline import Timeline
from ui.tui.stall_index import StallIndex

__all__ = ["Source"]

T = TypeVar("T")

MOST_KEPT = 512  # a screen of 60 lanes at half a dozen zooms


class Source:
    """Answers from the timeline or from what it answered before; every method may raise TraceError."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.version = 0
        self._kept: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = RLock()

    def refresh(self) -> bool:
        """Read what was written since; whether there was any. For a thread of its own."""
        with self._lock:
            changed = self.timeline.refresh()
            if changed:
                self._kept.clear()
                self.version += 1
            return changed

    def ask(self, question: Callable[[Timeline], T]) -> T:
        """Something that is not kept."""
        with self._lock:
            return question(self.timeline)

    def strip(self, start_ns: int, end_ns: int, columns: int) -> Strip:
        """Forwards of a window."""
        return self.keep(("strip", start_ns, end_ns, columns), lambda t: t.strip(start_ns, end_ns, columns))

    def lane(self, rid: int, start_ns: int, end_ns: int, columns: int) -> Lane:
        """One request's items of a window."""
        key = ("lane", rid, start_ns, end_ns, columns)
        return self.keep(key, lambda t: t.lane(rid, start_ns, end_ns, columns))

    def counters(self, start_ns: int, end_ns: int, columns: int) -> Counters:
        """Step lines of a window."""
        return self.keep(
            ("counters", start_ns, end_ns, columns), lambda t: t.counters(start_ns, end_ns, columns)
        )

    def lane_refs(self, start_ns: int, end_ns: int, limit: int) -> tuple[list[LaneRef], int]:
        """Requests to draw in a window, and how many there are."""
        return self.keep(("refs", start_ns, end_ns, limit), lambda t: t.lane_refs(start_ns, end_ns, limit))

    def stalls(self) -> StallIndex:
        """All listed stalls."""
        return self.keep(("stalls",), lambda t: StallIndex.of(t.stalls))

    def lane_rids(self, start_ns: int, end_ns: int, limit: int) -> tuple[list[int], int]:
        """The requests of a longer list, and how many there are."""
        return self.keep(("rids", start_ns, end_ns, limit), lambda t: t.lane_rids(start_ns, end_ns, limit))

    def ref(self, rid: int) -> LaneRef:
        """A request as the lanes name it."""
        return self.keep(("ref", rid), lambda t: t.ref(rid))

    def kpis(self) -> Kpis:
        """The numbers of the whole trace."""
        return self.keep(("kpis",), lambda t: t.kpis)

    def state(self, t_ns: int) -> SchedulerState:
        """The scheduler's state at a moment."""
        return self.keep(("state", t_ns), lambda t: t.state_at(t_ns))

    def gap(self, rid: int, token_index: int) -> GapDetail | None:
        """One gap and what filled it."""
        return self.keep(("gap", rid, token_index), lambda t: t.gap(rid, token_index))

    def keep(self, key: Hashable, question: Callable[[Timeline], T]) -> T:
        """What `question` makes of the timeline, made once until the trace grows."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            else:
                self._kept[key] = question(self.timeline)
                if len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
            return cast(T, self._kept[key])
