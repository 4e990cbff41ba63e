"""What forwards need beside weights and KV, against their tokens: measured, and by the memory model."""

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from profiler.memory import MemoryModel
from profiler.sampling import evenly
from ui.palette import FILLS, Theme
from ui.web.figures.style import axis, base_layout, count_tick, empty, log_range, plate
from ui.words import binary_bytes, count

__all__ = ["DRAWN", "HEIGHT", "memory_figure"]

DRAWN = 400
HEIGHT = 230
_CURVE = 40
_TICKS = 6


def memory_figure(
    model: MemoryModel | None, measured: pl.DataFrame, most_tokens: int, theme: Theme, nothing: str
) -> go.Figure:
    """Both axes in logarithms; the line goes to `most_tokens`. `nothing` says why there is no model."""
    if model is None:
        return empty(theme, HEIGHT, nothing)
    points = evenly(measured.filter(pl.col("activation_bytes") > 0), ("tokens", "activation_bytes"), DRAWN)
    sizes = _sizes(most_tokens)
    line = [model.forward_bytes(size) for size in sizes]
    drawn = [*line, *points["activation_bytes"]]
    x_range, y_range = log_range([*sizes, *points["tokens"]]), log_range(drawn, 0.08)
    ticks = [2**power for power in range(0, 31, 2) if x_range[0] <= math.log10(2**power) <= x_range[1]]
    x = axis(theme, type="log", range=x_range, tickvals=ticks, ticktext=[count_tick(t) for t in ticks])
    x["title"]["text"] = "tokens per forward (log)"
    bytes_ = [1 << power for power in range(10, 45, 2) if y_range[0] <= math.log10(1 << power) <= y_range[1]]
    bytes_ = bytes_[:: 1 + len(bytes_) // _TICKS]
    y = axis(theme, type="log", range=y_range, tickvals=bytes_, ticktext=[_tick(b) for b in bytes_])
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 4}
    title = plate(theme, "<b>Activations of a forward (log)</b>", 0, 1, **place)
    layout = {"xaxis": x, "yaxis": y, "annotations": [title], "margin": {"l": 66, "r": 10, "t": 26, "b": 42}}
    data = [*_dots(points, theme), _line(sizes, line)]
    return go.Figure(data=data, layout=base_layout(theme, HEIGHT, **layout))


def _sizes(most: int) -> list[int]:
    steps = [round(max(most, 2) ** (step / _CURVE)) for step in range(_CURVE + 1)]
    return list(dict.fromkeys(steps))


def _line(sizes: Sequence[int], values: Sequence[int]) -> go.Scatter:
    hover = [
        f"{count(size)} tokens, by the model: {binary_bytes(value)}"
        for size, value in zip(sizes, values, strict=True)
    ]
    more: dict[str, Any] = {"customdata": hover, "hovertemplate": "%{customdata}<extra></extra>"}
    return go.Scatter(
        x=list(sizes), y=list(values), mode="lines", line={"color": FILLS["prefill"], "width": 2}, **more
    )


def _dots(points: pl.DataFrame, theme: Theme) -> list[go.Scatter]:
    if points.is_empty():
        return []
    told = [
        f"{count(tokens)} tokens behind {count(prefix)}: {binary_bytes(size)}"
        for tokens, prefix, size in points.select("tokens", "prefix_tokens", "activation_bytes").iter_rows()
    ]
    return [
        go.Scatter(
            x=points["tokens"].to_list(),
            y=points["activation_bytes"].to_list(),
            mode="markers",
            marker={
                "size": 5,
                "color": theme.page,
                "line": {"color": theme.text, "width": 1},
                "opacity": 0.7,
            },
            customdata=told,
            hovertemplate="%{customdata}<extra></extra>",
        )
    ]


def _tick(size_bytes: int) -> str:
    for power, unit in ((30, "GiB"), (20, "MiB")):
        if size_bytes >= 1 << power:
            return f"{size_bytes >> power} {unit}"
    return f"{size_bytes >> 10} KiB"
