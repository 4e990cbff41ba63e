"""The requests as a table; Enter on a row takes the replay to that request's longest gap."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Static

from profiler.timeline.tiles import LaneRef
from ui import words
from ui.tui.source import Source
from ui.tui.text import instant, shown

__all__ = ["MOST_ROWS", "RequestTable"]

MOST_ROWS = 2_000
NAME_CELLS = 32
KEYS = "Enter goes to the longest gap    Esc closes"
HEADS = ("request", "arrival s", "prompt", "chunks", "TTFT", "longest stall", "finish s")


class RequestTable(Screen[int | None]):
    """Dismissed with the rid of the chosen row, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,r", "close", "close")]
    CSS = "RequestTable > Static { height: 1; padding: 0 1; } RequestTable > DataTable { height: 1fr; }"

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source

    def compose(self) -> ComposeResult:
        """A line that says what is listed, then the table."""
        yield Static(id="head")
        yield DataTable[Text](cursor_type="row", zebra_stripes=False)

    def on_mount(self) -> None:
        """Fill the table once; it does not grow while it is open."""
        timeline = self._source.timeline
        refs, total = self._source.ask(
            lambda t: t.lane_refs(timeline.start_ns, timeline.end_ns + 1, MOST_ROWS)
        )
        longest = self._source.stalls().longest_by_rid()
        table = self.query_one(DataTable)
        for head in HEADS:
            table.add_column(Text(head) if head == "request" else Text(head, justify="right"))
        table.add_rows(_cells(ref, longest.get(ref.rid)) for ref in refs)
        self._rids = [ref.rid for ref in refs]
        self.query_one("#head", Static).update(Text(f"{_listed(len(refs), total)}    {KEYS}"))
        table.focus()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter."""
        self.dismiss(self._rids[event.cursor_row])

    def action_close(self) -> None:
        """Back to the replay as it was."""
        self.dismiss(None)


def _listed(shown_rows: int, total: int) -> str:
    requests = words.plural(total, "request")
    return requests if shown_rows == total else f"{shown_rows:,} of {requests}: / finds the others"


def _cells(ref: LaneRef, stall_ns: int | None) -> list[Text]:
    ttft = None
    if ref.first_token_ns is not None and ref.arrival_ns is not None:
        ttft = (ref.first_token_ns - ref.arrival_ns) / 1e9
    right = (
        instant(ref.arrival_ns),
        words.count(ref.prompt_tokens),
        words.count(ref.chunks),
        words.seconds(ttft),
        words.seconds(None if stall_ns is None else stall_ns / 1e9),
        instant(ref.finish_ns),
    )
    return [Text(shown(ref.name, NAME_CELLS)), *(Text(text, justify="right") for text in right)]
