"""Forwards by mode under the measured roof of their machine, both axes in logarithms."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go
import polars as pl

from profiler.roofline import Roof
from ui.palette import FILLS, Theme
from ui.si_words import bandwidth, dtype_word, flop_rate, intensity, percent
from ui.web.figures.style import axis, base_layout, empty, log_range, log_ticks, plate
from ui.words import count, seconds

__all__ = ["DRAWN_PER_MODE", "MODES", "ModeMark", "roofline_figure"]

DRAWN_PER_MODE = 400
HEIGHT = 430
_MARGIN = {"l": 78, "r": 10, "t": 12, "b": 44}
_PLOT_PX = (470, HEIGHT - _MARGIN["t"] - _MARGIN["b"])  # about; only the slope of a label depends on it


class ModeMark(NamedTuple):
    """How forwards of a mode look and what they are called."""

    symbol: str
    glyph: str
    word: str
    fill: str
    edge: str


MODES = {
    "EXTEND": ModeMark("square", "■", "prefill", FILLS["prefill"], FILLS["prefill"]),
    "DECODE": ModeMark("circle", "●", "decode", FILLS["decode"], FILLS["decode"]),
    "MIXED": ModeMark("diamond", "◆", "mixed", FILLS["prefill"], FILLS["decode"]),
    None: ModeMark("x", "✕", "mode unknown", FILLS["host"], FILLS["host"]),
}
"""By the trace's name of a mode; a mixed forward has the colours of both that it is made of."""


def roofline_figure(sample: pl.DataFrame, roof: Roof | None, theme: Theme) -> go.Figure:
    """Points of `profiler.roofline.sample_by_mode`; those above the roof wear a ring."""
    if sample.is_empty():
        return empty(theme, HEIGHT, "no forward with known FLOPs, bytes and device time")
    work = [*sample["intensity"], *([roof.ridge, roof.ridge * 2] if roof else [])]
    rates = [*sample["flops_per_s"], *([roof.flops_per_s] if roof else [])]
    x_range, y_range = log_range(work, 0.06), log_range(rates, 0.1)
    layout = {
        "xaxis": _axis(theme, x_range, "FLOP per byte (log)", [f"{t:g}" for t in log_ticks(x_range)]),
        "yaxis": _axis(theme, y_range, None, [flop_rate(t) for t in log_ticks(y_range)]),
        "annotations": [] if roof is None else _roof_labels(roof, theme, x_range, y_range),
        "shapes": [] if roof is None else [_ridge_line(roof, theme)],
        "margin": _MARGIN,
    }
    data = [] if roof is None else [_roof_line(roof, theme, x_range)]
    for mode, mark in MODES.items():
        of_mode = sample.filter(pl.col("mode").eq_missing(pl.lit(mode, pl.String)))
        if not of_mode.is_empty():
            data.append(_points(of_mode, mark, theme))
    above = sample.filter(pl.col("above_roof"))
    if not above.is_empty():
        data.append(_rings(above, theme))
    return go.Figure(data=data, layout=base_layout(theme, HEIGHT, **layout))


def _axis(theme: Theme, span: list[float], title: str | None, text: list[str]) -> dict[str, Any]:
    ticks = {"tickvals": log_ticks(span), "ticktext": text}
    grid = axis(theme, type="log", range=span, **ticks)
    grid["title"]["text"] = title
    return grid


def _roof_line(roof: Roof, theme: Theme, x_range: Sequence[float]) -> go.Scatter:
    x = [10 ** x_range[0], roof.ridge, 10 ** x_range[1]]
    line = {"color": theme.text, "width": 2}
    return go.Scatter(x=x, y=[roof.at(value) for value in x], mode="lines", line=line, hoverinfo="skip")


def _ridge_line(roof: Roof, theme: Theme) -> dict[str, Any]:
    line = {"color": theme.muted, "width": 1, "dash": "dot"}
    place = {"x0": roof.ridge, "x1": roof.ridge, "yref": "paper", "y0": 0, "y1": 1}
    return {"type": "line", **place, "line": line, "layer": "below"}


def _roof_labels(
    roof: Roof, theme: Theme, x_range: Sequence[float], y_range: Sequence[float]
) -> list[dict[str, Any]]:
    """What each part of the roof is: along the slope, at the end of the ceiling, and where they meet."""
    ridge, top = math.log10(roof.ridge), math.log10(roof.flops_per_s)
    peak = f"<b>{dtype_word(roof.dtype)} {flop_rate(roof.flops_per_s)}</b>"
    parts = [plate(theme, peak, x_range[1], top, xanchor="right", yanchor="bottom", yshift=2)]
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


def _points(sample: pl.DataFrame, mark: ModeMark, theme: Theme) -> go.Scatter:
    two_colours = mark.edge != mark.fill
    edge = {"color": mark.edge if two_colours else theme.page, "width": 2 if two_colours else 0.8}
    hover = (
        f"{mark.word} forward %{{customdata[0]}}: %{{customdata[1]}} tokens, %{{customdata[2]}}<br>"
        "%{customdata[3]} at %{customdata[4]}<br>%{customdata[5]} of the roof<extra></extra>"
    )
    columns = ("forward_id", "tokens", "time_ns", "flops_per_s", "intensity", "roof_share")
    told = [
        [forward_id, count(tokens), seconds(time_ns / 1e9), flop_rate(rate), intensity(work), percent(share)]
        for forward_id, tokens, time_ns, rate, work, share in sample.select(columns).iter_rows()
    ]
    return go.Scatter(
        x=sample["intensity"].to_list(),
        y=sample["flops_per_s"].to_list(),
        mode="markers",
        marker={"symbol": mark.symbol, "size": 8, "color": mark.fill, "line": edge, "opacity": 0.85},
        customdata=told,
        hovertemplate=hover,
    )


def _rings(above: pl.DataFrame, theme: Theme) -> go.Scatter:
    ring = {"symbol": "circle-open", "size": 13, "color": theme.text, "opacity": 0.6, "line": {"width": 1}}
    x, y = above["intensity"].to_list(), above["flops_per_s"].to_list()
    return go.Scatter(x=x, y=y, mode="markers", marker=ring, hoverinfo="skip")
