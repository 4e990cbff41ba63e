"""What all Plotly figures share: configuration, fonts, axes, log ticks, plates under labels."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from ui.palette import Theme

__all__ = [
    "CONFIG",
    "axis",
    "base_layout",
    "count_tick",
    "empty",
    "log_range",
    "log_ticks",
    "plate",
    "size_ticks",
    "time_tick",
]

CONFIG: Any = {"showSendToCloud": False, "displaylogo": False, "displayModeBar": False, "responsive": True}
"""Of every graph: nothing leaves the machine, and no button is in the way."""

FONT = 'system-ui, -apple-system, "Segoe UI", Inter, "Noto Sans", sans-serif'
_AXIS_SIZE = 11
_LABEL_SIZE = 12
_LEAST_TICKS, _MOST_SIZES = 2, 8
CLEAR = "rgba(0,0,0,0)"


def base_layout(theme: Theme, height: int, **more: Any) -> dict[str, Any]:
    """A layout on a transparent ground; `more` adds to it."""
    return {
        "height": height,
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": FONT, "size": _AXIS_SIZE, "color": theme.muted},
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": theme.panel,
            "bordercolor": theme.line,
            "font": {"family": FONT, "size": _LABEL_SIZE, "color": theme.text},
        },
        "dragmode": "zoom",
        "uirevision": "kept",  # a new theme keeps the zoom
        **more,
    }


def axis(theme: Theme, **more: Any) -> dict[str, Any]:
    """An axis with hairlines, its labels outside."""
    return {
        "gridcolor": theme.hairline,
        "linecolor": theme.line,
        "zeroline": False,
        "ticks": "",
        "tickfont": {"size": _AXIS_SIZE, "color": theme.muted},
        "title": {"font": {"size": _AXIS_SIZE, "color": theme.muted}, "standoff": 8},
        "fixedrange": False,
        **more,
    }


def plate(theme: Theme, text: str, x: float, y: float, **more: Any) -> dict[str, Any]:
    """An annotation without an arrow on an opaque plate, so that it reads over lines."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "showarrow": False,
        "bgcolor": theme.page,
        "borderpad": 2,
        "font": {"size": _LABEL_SIZE, "color": theme.text},
        **more,
    }


def log_range(values: Sequence[float], pad: float = 0.04) -> list[float]:
    """The range of a log axis, in powers of ten, around positive values, with a share of it as margin."""
    low, high = math.log10(min(values)), math.log10(max(values))
    margin = max((high - low) * pad, 0.02)
    return [low - margin, high + margin]


def log_ticks(span: Sequence[float], most: int = 9) -> list[float]:
    """Round values inside a log axis' range: 1, 2 and 5 of each decade, fewer where these exceed `most`."""
    low, high = span
    decades = range(math.floor(low), math.ceil(high) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        inside = [tick for tick in ticks if low <= math.log10(tick) <= high]
        if len(inside) <= most:
            break
    return inside


def size_ticks(span: Sequence[float], sizes: Iterable[int]) -> dict[str, Any]:
    """Ticks of a log axis of tokens or rows: powers of two; where fewer than two are in range, the sizes."""
    ticks = [2**power for power in range(31) if span[0] <= math.log10(2**power) <= span[1]]
    if len(ticks) < _LEAST_TICKS:
        every = sorted(set(sizes))
        ticks = every[:: 1 + len(every) // _MOST_SIZES]
    return {"tickvals": ticks, "ticktext": [count_tick(tick) for tick in ticks]}


def count_tick(value: float) -> str:
    """A whole number on an axis: 1,024."""
    return f"{value:,.0f}"


def time_tick(seconds: float) -> str:
    """A round duration on an axis: 0.5 ms, 50 ms, 2 s."""
    return f"{seconds:g} s" if seconds >= 0.999 else f"{seconds * 1e3:g} ms"


def empty(theme: Theme, height: int, reason: str) -> go.Figure:
    """Axes with nothing on them, and why."""
    bare = axis(theme, showticklabels=False, range=[0, 1], fixedrange=True, showline=True)
    note = plate(theme, reason, 0.5, 0.5, xref="paper", yref="paper")
    note["font"]["color"] = theme.muted
    layout = base_layout(theme, height, xaxis=bare, yaxis=bare, annotations=[note])
    return go.Figure(layout={**layout, "margin": {"l": 56, "r": 8, "t": 8, "b": 40}, "dragmode": False})
