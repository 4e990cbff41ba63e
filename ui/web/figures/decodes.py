"""Throughput of decode-only forwards against their rows, with the fit and the point where there is one."""

import math
from typing import Any

import plotly.graph_objects as go

from profiler.sampling import evenly
from profiler.saturation_report import SaturationReport
from ui.palette import FILLS, Theme
from ui.web.figures.style import axis, base_layout, empty, log_range, plate, size_ticks
from ui.words import count, rate, seconds

__all__ = ["DRAWN", "HEIGHT", "decodes_figure"]

DRAWN = 400
HEIGHT = 230


def decodes_figure(report: SaturationReport | None, theme: Theme, nothing: str) -> go.Figure:
    """`nothing` says why there are no points."""
    if report is None or report.points.is_empty():
        return empty(theme, HEIGHT, nothing)
    points = evenly(report.points, ("tokens", "time_ns", "forward_id"), DRAWN)
    x_range = log_range(points["tokens"].to_list())
    x = axis(theme, type="log", range=x_range, **size_ticks(x_range, points["tokens"].to_list()))
    x["title"]["text"] = "decode rows per forward (log)"
    highest = max(*points["tokens_per_s"], report.best_tokens_per_s or 0.0)
    y = axis(theme, range=[0, highest * 1.12], nticks=6, separatethousands=True)
    layout = {
        "xaxis": x,
        "yaxis": y,
        "shapes": _lines(report, theme),
        "annotations": _labels(report, theme),
        "margin": {"l": 60, "r": 10, "t": 26, "b": 42},
    }
    told = [
        [forward_id, count(rows), rate(speed), seconds(time_ns / 1e9)]
        for forward_id, rows, time_ns, speed in points.iter_rows()
    ]
    dots = go.Scatter(
        x=points["tokens"].to_list(),
        y=points["tokens_per_s"].to_list(),
        mode="markers",
        marker={"size": 6, "color": theme.page, "line": {"color": FILLS["decode"], "width": 1.2}},
        customdata=told,
        hovertemplate="forward %{customdata[0]}: %{customdata[1]} rows<br>%{customdata[3]}, "
        "%{customdata[2]}<extra></extra>",
    )
    return go.Figure(data=[*_curve(report), dots], layout=base_layout(theme, HEIGHT, **layout))


def _curve(report: SaturationReport) -> list[go.Scatter]:
    if report.curve.is_empty():
        return []
    x, y = report.curve["tokens"].to_list(), report.curve["tokens_per_s"].to_list()
    line = {"color": FILLS["decode"], "width": 2}
    return [go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip")]


def _lines(report: SaturationReport, theme: Theme) -> list[dict[str, Any]]:
    found = report.found
    if found.tokens is None:
        return []
    place = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    band = {**place, "type": "rect", "x0": found.low, "x1": found.high, "line": {"width": 0}}
    upright = {**place, "x0": found.tokens, "x1": found.tokens}
    line = {"color": theme.decode_text, "width": 1.5}
    return [{**band, "fillcolor": theme.decode_text, "opacity": 0.14}, {**upright, "line": line}]


def _labels(report: SaturationReport, theme: Theme) -> list[dict[str, Any]]:
    title = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 4}
    parts = [plate(theme, "<b>Decode throughput, tokens/s</b>", 0, 1, **title)]
    found = report.found
    if found.tokens is not None:
        place = {"yref": "paper", "xanchor": "right", "yanchor": "bottom", "xshift": -6, "yshift": 8}
        font = {"size": 12, "color": theme.decode_text}
        text = f"<b>{count(found.tokens)} rows</b>"
        parts.append(plate(theme, text, math.log10(found.tokens), 0, **place, font=font))
    return parts
