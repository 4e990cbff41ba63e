"""Lines over the throughput chart: plateau, point with interval, ridge, chunk sizes, a limit.

Plotly takes shapes on a log axis in data values.
"""

from typing import Any

from profiler.saturation_report import SaturationReport
from ui.palette import Theme
from ui.web.figures.throughput_marks import Marks, other_chunks, ridge_is_seen, share_at

__all__ = ["lines"]

Parts = list[dict[str, Any]]


def lines(report: SaturationReport, theme: Theme, marks: Marks) -> Parts:
    """Shapes: across both charts where they mark a size, in one where they mark a throughput or a time."""
    found, best = report.found, report.best_tokens_per_s
    parts: Parts = []
    if found.tokens is not None:
        band = {"type": "rect", "x0": found.low, "x1": found.high, "fillcolor": theme.accent, "opacity": 0.14}
        parts.append({**_upright(0, 0), **band, "line": {"width": 0}, "layer": "below"})
        parts.append(_upright(found.tokens, 1.5, color=theme.accent))
    parts += [_upright(mark.tokens, 1.2, color=theme.muted, dash="dash") for mark in other_chunks(marks)]
    if marks.recommended is not None:
        parts.append(_upright(marks.recommended, 2, color=theme.decode_text, dash="dash"))
    if best is not None:
        parts.append(_level(best, 1.5, color=theme.text, dash="dash"))
        parts.append(_level(found.q * best, 1, color=theme.muted, dash="dot"))
        parts += _plateau_band(report, theme)
    if ridge_is_seen(report, marks):
        foot = {**_upright(marks.ridge_tokens or 0, 1, color=theme.muted, dash="dot"), "yref": "y domain"}
        parts.append({**foot, "y1": share_at(report, marks.ridge_tokens or 0)})
    if marks.limit_s is not None:
        limit = _level(marks.limit_s, 1.5, color=theme.stall_prefill_text, dash="dashdot")
        parts.append({**limit, "yref": "y2"})
    return parts


def _plateau_band(report: SaturationReport, theme: Theme) -> Parts:
    """The plateau's interval, where it is wide enough to be seen."""
    plateau = report.found.plateau
    if plateau is None:
        return []
    place = {"type": "rect", "xref": "x domain", "yref": "y", "x0": 0, "x1": 1, "layer": "below"}
    height = {"y0": plateau.low, "y1": plateau.high}
    return [{**place, **height, "fillcolor": theme.text, "opacity": 0.07, "line": {"width": 0}}]


def _upright(tokens: float, width: float, **line: Any) -> dict[str, Any]:
    place = {"type": "line", "xref": "x", "yref": "paper", "x0": tokens, "x1": tokens, "y0": 0, "y1": 1}
    return {**place, "line": {"width": width, **line}, "layer": "below"}


def _level(height: float, width: float, **line: Any) -> dict[str, Any]:
    place = {"type": "line", "xref": "x domain", "yref": "y", "x0": 0, "x1": 1}
    return {**place, "y0": height, "y1": height, "line": {"width": width, **line}, "layer": "below"}
