"""Throughput and forward time against the tokens of a forward, above one another on one axis."""

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from profiler.sampling import evenly
from profiler.saturation_report import SaturationReport
from ui.palette import FILLS, Theme
from ui.web.figures.style import axis, base_layout, count_tick, empty, log_range, log_ticks, plate, time_tick
from ui.web.figures.throughput_marks import ChunkMark, labels, lines
from ui.words import count, rate, seconds

__all__ = ["DRAWN_OTHERS", "DRAWN_POINTS", "throughput_figure"]

DRAWN_POINTS = 500
DRAWN_OTHERS = 200
HEIGHT = 540

_DENSE = 120  # more points than this are small, and lie below the curve
_UPPER, _LOWER = [0.43, 1.0], [0.0, 0.35]  # shares of the height: throughput, forward time
_BY = ("tokens", "time_ns", "forward_id")


def throughput_figure(report: SaturationReport, theme: Theme, chunks: Sequence[ChunkMark] = ()) -> go.Figure:
    """Both charts. Of very many points it draws `DRAWN_POINTS` and `DRAWN_OTHERS`, evenly by size."""
    points, others = evenly(report.points, _BY, DRAWN_POINTS), evenly(report.others, _BY, DRAWN_OTHERS)
    drawn = pl.concat([points, others])
    if drawn.is_empty():
        return empty(theme, HEIGHT, "no forward with prompt tokens and a known device time")
    x_range = log_range(drawn["tokens"].to_list())
    layout = {
        "shapes": lines(report, theme, chunks),
        "annotations": [*_titles(theme), *labels(report, theme, chunks, x_range)],
        "xaxis": _tokens_axis(theme, x_range),
        "yaxis": _rate_axis(theme, drawn, report.best_tokens_per_s),
        "yaxis2": _time_axis(theme, drawn),
        "margin": {"l": 60, "r": 10, "t": 44, "b": 44},
    }
    dots, curve = _dots(points, theme), _curve(report)
    middle = [*dots, *curve] if points.height > _DENSE else [*curve, *dots]
    data = [*_dots(others, theme, faint=True), *middle, *_point(report)]
    return go.Figure(data=data, layout=base_layout(theme, HEIGHT, **layout))


def _tokens_axis(theme: Theme, x_range: list[float]) -> dict[str, Any]:
    ticks = [2.0**power for power in range(31) if x_range[0] <= math.log10(2.0**power) <= x_range[1]]
    text = {"tickvals": ticks, "ticktext": [count_tick(tick) for tick in ticks]}
    grid = axis(theme, type="log", range=x_range, anchor="y2", **text)
    grid["title"]["text"] = "tokens per forward (log)"
    return grid


def _rate_axis(theme: Theme, drawn: pl.DataFrame, best: float | None) -> dict[str, Any]:
    highest = max(*drawn["tokens_per_s"], best or 0.0)
    return axis(theme, domain=_UPPER, range=[0, highest * 1.09], nticks=7, separatethousands=True)


def _time_axis(theme: Theme, drawn: pl.DataFrame) -> dict[str, Any]:
    span = log_range((drawn["time_ns"] / 1e9).to_list(), 0.08)
    ticks = log_ticks(span)
    text = {"tickvals": ticks, "ticktext": [time_tick(tick) for tick in ticks]}
    return axis(theme, domain=_LOWER, type="log", range=span, anchor="x", **text)


def _titles(theme: Theme) -> list[dict[str, Any]]:
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 4}
    texts = (("<b>Throughput, tokens/s</b>", _UPPER[1]), ("<b>Forward time (log)</b>", _LOWER[1]))
    return [plate(theme, text, 0, y, **place) for text, y in texts]


def _dots(points: pl.DataFrame, theme: Theme, *, faint: bool = False) -> list[go.Scatter]:
    """The same forwards in both charts."""
    if points.is_empty():
        return []
    small = faint or points.height > _DENSE
    edge = {"color": theme.muted if faint else theme.text, "width": 1 if small else 1.2}
    opacity = 0.5 if faint else 0.7 if small else 1
    marker = {"size": 5 if small else 6, "color": theme.page, "line": edge, "opacity": opacity}
    kind = "with a prefix, or of several rows" if faint else "one prompt, no prefix"
    told = [
        [forward_id, count(tokens), rate(speed), seconds(time_ns / 1e9), kind]
        for forward_id, tokens, time_ns, speed in points.iter_rows()
    ]
    hover = "forward %{customdata[0]}: %{customdata[1]} tokens<br>%{customdata[3]}, %{customdata[2]}<br>"
    more = {
        "x": points["tokens"].to_list(),
        "mode": "markers",
        "marker": marker,
        "customdata": told,
        "hovertemplate": hover + "%{customdata[4]}<extra></extra>",
    }
    rates, times_s = points["tokens_per_s"].to_list(), (points["time_ns"] / 1e9).to_list()
    return [go.Scatter(y=rates, yaxis="y", **more), go.Scatter(y=times_s, yaxis="y2", **more)]


def _curve(report: SaturationReport) -> list[go.Scatter]:
    curve = report.curve
    if curve.is_empty():
        return []
    line = {"color": FILLS["prefill"], "width": 2}
    more = {"x": curve["tokens"].to_list(), "mode": "lines", "line": line, "hoverinfo": "skip"}
    rates, times_s = curve["tokens_per_s"].to_list(), (curve["time_ns"] / 1e9).to_list()
    return [go.Scatter(y=rates, yaxis="y", **more), go.Scatter(y=times_s, yaxis="y2", **more)]


def _point(report: SaturationReport) -> list[go.Scatter]:
    """The saturation point on both curves."""
    found = report.found
    fit = None if found.tokens is None else report.fitted(found.tokens)
    if fit is None:
        return []
    text = f"saturation point: {count(fit.tokens)} tokens<br>{seconds(fit.time_s)}, {rate(fit.tokens_per_s)}"
    more = {
        "x": [fit.tokens],
        "mode": "markers",
        "marker": {"size": 11, "color": FILLS["prefill"], "line": {"color": "#FFFFFF", "width": 1.5}},
        "hovertemplate": f"{text}<extra></extra>",
    }
    heights = {"y": fit.tokens_per_s, "y2": fit.time_s}
    return [go.Scatter(y=[height], yaxis=axis_id, **more) for axis_id, height in heights.items()]
