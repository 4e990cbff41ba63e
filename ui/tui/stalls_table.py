"""The list of worst stalls: who waited, since when, how late, for what and for whom."""

from collections.abc import Sequence

from rich.cells import cell_len

from profiler.ledger.report import StallGroup
from ui import words
from ui.part_words import cause_of
from ui.stall_words import culprit_shares, names_words
from ui.tui.ink import BAND, Ink
from ui.tui.stalls_bar import bar, cause_ink
from ui.tui.stalls_layout import StallsLayout
from ui.tui.stalls_numbers import Durations
from ui.tui.stalls_rows import Order, in_sight
from ui.tui.stalls_view import Panel, StallsView
from ui.tui.text import Line, between, clip, fit, instant, shown, span_length, together

__all__ = ["list_lines", "row_text"]

NAME_CELLS = 10
MOST_NAMED = 4
CAUSE_CELLS = 19
SINCE_CELLS, LATE_CELLS, LOST_CELLS = 9, 10, 13
VICTIMS_WIDE, VICTIMS_COMPACT = 16, 14
BAR_CELLS = 14


def list_lines(view: StallsView, place: StallsLayout) -> list[Line]:
    """Heads, then so many rows as the layout has, around the chosen one."""
    seen = in_sight(len(view.rows), view.at, place.list_rows)
    late = Durations.in_ms(max((row.late_ns for row in view.rows), default=0))
    lost = Durations.of_sums(max((row.lost_ns for row in view.rows), default=0))
    most_ns = max((row.late_ns for row in view.rows), default=0)
    lines = [_title(view, seen, place)] if place.wide else []
    lines.append(_heads(view, seen, place))
    lines += [_row(view, i, late, lost, most_ns, place) for i in seen]
    return [*lines, *([[]] * (place.list_rows - len(seen)))]


def row_text(row: StallGroup) -> str:
    """A row in words, to be copied elsewhere."""
    late, lost = Durations.in_ms(row.late_ns), Durations.of_sums(row.lost_ns)
    cells = (
        names_words(row.names),
        f"since {instant(row.start_ns)} s",
        f"late by {late.with_unit(row.late_ns)}",
        f"lost in all {lost.with_unit(row.lost_ns)}",
        cause_of(row.cause).words,
        culprit_shares(row),
    )
    return "\t".join(cell for cell in cells if cell)


def _title(view: StallsView, seen: range, place: StallsLayout) -> Line:
    left: Line = [(" Worst stalls", Ink.STRONG), (f"  {_of(view, seen)}", Ink.MUTED)]
    group = "same instant" if view.grouped else "each request"
    right = f"sort: s {view.order.value}   group: r {group} "
    return between(left, [(right, Ink.MUTED)], place.width)


def _heads(view: StallsView, seen: range, place: StallsLayout) -> Line:
    """Heads of the columns; that of the order is strong."""
    inks = {order: Ink.STRONG if view.order is order else Ink.MUTED for order in Order}
    late, lost = Order.LATE, Order.LOST
    line: Line = [(f"   {'victims':<{_victims(place)}}{'since':>{SINCE_CELLS}}", Ink.MUTED)]
    if place.wide:
        line += [(f"   {'late by, each':<{_bar(place) + LATE_CELLS}}", inks[late])]
        line += [(f"{'lost in all':>{LOST_CELLS}}", inks[lost]), (f"   {'cause':<{CAUSE_CELLS}}", Ink.MUTED)]
        return fit([*line, ("culprits, share of the gap", Ink.MUTED)], place.width)
    line += [(f"{'late by':>{LATE_CELLS}}", inks[late]), (f"{'lost in all':>{LOST_CELLS}}", inks[lost])]
    right: Line = [(f"  {_of(view, seen)} ", Ink.MUTED)]
    return between(
        together([line, [("culprits", Ink.MUTED)]], place.width - span_length(right)), right, place.width
    )


def _of(view: StallsView, seen: range) -> str:
    """Which rows are in sight, where some are not."""
    return f"{seen.start + 1}–{seen.stop} of {len(view.rows)}" if len(seen) < len(view.rows) else ""


def _row(
    view: StallsView, at: int, late: Durations, lost: Durations, most_ns: int, place: StallsLayout
) -> Line:
    row, chosen = view.rows[at], at == view.at
    band = BAND if chosen else 0
    pointed = chosen and view.panel is Panel.STALLS
    cause = cause_of(row.cause)
    line: Line = [(" ", Ink.BLANK), ("▸ " if pointed else "  ", Ink.ACCENT | band)]
    line += [(text, ink | band) for text, ink in _who(row, _victims(place))]
    line += [(f"{instant(row.start_ns)} s".rjust(SINCE_CELLS), Ink.TEXT | band)]
    if place.wide:
        line += [("   ", Ink.TEXT | band), *bar(cause, row.late_ns, most_ns, _bar(place))]
    line += [(f"{late.with_unit(row.late_ns):>{LATE_CELLS}}", Ink.STRONG | band)]
    line += [(f"{lost.with_unit(row.lost_ns):>{LOST_CELLS}}", Ink.TEXT | band)]
    told = f" {cause.words}" if place.wide else ""
    line += [("   " if place.wide else "  ", Ink.TEXT | band), (cause.glyph, cause_ink(cause) | band)]
    line += [(told.ljust(CAUSE_CELLS - 1) if place.wide else " ", Ink.MUTED | band)]
    line += [(_culprits(row, place.width - 1 - span_length(line)), Ink.TEXT | band)]
    return [*fit(line, place.width - 1, Ink(Ink.TEXT) | band), (" ", Ink.BLANK)]  # type: ignore[arg-type]


def _culprits(row: StallGroup, cells: int) -> str:
    """Shares of as many culprits as there is room for, the others counted; else the first one's name."""
    said = [culprit_shares(row, _show, most) for most in range(MOST_NAMED, 0, -1)]
    said += [_show(culprit.name) for culprit in row.culprits[:1]]
    return next((text for text in said if cell_len(text) <= cells), clip(said[-1], cells))


def _who(row: StallGroup, cells: int) -> Line:
    """Who waited, and how many where not every name stands there."""
    every = ", ".join(_show(name) for name in row.names[:2])
    if row.requests <= 2 and cell_len(every) < cells:
        return fit([(every, Ink.STRONG)], cells)
    times = f" ×{row.requests}" if row.requests > 1 else ""
    names = _names(row.names, cells - len(times) - 1)
    if names is None:
        names, times = clip(_many(row), cells - 1), ""
    gap = " " * (cells - cell_len(names) - len(times))
    return [(names, Ink.STRONG), (times, Ink.MUTED), (gap, Ink.TEXT)]


def _many(row: StallGroup) -> str:
    return words.plural(row.requests, "request") if row.requests > 1 else _show(row.names[0])


def _names(names: Sequence[str], cells: int) -> str | None:
    """The names in at most so many cells, a run of numbered ones as decode-1–6 if need be; else None."""
    said = [names_words(names, _show, most) for most in (3, 2, 1)]
    if "," not in said[0] and len(names) > 1:
        stem = names[0].rstrip("0123456789")
        said.append(f"{_show(names[0])}–{_show(names[-1].removeprefix(stem))}")
    return next((text for text in said if cell_len(text) <= cells), None)


def _show(name: str) -> str:
    return shown(name, NAME_CELLS)


def _victims(place: StallsLayout) -> int:
    return VICTIMS_WIDE + max(0, min(place.width - 120, 24) // 3) if place.wide else VICTIMS_COMPACT


def _bar(place: StallsLayout) -> int:
    return BAR_CELLS + max(0, place.width - 120) // 4
