"""What requests waited for over time: one stacked bar a span of time, as high as the requests that waited."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from profiler.ledger.report import CausesOverTime
from ui.palette import FILLS, Theme
from ui.part_words import CAUSES, CauseGroup
from ui.web.figures.style import axis, base_layout, empty
from ui.words import seconds

__all__ = ["HEIGHT", "cause_sums", "causes_figure"]

HEIGHT = 236
_PATTERNS = {  # the shape, and how much of it is ink
    "others_prefill": ("/", 0.45),
    "mixed_extra": (".", 0.35),
    "no_kv": ("\\", 0.4),
    "deferred": ("-", 0.3),
    "preempted": ("+", 0.3),
    "others_decodes": ("|", 0.3),
    "host": ("-", 0.4),
    "idle": (".", 0.15),
    "not_told": ("x", 0.3),
}
_PATTERN_PX = 5


def causes_figure(causes: CausesOverTime, start_ns: int, theme: Theme, nothing: str) -> go.Figure:
    """Times count from `start_ns`; `nothing` says why nobody waited."""
    edges_s = (causes.edges_ns - start_ns) / 1e9
    spans_s = np.diff(edges_s)
    sums = cause_sums(causes)
    if not len(spans_s) or not any(waited.any() for waited in sums.values()):
        return empty(theme, HEIGHT, nothing)
    bars = [_bar(cause, waited, edges_s, spans_s, theme) for cause, waited in sums.items() if waited.any()]
    x = axis(theme, range=[edges_s[0], edges_s[-1]], ticksuffix=" s", nticks=8)
    y = axis(theme, rangemode="tozero", nticks=6)
    y["title"]["text"] = "requests that wait"
    layout = {
        "xaxis": x,
        "yaxis": y,
        "barmode": "stack",
        "bargap": 0,
        "margin": {"l": 44, "r": 8, "t": 8, "b": 28},
    }
    return go.Figure(data=bars, layout=base_layout(theme, HEIGHT, **layout))


def cause_sums(causes: CausesOverTime) -> dict[CauseGroup, NDArray[np.int64]]:
    """(spans,) nanoseconds of waiting in each span by cause; together they are all of `waiting_ns`."""
    return {cause: causes.waiting_ns[:, list(cause.kinds)].sum(axis=1) for cause in CAUSES}


def _bar(
    cause: CauseGroup,
    waited_ns: NDArray[np.int64],
    edges_s: NDArray[np.float64],
    spans_s: NDArray[np.float64],
    theme: Theme,
) -> go.Bar:
    """Its height is the mean number of requests that waited for this cause in the span."""
    middles_s = (edges_s[:-1] + edges_s[1:]) / 2
    told = [
        f"{start:.3f} to {end:.3f} s: {cause.words} {seconds(ns / 1e9)}"
        for start, end, ns in zip(edges_s[:-1], edges_s[1:], waited_ns.tolist(), strict=True)
    ]
    return go.Bar(
        x=middles_s.tolist(),
        y=(waited_ns / 1e9 / spans_s).tolist(),
        width=spans_s.tolist(),
        name=cause.words,
        marker=_marker(cause, theme),
        customdata=told,
        hovertemplate="%{customdata}<extra></extra>",
    )


def _marker(cause: CauseGroup, theme: Theme) -> dict[str, Any]:
    colour = FILLS[cause.colour] if cause.colour in FILLS else getattr(theme, cause.colour)
    marker: dict[str, Any] = {"color": colour, "line": {"width": 0}}
    if cause.key in _PATTERNS:
        shape, solidity = _PATTERNS[cause.key]
        marker["pattern"] = {
            "shape": shape,
            "solidity": solidity,
            "size": _PATTERN_PX,
            "fgcolor": theme.page,
            "fillmode": "replace" if cause.key in ("idle", "deferred", "preempted") else "overlay",
        }
    return marker
