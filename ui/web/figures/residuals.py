"""How far the measured sizes lie from the fitted throughput, on the axis of the charts above."""

import plotly.graph_objects as go

from profiler.saturation_report import SaturationReport
from ui.palette import FILLS, Theme
from ui.web.figures.style import axis, base_layout, empty, log_range, size_ticks

__all__ = ["HEIGHT", "residuals_figure"]

HEIGHT = 150
_LEAST = 1.0  # per cent that the axis spans on either side


def residuals_figure(report: SaturationReport, theme: Theme) -> go.Figure:
    """Each size's median throughput against the fit, in per cent; those of dips have their own mark."""
    if report.best_tokens_per_s is None:
        return empty(theme, HEIGHT, "no fit, so no residuals")
    tokens, dipped = report.sizes["tokens"].to_list(), report.sizes["in_dip"].to_list()
    misses = (report.sizes["residual"] * 100).to_list()
    span = max(_LEAST, *(abs(miss) for miss in misses)) * 1.15
    x_range = log_range(tokens)
    x = axis(theme, type="log", range=x_range, **size_ticks(x_range, tokens))
    y = axis(theme, range=[-span, span], ticksuffix=" %", nticks=5)
    marker = {
        "size": 7,
        "symbol": ["triangle-down" if dip else "circle" for dip in dipped],
        "color": [FILLS["stall_mixed"] if dip else theme.page for dip in dipped],
        "line": {"color": theme.text, "width": 1.1},
    }
    hover = "%{x:,.0f} tokens: %{y:+.1f} % of the fit<extra></extra>"
    dots = go.Scatter(x=tokens, y=misses, mode="markers", marker=marker, hovertemplate=hover)
    level = {"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "y0": 0, "y1": 0}
    shapes = [{**level, "line": {"color": FILLS["prefill"], "width": 1.5}, "layer": "below"}]
    layout = {"xaxis": x, "yaxis": y, "shapes": shapes, "margin": {"l": 60, "r": 10, "t": 8, "b": 28}}
    return go.Figure(data=[dots], layout=base_layout(theme, HEIGHT, **layout))
