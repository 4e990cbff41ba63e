"""Throughput and forward time against the tokens of a forward, above one another on one axis."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import plotly.graph_objects as go
import polars as pl

from profiler.prefix_curve import PrefixCurve
from profiler.sampling import evenly
from profiler.saturation_report import SaturationReport
from ui.palette import FILLS, Theme
from ui.web.figures.style import axis, base_layout, empty, log_range, log_ticks, plate, size_ticks, time_tick
from ui.web.figures.throughput_labels import labels, limit_is_low
from ui.web.figures.throughput_lines import lines
from ui.web.figures.throughput_marks import Marks
from ui.words import count, rate, seconds

__all__ = ["DRAWN_OTHERS", "DRAWN_POINTS", "ModelCurves", "overlay", "throughput_figure"]

DRAWN_POINTS = 500
DRAWN_OTHERS = 200
HEIGHT = 540

_DENSE = 120  # more points than this are small, and lie below the curve
_UPPER, _LOWER = [0.43, 1.0], [0.0, 0.35]  # shares of the height: throughput, forward time
_BY = ("tokens", "time_ns", "forward_id")


class ModelCurves(NamedTuple):
    """Forwards of one prompt by the model of a forward; None where there is none."""

    plain: PrefixCurve | None = None
    behind: PrefixCurve | None = None


NO_MARKS = Marks()
NO_CURVES = ModelCurves()


def throughput_figure(
    report: SaturationReport, theme: Theme, marks: Marks = NO_MARKS, model: ModelCurves = NO_CURVES
) -> go.Figure:
    """Both charts. Of very many points it draws `DRAWN_POINTS` and `DRAWN_OTHERS`, evenly by size.

    The model's curve without prefix is drawn where the points have no fit of their own.
    """
    points, others = evenly(report.points, _BY, DRAWN_POINTS), evenly(report.others, _BY, DRAWN_OTHERS)
    drawn = pl.concat([points, others])
    if drawn.is_empty():
        return empty(theme, HEIGHT, "no forward with prompt tokens and a known device time")
    x_range = _x_range(report, model)
    layout = {
        **overlay(report, theme, marks, model),
        "xaxis": _tokens_axis(theme, x_range, drawn["tokens"].to_list()),
        "yaxis": _rate_axis(theme, drawn, report.best_tokens_per_s),
        "yaxis2": _time_axis(theme, _time_range(report, model)),
        "margin": {"l": 60, "r": 10, "t": 60, "b": 44},
    }
    dots, curve = _dots(points, theme), _curve(report)
    middle = [*dots, *curve] if points.height > _DENSE else [*curve, *dots]
    data = [
        *_dots(others, theme, faint=True),
        *_modelled(report, model),
        *middle,
        *_dips(report),
        *_point(report),
    ]
    return go.Figure(data=data, layout=base_layout(theme, HEIGHT, **layout))


def overlay(
    report: SaturationReport, theme: Theme, marks: Marks, model: ModelCurves = NO_CURVES
) -> dict[str, Any]:
    """Lines and labels over both charts: the parts of the layout that change with what a person accepts."""
    time_range = _time_range(report, model)
    told = labels(report, theme, marks, _x_range(report, model), time_range)
    taken = limit_is_low(marks.limit_s, time_range)
    notes = [*_titles(theme), *told, *_behind_label(model.behind, theme, right=not taken)]
    return {"shapes": lines(report, theme, marks), "annotations": notes}


def _x_range(report: SaturationReport, model: ModelCurves) -> list[float]:
    sizes = [*report.points["tokens"], *report.others["tokens"]]
    if report.best_tokens_per_s is None and model.plain is not None:
        sizes += model.plain.tokens
    return log_range([min(sizes), max(sizes)] if sizes else [1, 1])


def _tokens_axis(theme: Theme, x_range: list[float], sizes: Iterable[int]) -> dict[str, Any]:
    grid = axis(theme, type="log", range=x_range, anchor="y2", **size_ticks(x_range, sizes))
    grid["title"]["text"] = "tokens per forward (log)"
    return grid


def _rate_axis(theme: Theme, drawn: pl.DataFrame, best: float | None) -> dict[str, Any]:
    highest = max(*drawn["tokens_per_s"], best or 0.0)
    span = [-0.015 * highest, highest * 1.09]  # whole marks at 0
    return axis(theme, domain=_UPPER, range=span, nticks=7, separatethousands=True)


def _time_range(report: SaturationReport, model: ModelCurves) -> list[float]:
    """Of all forwards, and of the model's curve where that is drawn in the place of a fit."""
    times_s = [time_ns / 1e9 for time_ns in (*report.points["time_ns"], *report.others["time_ns"])]
    if report.best_tokens_per_s is None and model.plain is not None:
        times_s += model.plain.times_s
    return log_range([min(times_s), max(times_s)] if times_s else [1, 1], 0.08)


def _time_axis(theme: Theme, span: list[float]) -> dict[str, Any]:
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


def _modelled(report: SaturationReport, model: ModelCurves) -> list[go.Scatter]:
    """What the model of a forward says: behind a prefix, and without one where no fit does."""
    traces = []
    if model.plain is not None and report.best_tokens_per_s is None:
        traces += _by_model(model.plain, FILLS["prefill"], "dot", "no prefix")
    if model.behind is not None:
        behind = f"behind {count(model.behind.prefix_tokens)} tokens"
        traces += _by_model(model.behind, FILLS["kv_private"], "dash", behind)
    return traces


def _by_model(curve: PrefixCurve, colour: str, dash: str, place: str) -> list[go.Scatter]:
    hover = f"{place}, by the model: %{{x:,.0f}} tokens<extra></extra>"
    line = {"color": colour, "width": 1.8, "dash": dash}
    more = {"x": list(curve.tokens), "mode": "lines", "line": line, "hovertemplate": hover}
    rates = [tokens / time_s for tokens, time_s in zip(curve.tokens, curve.times_s, strict=True)]
    return [go.Scatter(y=rates, yaxis="y", **more), go.Scatter(y=list(curve.times_s), yaxis="y2", **more)]


def _behind_label(behind: PrefixCurve | None, theme: Theme, *, right: bool) -> list[dict[str, Any]]:
    """In a corner of the lower chart that rising curves leave free: at the bottom right, or top left."""
    if behind is None:
        return []
    place = {"xref": "x domain", "yref": "y2 domain"}
    place |= {"xanchor": "right", "yanchor": "bottom"} if right else {"xanchor": "left", "yanchor": "top"}
    text = f"dashed: behind a prefix of {count(behind.prefix_tokens)} tokens"
    font = {"size": 11, "color": theme.kv_private_text}
    x, y = (0.98, 0.05) if right else (0.02, 0.95)
    return [plate(theme, text, x, y, **place, font=font)]


def _dips(report: SaturationReport) -> list[go.Scatter]:
    """The sizes that lie clearly below the curve: kept, and no part of what moves the point."""
    inside = report.sizes.filter("in_dip")
    if inside.is_empty():
        return []
    edge = {"color": FILLS["stall_mixed_dots"], "width": 1.2}
    marker = {"symbol": "triangle-down", "size": 10, "color": FILLS["stall_mixed"], "line": edge}
    hover = "dip: %{x:,.0f} tokens, %{y:,.0f} tokens/s<extra></extra>"
    x, y = inside["tokens"].to_list(), inside["tokens_per_s"].to_list()
    return [go.Scatter(x=x, y=y, yaxis="y", mode="markers", marker=marker, hovertemplate=hover)]


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
