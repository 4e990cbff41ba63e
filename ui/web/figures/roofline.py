"""Forwards, or their operators, under the roof of their machine, both axes in logarithms."""

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from profiler.roofline import Roof
from profiler.roofline_choice import Roofs, SourcedRoof
from ui.palette import Theme
from ui.si_words import bandwidth, dtype_word, flop_rate, intensity, percent
from ui.web.figures.roofline_marks import MODES, OPERATORS, ModeMark
from ui.web.figures.style import axis, base_layout, empty, log_range, log_ticks, plate
from ui.words import count, seconds

__all__ = ["HEIGHT", "roofline_figure"]

HEIGHT = 430
_MARGIN = {"l": 78, "r": 10, "t": 12, "b": 44}
_PLOT_PX = (470, HEIGHT - _MARGIN["t"] - _MARGIN["b"])  # about; only the slope of a label depends on it
_SAME = 0.02  # of a rate: another roof this near the chosen one has no label of its own

Parts = list[dict[str, Any]]


def roofline_figure(
    points: pl.DataFrame,
    roofs: Roofs,
    theme: Theme,
    nothing: str = "no point with known FLOPs, bytes and time",
) -> go.Figure:
    """Points of `sample_by_mode` or `sample_by_operator`; those above the roof wear a ring.

    The chosen roof is a solid line, the others dashed; without points `nothing` says why.
    """
    if points.is_empty():
        return empty(theme, HEIGHT, nothing)
    roof = roofs.roof
    every = [sourced.roof for sourced in ((roofs.chosen, *roofs.others) if roofs.chosen else roofs.others)]
    work = [*points["intensity"], *(edge for one in every for edge in (one.ridge, one.ridge * 2))]
    rates = [*points["flops_per_s"], *(one.flops_per_s for one in every)]
    x_range, y_range = log_range(work, 0.06), log_range(rates, 0.1)
    layout = {
        "xaxis": _axis(theme, x_range, "FLOP per byte (log)", [f"{t:g}" for t in log_ticks(x_range)]),
        "yaxis": _axis(theme, y_range, None, [flop_rate(t) for t in log_ticks(y_range)]),
        "annotations": [] if roofs.chosen is None else _roof_labels(roofs, theme, x_range, y_range),
        "shapes": [] if roof is None else [_ridge_line(roof, theme)],
        "margin": _MARGIN,
    }
    data = [
        _roof_line(other.roof, x_range, {"color": theme.muted, "width": 1.2, "dash": "dash"})
        for other in roofs.others
    ]
    if roof is not None:
        data.append(_roof_line(roof, x_range, {"color": theme.text, "width": 2}))
    data += _point_traces(points, theme)
    above = points.filter(pl.col("above_roof"))
    if not above.is_empty():
        data.append(_rings(above, theme))
    return go.Figure(data=data, layout=base_layout(theme, HEIGHT, **layout))


def _axis(theme: Theme, span: list[float], title: str | None, text: list[str]) -> dict[str, Any]:
    ticks = {"tickvals": log_ticks(span), "ticktext": text}
    grid = axis(theme, type="log", range=span, **ticks)
    grid["title"]["text"] = title
    return grid


def _roof_line(roof: Roof, x_range: Sequence[float], line: dict[str, Any]) -> go.Scatter:
    x = [10 ** x_range[0], roof.ridge, 10 ** x_range[1]]
    return go.Scatter(x=x, y=[roof.at(value) for value in x], mode="lines", line=line, hoverinfo="skip")


def _ridge_line(roof: Roof, theme: Theme) -> dict[str, Any]:
    line = {"color": theme.muted, "width": 1, "dash": "dot"}
    place = {"x0": roof.ridge, "x1": roof.ridge, "yref": "paper", "y0": 0, "y1": 1}
    return {"type": "line", **place, "line": line, "layer": "below"}


