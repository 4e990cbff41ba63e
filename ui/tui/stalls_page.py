"""The Stalls screen as lines: a view composed for a terminal of some size."""

from collections.abc import Iterator

from profiler.ledger.report import StallReport
from ui import words
from ui.tui.frame import bar_line, key_bar, rule, too_small
from ui.tui.ink import Ink
from ui.tui.picture import Picture
from ui.tui.stalls_chunk_rows import blamed_forwards
from ui.tui.stalls_chunks import chunks_panel
from ui.tui.stalls_head import head_lines
from ui.tui.stalls_layout import BETWEEN, StallsLayout, stalls_layout
from ui.tui.stalls_ledger_panel import ledger_panel
from ui.tui.stalls_table import list_lines
from ui.tui.stalls_view import Panel, StallsView
from ui.tui.text import Line, fit, together, wrapped

__all__ = ["compose_stalls"]

KEYS = (
    ("↑↓", "choose"),
    ("Enter", "go to this instant"),
    ("Tab", "next panel"),
    ("s", "sort"),
    ("r", "group"),
    ("/", "search"),
    ("c", "copy row"),
    ("[ ]", "stall"),
    ("?", "help"),
    ("q", "quit"),
)
BRIEF_KEYS = (
    ("↑↓", "choose"),
    ("Enter", "go there"),
    ("Tab", "panel"),
    ("s", "sort"),
    ("r", "group"),
    ("/", "find"),
    ("?", "help"),
    ("q", "quit"),
)


def compose_stalls(view: StallsView, picture: Picture, width: int, height: int) -> list[Line]:
    """`height` lines of `width` cells each."""
    chunks_first = view.panel is Panel.CHUNKS
    place = stalls_layout(width, height, len(view.rows), chunks_first=chunks_first)
    if place is None:
        return [fit(line, width) for line in [too_small(width, height), *([[]] * (height - 1))]]
    body = _empty(view, picture, place) if view.row is None else _full(view, place)
    lines = [*head_lines(view, picture, place), *body]
    lines = [*lines, *([[]] * (height - 1 - len(lines)))][: height - 1]
    return [fit(line, width) for line in [*lines, _last(view, place)]]


def _full(view: StallsView, place: StallsLayout) -> list[Line]:
    space: list[Line] = [[]] if place.wide else []
    return [
        *space,
        *list_lines(view, place),
        rule(place.width),
        *_panels(view, place),
        *space,
        _foot(view, place),
    ]


def _panels(view: StallsView, place: StallsLayout) -> list[Line]:
    rows = place.panel_rows
    left = ledger_panel(view, place.left_cells, rows, wide=place.wide) if place.left_cells else []
    right = chunks_panel(view, place.right_cells, rows) if place.right_cells else []
    if not left or not right:
        return [[(" ", Ink.BLANK), *line] for line in left or right]
    divider = f" │{' ' * (BETWEEN - 2)}"
    return [
        [
            (" ", Ink.BLANK),
            *fit(ledger, place.left_cells),
            (divider, Ink.RULE),
            *fit(chunks, place.right_cells),
        ]
        for ledger, chunks in zip(left, right, strict=True)
    ]


def _empty(view: StallsView, picture: Picture, place: StallsLayout) -> list[Line]:
    """Why there is no row; nothing while it is still being found out."""
    report = view.report
    if report is None:
        return []
    said = "No token came later than its own decode forwards needed."
    if not report.gaps:
        said = _no_gap(picture)
    return [[], *([(" ", Ink.BLANK), *line] for line in wrapped([(said, Ink.MUTED)], place.cells))]


def _no_gap(picture: Picture) -> str:
    if picture.following.badge == "live":
        return "A wait lies between two tokens of a request: the first will be shown when there is one."
    if picture.source.timeline.trace.meta.get("provenance") == "imported":
        return "The trace was imported, and its source may not tell which forward gave which token."
    return "A wait lies between two tokens of a request."


def _foot(view: StallsView, place: StallsLayout) -> Line:
    """What the numbers rest on."""
    groups: Iterator[Line] = (
        [(f"· {text}" if i else text, Ink.MUTED)] for i, text in enumerate(_basis(view))
    )
    return [(" ", Ink.BLANK), *together(groups, place.cells, 1)]


def _basis(view: StallsView) -> Iterator[str]:
    if view.gap is not None and view.chunks:
        blamed, inside = blamed_forwards(view.gap, view.chunks)
        lie = "lies" if blamed == 1 else "lie"
        yield f"{inside:,} of {words.plural(blamed, 'blamed forward')} {lie} inside the gap"
    yield "times in integer ns, shown rounded"
    report: StallReport | None = view.report
    if report is not None and view.chunks:
        yield f"forwards shared by {report.split}"
    if report is not None and report.mixed_extra_estimator is not None:
        yield f"mixed extra by {report.mixed_extra_estimator}"


def _last(view: StallsView, place: StallsLayout) -> Line:
    if view.message:
        return bar_line(view.message, place.width)
    return key_bar(KEYS, place.width) if place.wide else key_bar(BRIEF_KEYS, place.width, 1)
