"""The time axis: round moments, the cursor, and the mark."""

import math

from ui.tui.cells import Cells, blank
from ui.tui.ink import Ink
from ui.tui.text import instant
from ui.tui.view import View

__all__ = ["axis_cells", "decimals_of", "tick_cells"]

LEAST_APART = 8  # cells from one label to the next


def axis_cells(view: View, columns: int, mark_ns: int | None) -> Cells:
    """The axis over a view; a label begins at the column of its moment, and gives way to the cursor's."""
    decimals = max(decimals_of(view.span_ns, columns), 3)
    text = instant(view.cursor_ns, decimals)
    delta = ""
    if mark_ns is not None:
        delta = f" {(view.cursor_ns - mark_ns) / 1e9:+,.{decimals}f} from mark"
    cursor, start = _cursor_text(view, columns, text, delta)
    cells = tick_cells(view.start_ns, view.end_ns, columns, taken=(start - 1, start + len(cursor) + 1))
    if mark_ns is not None and (column := view.column(mark_ns, columns)) is not None:
        cells.write(column, "▽", Ink.WATCH)
    cells.write(start, cursor, Ink.STRONG)
    return cells


def tick_cells(start_ns: int, end_ns: int, columns: int, taken: tuple[int, int] = (0, 0)) -> Cells:
    """Labels at round moments of a range; none reaches into the taken columns or past the end."""
    cells = blank(columns)
    step_ns = _step_ns((end_ns - start_ns) * LEAST_APART / columns)
    longest = len(instant(end_ns, _decimals(step_ns))) + 2
    if longest > LEAST_APART:
        step_ns = _step_ns((end_ns - start_ns) * longest / columns)
    decimals = _decimals(step_ns)
    t_ns = -(-start_ns // step_ns) * step_ns
    while t_ns < end_ns:
        column = (t_ns - start_ns) * columns // (end_ns - start_ns)
        text = instant(t_ns, decimals)
        if column + len(text) <= columns and (column >= taken[1] or column + len(text) <= taken[0]):
            cells.write(column, text, Ink.MUTED)
        t_ns += step_ns
    return cells


def decimals_of(span_ns: int, columns: int) -> int:
    """Decimals of a second that tell two cells apart."""
    return _decimals(max(span_ns // columns, 1))


def _step_ns(least_ns: float) -> int:
    """The smallest 1, 2 or 5 times a power of ten that is at least so long."""
    power = 10.0 ** math.floor(math.log10(max(least_ns, 1)))
    return next(round(power * times) for times in (1, 2, 5, 10) if power * times >= least_ns - 1e-6)


def _decimals(step_ns: int) -> int:
    return max(0, 9 - math.floor(math.log10(step_ns)))


def _cursor_text(view: View, columns: int, text: str, delta: str) -> tuple[str, int]:
    """What marks the cursor, and its first column; at an edge when it is out of sight."""
    column = view.column(view.cursor_ns, columns)
    if column is None:
        text = f"◂ {text}" if view.cursor_ns < view.start_ns else f"{text} ▸"
        return text, 0 if view.cursor_ns < view.start_ns else columns - len(text)
    for right in (f"▼ {text}{delta}", f"▼ {text}"):
        if column + len(right) <= columns:
            return right, column
    left = f"{text} ▼"
    return left, max(column - len(left) + 1, 0)
