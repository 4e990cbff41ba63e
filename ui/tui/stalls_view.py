"""What the Stalls screen shows: the report, its rows in some order, and the wait and chunk chosen."""

from dataclasses import dataclass, field
from enum import Enum

from profiler.ledger.parts import Chunk, GapDetail
from profiler.ledger.report import StallGroup, StallReport
from profiler.timeline.timeline import Timeline
from ui import words
from ui.tui.stalls_chunk_rows import chunks_of
from ui.tui.stalls_rows import Order, holds, of_each, ordered, same_stall
from ui.tui.text import instant, shown
from ui.tui.view import Moment

__all__ = ["Panel", "StallsView"]

TYPED_CELLS = 24


class Panel(Enum):
    """What the arrows move in."""

    STALLS = 0
    CHUNKS = 1


@dataclass(slots=True)
class StallsView:
    """The state of the screen. `timeline` is its own, which no other thread reads."""

    timeline: Timeline | None = None
    report: StallReport | None = None
    lacking: str = ""  # why there is no report
    working: bool = False
    working_s: float = 0.0
    message: str = ""
    order: Order = Order.LATE
    grouped: bool = True
    panel: Panel = Panel.STALLS
    rows: list[StallGroup] = field(default_factory=list)
    at: int = 0  # the chosen row
    chunk_at: int = 0
    gap: GapDetail | None = None  # of the chosen row
    chunks: tuple[Chunk, ...] = ()  # of that gap
    sought: str = ""

    @property
    def row(self) -> StallGroup | None:
        """The chosen row."""
        return self.rows[self.at] if self.rows else None

    @property
    def chunk(self) -> Chunk | None:
        """The chosen chunk of the chosen row's gap."""
        return self.chunks[self.chunk_at] if self.chunks else None

    def show(self, timeline: Timeline, report: StallReport) -> None:
        """A new report; the same wait stays chosen where it is still among the rows."""
        self.timeline, self.report = timeline, report
        self._list()

    def move(self, steps: int) -> None:
        """The next row or chunk below (1) or above (-1)."""
        if self.panel is Panel.CHUNKS and self.chunks:
            self.chunk_at = min(max(self.chunk_at + steps, 0), len(self.chunks) - 1)
        elif self.rows:
            self._choose(min(max(self.at + steps, 0), len(self.rows) - 1))

    def next_in_time(self, direction: int) -> None:
        """The row whose wait began next (1) or before (-1), whatever the order of the list."""
        if self.row is None:
            return
        by_time = sorted(range(len(self.rows)), key=lambda i: (self.rows[i].start_ns, self.rows[i].rids))
        at = by_time.index(self.at) + direction
        if 0 <= at < len(by_time):
            self._choose(by_time[at])
        else:
            which = "after" if direction > 0 else "before"
            self.message = f"no wait of the list {which} {instant(self.row.start_ns)} s"

    def next_panel(self) -> None:
        """The arrows to the chunks, or back to the list."""
        if self.panel is Panel.CHUNKS:
            self.panel = Panel.STALLS
        elif self.chunks:
            self.panel = Panel.CHUNKS
        else:
            self.message = "nobody's chunk took of this wait"

    def next_order(self) -> None:
        """Sort by the other column."""
        self.order = Order.LOST if self.order is Order.LATE else Order.LATE
        self._list()

    def toggle_groups(self) -> None:
        """One row for all who waited at one instant, or one for each."""
        self.grouped = not self.grouped
        self._list()

    def search(self, text: str) -> None:
        """Choose the next row in which somebody of that name waited or took time."""
        self.sought = text.strip()
        self.next_match()

    def next_match(self) -> None:
        """The next row that holds what was searched for last."""
        if not self.sought:
            self.message = "nothing searched for yet: / searches"
            return
        order = [*range(self.at + 1, len(self.rows)), *range(self.at + 1)]
        found = [i for i in order if i < len(self.rows) and holds(self.rows[i], self.sought)]
        if not found:
            listed = words.plural(len(self.rows), "row")
            self.message = f"no name in the {listed} holds {shown(self.sought, TYPED_CELLS)!r}"
            return
        self.panel = Panel.STALLS
        self._choose(found[0])
        if len(found) > 1:
            self.message = f"{words.count(len(found))} rows match: n goes to the next"

    @property
    def moment(self) -> Moment | None:
        """Where the chosen wait began, or where the chosen chunk's forward did."""
        if self.gap is None:
            return None
        at_ns = self.gap.start_ns
        if self.panel is Panel.CHUNKS and self.chunk is not None:
            at_ns = self.chunk.start_ns
        return Moment(self.gap.rid, at_ns, self.gap.start_ns, self.gap.end_ns)

    def _list(self) -> None:
        """Make the rows anew and choose the one that was chosen, else the first."""
        before = self.row
        rows = () if self.report is None else self.report.groups
        if not self.grouped and self.timeline is not None:
            rows = tuple(of_each(rows, self.timeline.gap_at))
        self.rows = ordered(rows, self.order)
        kept = (i for i, row in enumerate(self.rows) if before is not None and same_stall(before, row))
        chunk = self.chunk
        self._choose(next(kept, 0))
        if chunk is not None:
            self._keep_chunk(chunk)

    def _choose(self, at: int) -> None:
        """A row, its gap, and the chunk that took most of it."""
        self.at = at
        row = self.row
        self.gap = None
        if row is not None and self.timeline is not None:
            self.gap = self.timeline.gap(row.rids[0], row.token_index)
        self.chunks = () if self.gap is None else chunks_of(self.gap)
        costs = [chunk.in_gap_ns for chunk in self.chunks]
        self.chunk_at = costs.index(max(costs)) if costs else 0
        if not self.chunks:
            self.panel = Panel.STALLS

    def _keep_chunk(self, chosen: Chunk) -> None:
        """Choose the same chunk where it is still there."""
        for i, chunk in enumerate(self.chunks):
            if (chunk.forward_id, chunk.rid) == (chosen.forward_id, chosen.rid):
                self.chunk_at = i