def _roof_labels(roofs: Roofs, theme: Theme, x_range: Sequence[float], y_range: Sequence[float]) -> Parts:
    """What each part of the roof is: along the slope, at the end of the ceiling, and where they meet."""
    assert roofs.chosen is not None
    chosen, roof = roofs.chosen, roofs.chosen.roof
    ridge, top = math.log10(roof.ridge), math.log10(roof.flops_per_s)
    peak = f"<b>{dtype_word(roof.dtype)} {flop_rate(roof.flops_per_s)}</b>, {_source(chosen)}"
    below = any(other.roof.flops_per_s > roof.flops_per_s for other in roofs.others)
    side = {"yanchor": "top", "yshift": -2} if below else {"yanchor": "bottom", "yshift": 2}
    parts = [plate(theme, peak, x_range[1], top, xanchor="right", **side)]
    parts += [_other_label(other, theme, x_range) for other in roofs.others if _differs(other.roof, roof)]
    ridge_text = f"ridge {intensity(roof.ridge)}"
    parts.append(plate(theme, ridge_text, ridge, 0, yref="paper", xanchor="left", yanchor="bottom", xshift=2))
    lowest = max(x_range[0], y_range[0] + ridge - top)  # where the slope comes into view
    if ridge - lowest > 0.15 * (x_range[1] - x_range[0]):
        middle = (ridge + lowest) / 2
        rise = _PLOT_PX[1] / (y_range[1] - y_range[0]), _PLOT_PX[0] / (x_range[1] - x_range[0])
        angle = -math.degrees(math.atan2(*rise))
        text = f"<b>{roof.traffic} {bandwidth(roof.bytes_per_s)}</b>"
        height = top + middle - ridge
        parts.append(plate(theme, text, middle, height, textangle=angle, xshift=-9, yshift=9))
    return parts


def _source(sourced: SourcedRoof) -> str:
    return {"simulation": "data sheet, as simulated"}.get(sourced.source, sourced.source)


def _other_label(other: SourcedRoof, theme: Theme, x_range: Sequence[float]) -> dict[str, Any]:
    text = f"{other.source} {flop_rate(other.roof.flops_per_s)}"
    place = {"xanchor": "right", "yanchor": "bottom", "yshift": 2, "font": {"size": 11, "color": theme.muted}}
    return plate(theme, text, x_range[1], math.log10(other.roof.flops_per_s), **place)


def _differs(one: Roof, other: Roof) -> bool:
    return abs(one.flops_per_s / other.flops_per_s - 1) > _SAME


def _point_traces(points: pl.DataFrame, theme: Theme) -> list[go.Scatter]:
    """One trace a mode, or a mode and operator."""
    traces = []
    for mode, mark in MODES.items():
        of_mode = points.filter(pl.col("mode").eq_missing(pl.lit(mode, pl.String)))
        if of_mode.is_empty():
            continue
        if "operator" not in points.columns:
            traces.append(_points(of_mode, mark, mark.symbol, f"{mark.word} forward", theme))
            continue
        for operator, shape in OPERATORS.items():
            of_operator = of_mode.filter(pl.col("operator") == operator)
            if not of_operator.is_empty():
                name = f"{shape.word}, {mark.word} forward"
                traces.append(_points(of_operator, mark, shape.symbol, name, theme))
    return traces


def _points(points: pl.DataFrame, mark: ModeMark, symbol: str, name: str, theme: Theme) -> go.Scatter:
    two_colours = mark.edge != mark.fill
    edge = {"color": mark.edge if two_colours else theme.page, "width": 2 if two_colours else 0.8}
    hover = (
        f"{name} %{{customdata[0]}}: %{{customdata[1]}} tokens, %{{customdata[2]}}<br>"
        "%{customdata[3]} at %{customdata[4]}<br>%{customdata[5]} of the roof<extra></extra>"
    )
    columns = ("forward_id", "tokens", "time_ns", "flops_per_s", "intensity", "roof_share")
    told = [
        [forward_id, count(tokens), seconds(time_ns / 1e9), flop_rate(rate), intensity(work), percent(share)]
        for forward_id, tokens, time_ns, rate, work, share in points.select(columns).iter_rows()
    ]
    return go.Scatter(
        x=points["intensity"].to_list(),
        y=points["flops_per_s"].to_list(),
        mode="markers",
        marker={"symbol": symbol, "size": 8, "color": mark.fill, "line": edge, "opacity": 0.85},
        customdata=told,
        hovertemplate=hover,
    )


def _rings(above: pl.DataFrame, theme: Theme) -> go.Scatter:
    ring = {"symbol": "circle-open", "size": 14, "color": theme.stall_mixed_text, "line": {"width": 1.6}}
    x, y = above["intensity"].to_list(), above["flops_per_s"].to_list()
    return go.Scatter(x=x, y=y, mode="markers", marker=ring, hoverinfo="skip")
