"""The two charts of the Saturation screen: throughput and forward time against tokens per forward."""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ui import words
from ui.tui.cells import blank
from ui.tui.ink import Ink
from ui.tui.plot import Axis, Plot, decimal_ticks, token_ticks
from ui.tui.saturation_view import SaturationView
from ui.tui.text import Line, fit

if TYPE_CHECKING:
    from profiler.saturation_report import SaturationReport

__all__ = ["LABEL_CELLS", "chart_basis", "throughput_lines", "time_lines", "tokens_axis_line"]

Array = NDArray[np.float64]

LABEL_CELLS = 7  # of the values beside a chart, with a space
ROWS_APART = 2  # from one value to the next
HEADROOM = 1.15  # above the best throughput, for a line of words
NEAR = 3.0  # times beyond the measured times that a limit may lie and still be drawn
FIT, SIZE, POINT, ADVISED, DASH = Ink.PREFILL, "◦", "●", "▼", "╌"


def throughput_lines(view: SaturationView, columns: int, rows: int) -> list[Line]:
    """Tokens a second: sizes, fit, plateau, saturation point and interval, and the advised chunk."""
    report, x, curve = view.report, _tokens_axis(view), _curve(view)
    if report is None or x is None:
        return _empty_chart(view, columns, rows)
    sizes, rates = _column(report.sizes, "tokens"), _column(report.sizes, "tokens_per_s")
    most = max(rates.max(initial=0.0), (curve[0] / curve[1]).max(initial=0.0))
    y = Axis(0.0, float(most) * HEADROOM, log=False)
    plot = Plot(columns, rows, x, y)
    _put_interval(plot, report)
    plot.curve(curve[0], curve[0] / curve[1], FIT)
    plot.points(sizes, rates, SIZE, Ink.MUTED)
    for dip in report.found.dips:
        inside = report.sizes.filter(pl.col("tokens").is_between(dip.first, dip.last))
        plot.points(_column(inside, "tokens"), _column(inside, "tokens_per_s"), "▲", Ink.WATCH)
    if report.found.tokens is not None and (fitted := report.fitted(report.found.tokens)) is not None:
        at = np.array([float(fitted.tokens)]), np.array([fitted.tokens_per_s])
        plot.points(*at, POINT, Ink.STRONG)
    _put_plateau(plot, report)
    _put_chunks(plot, view, named=rows >= 8)
    _put_point_words(plot, report, rows)
    ticks = {plot.row(tick): _short(tick) for tick in decimal_ticks(y, rows // ROWS_APART)}
    return _labelled(plot, ticks)


def time_lines(view: SaturationView, columns: int, rows: int) -> list[Line]:
    """Milliseconds of a forward, in logarithms: sizes, fit, the limit on the longest ITL, the chunks."""
    report, x, curve = view.report, _tokens_axis(view), _curve(view)
    if report is None or x is None:
        return _empty_chart(view, columns, rows)
    sizes, times_ms = _column(report.sizes, "tokens"), _column(report.sizes, "time_ns") / 1e6
    shown_ms = np.concatenate([times_ms, curve[1] * 1e3])
    low, high = float(shown_ms.min()), float(shown_ms.max())
    limit_ms = None if view.limits.itl_max_s is None else view.limits.itl_max_s * 1e3
    if limit_ms is not None and low / NEAR <= limit_ms <= high * NEAR:
        low, high = min(low, limit_ms), max(high, limit_ms)
    y = Axis(low / 1.2, high * 1.2, log=True)
    plot = Plot(columns, rows, x, y)
    _put_interval(plot, report)
    plot.curve(curve[0], curve[1] * 1e3, FIT)
    plot.points(sizes, times_ms, SIZE, Ink.MUTED)
    if limit_ms is not None:
        _put_limit(plot, limit_ms, rows)
    _put_chunks(plot, view, named=False)
    ticks = {plot.row(tick): f"{tick:,.10g}" for tick in decimal_ticks(y, rows // ROWS_APART)}
    return _labelled(plot, ticks)


def chart_basis(view: SaturationView) -> Line:
    """What the line of the charts is, where it is not the fit."""
    report = view.report
    modelled = report is not None and not report.curve.height and view.modelled is not None
    return [("  line: cost model", Ink.MUTED)] if modelled else []


def tokens_axis_line(view: SaturationView, columns: int) -> Line:
    """Tokens per forward, below either chart."""
    x = _tokens_axis(view)
    cells = blank(columns)
    if x is not None:
        plot = Plot(columns, 1, x, Axis(0.0, 1.0, log=False))
        for tick in token_ticks(x, columns // 8):
            text = words.count(tick)
            column = plot.column(float(tick))
            if column is not None and column + len(text) <= columns:
                cells.write(column, text, Ink.MUTED)
    return [(" " * LABEL_CELLS, Ink.BLANK), *cells.spans()]


def _curve(view: SaturationView) -> tuple[Array, Array]:
    """(points,) tokens and seconds of the fit, else of the cost model, else none."""
    if view.report is not None and view.report.curve.height:
        return _column(view.report.curve, "tokens"), _column(view.report.curve, "time_ns") / 1e9
    if view.modelled is not None:
        return np.array(view.modelled.tokens, dtype=np.float64), np.array(view.modelled.times_s)
    return np.empty(0), np.empty(0)


def _tokens_axis(view: SaturationView) -> Axis | None:
    """From the smallest to the largest size measured or modelled; None where there are not two."""
    if view.report is None:
        return None
    sizes = np.concatenate([_column(view.report.sizes, "tokens"), _curve(view)[0]])
    if not len(sizes) or sizes.min() == sizes.max():
        return None
    return Axis(float(sizes.min()), float(sizes.max()), log=True)


def _put_interval(plot: Plot, report: "SaturationReport") -> None:
    if report.found.low is not None and report.found.high is not None:
        plot.band(report.found.low, report.found.high)


def _put_plateau(plot: Plot, report: "SaturationReport") -> None:
    plateau = report.found.plateau
    if plateau is None or (row := plot.row(plateau.tokens_per_s)) is None:
        return
    plot.text(row - 1 if row else 1, 1, f"plateau {_short(plateau.tokens_per_s)} tok/s", Ink.MUTED)
    plot.horizontal(plateau.tokens_per_s, DASH, Ink.RULE)


def _put_limit(plot: Plot, limit_ms: float, rows: int) -> None:
    """The limit on the longest ITL as a line; words at the edge where it is out of sight."""
    from profiler.advice_names import limit_words  # loads scipy, as the report did

    said, row = f"ITL limit {limit_words(limit_ms / 1e3)}", plot.row(limit_ms)
    if row is not None:
        plot.text(row, 1, f" {said} ", Ink.BAD)
        plot.horizontal(limit_ms, DASH, Ink.BAD)
    elif limit_ms > plot.y.high:
        plot.text(0, 1, f"{said}, above", Ink.BAD)
    else:
        plot.text(rows - 1, 1, f"{said}, below", Ink.BAD)


def _put_chunks(plot: Plot, view: SaturationView, *, named: bool) -> None:
    """A line at the advised chunk with its name, and one at the selected chunk if that is another."""
    advised, selected = view.advised_tokens, view.selected_tokens
    if advised is not None and (column := plot.column(advised)) is not None:
        plot.vertical(advised, "┊", Ink.GOOD)
        if named:
            _beside(plot, column, 2, [f"{ADVISED} {words.count(advised)}", "advised"], Ink.GOOD)
    if selected is not None and selected != advised:
        plot.vertical(selected, "│", Ink.ACCENT)


def _put_point_words(plot: Plot, report: "SaturationReport", rows: int) -> None:
    """What the point is: below a rising curve at the right of the point, else above it at the left edge."""
    found = report.found
    if found.tokens is None or (column := plot.column(found.tokens)) is None:
        return
    said = [
        f"{POINT} {words.count(found.tokens)} tokens",
        f"[{words.count(found.low)}, {words.count(found.high)}]",
    ]
    room = column + 2 + max(map(len, said)) <= plot.columns
    for i, text in enumerate(said):
        if room:
            plot.text(rows - len(said) + i, column + 2, text, Ink.STRONG)
        else:
            plot.text(2 + i, 1, text, Ink.STRONG)


def _beside(plot: Plot, column: int, row: int, said: list[str], ink: Ink) -> None:
    """Lines of words at the right of a column, at its left where there is no room."""
    left = column + 2 + max(map(len, said)) > plot.columns
    for i, text in enumerate(said):
        plot.text(row + i, column - 1 - len(text) if left else column + 2, text, ink)


def _labelled(plot: Plot, ticks: dict[int | None, str]) -> list[Line]:
    lines: list[Line] = []
    for i, cells in enumerate(plot.rows()):
        label = ticks.get(i, "")
        lines.append([(f"{label:>{LABEL_CELLS - 1}} ", Ink.MUTED), *cells.spans()])
    return lines


def _empty_chart(view: SaturationView, columns: int, rows: int) -> list[Line]:
    """Rows without a chart; why, in the middle."""
    why = "working" if view.report is None else "fewer than two sizes: nothing to draw"
    line: Line = [(why.center(columns + LABEL_CELLS), Ink.MUTED)]
    lines: list[Line] = [[] for _ in range(rows)]
    lines[rows // 2] = line
    return [fit(line, columns + LABEL_CELLS) for line in lines]


def _column(rows: pl.DataFrame, name: str) -> Array:
    return rows[name].to_numpy().astype(np.float64)


def _short(value: float) -> str:
    """A rate in a few cells: 950, 1.5k, 50k."""
    if value < 1000:
        return f"{value:.3g}"
    thousands = value / 1000
    return f"{thousands:.0f}k" if thousands >= 9.95 or thousands == int(thousands) else f"{thousands:.1f}k"
