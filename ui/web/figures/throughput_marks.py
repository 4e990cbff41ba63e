"""Lines and labels of the throughput chart: the best, the share, the point with its interval, chunk sizes.

Plotly takes shapes on a log axis in data values, annotations in powers of ten.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from profiler.saturation_report import SaturationReport
from ui.palette import Theme
from ui.web.figures.style import plate
from ui.words import count, plural, rate

__all__ = ["ChunkMark", "labels", "lines"]

Parts = list[dict[str, Any]]

Place = dict[str, Any]

_ROOM = 0.25  # share of the width that a label beside the point needs
_CLEAR = 0.35  # share of the best throughput below which a label would cross the curve


@dataclass(frozen=True, slots=True)
class ChunkMark:
    """A chunk size in use, and what it is called."""

    tokens: int
    label: str


def lines(report: SaturationReport, theme: Theme, chunks: Sequence[ChunkMark]) -> Parts:
    """Shapes: across both charts where they mark a size, in the upper one where they mark a throughput."""
    found, best = report.found, report.best_tokens_per_s
    parts: Parts = []
    if found.tokens is not None:
        band = {"type": "rect", "x0": found.low, "x1": found.high, "fillcolor": theme.accent, "opacity": 0.14}
        parts.append({**_upright(0, 0), **band, "line": {"width": 0}, "layer": "below"})
        parts.append(_upright(found.tokens, 1.5, color=theme.accent))
    parts += [_upright(mark.tokens, 1.2, color=theme.muted, dash="dash") for mark in chunks]
    if best is not None:
        parts.append(_level(best, 1.5, color=theme.text, dash="dash"))
        parts.append(_level(found.q * best, 1, color=theme.muted, dash="dot"))
    return parts


def labels(
    report: SaturationReport, theme: Theme, chunks: Sequence[ChunkMark], x_range: Sequence[float]
) -> Parts:
    """Annotations of those lines, or why there are none."""
    found, best = report.found, report.best_tokens_per_s
    parts = [_chunk_label(mark, theme, x_range) for mark in chunks]
    if best is None:
        measured = plural(found.num_sizes, "size") if found.num_sizes else "no forward"
        text = f"no fit: {measured} of one prompt without a prefix, 8 sizes are needed"
        return [*parts, _in_chart(theme, text, 0.5, 0.5, xanchor="center", font={"color": theme.muted})]
    parts.append(_at_level(theme, f"<b>best of the fit {rate(best)}</b>", best, yanchor="bottom"))
    share = f"{found.q * 100:g} % of it"
    parts.append(_at_level(theme, share, found.q * best, yanchor="top", font={"color": theme.muted}))
    if found.tokens is None:
        text = f"<b>not saturated</b><br>still rises at {count(report.sizes['tokens'][-1])} tokens"
        return [*parts, _in_chart(theme, text, 0.97, 0.12, xanchor="right", align="right")]
    return [*parts, *_around_point(report, theme, x_range)]


def _around_point(report: SaturationReport, theme: Theme, x_range: Sequence[float]) -> Parts:
    """The point's plate, and what holds on either side of it, where there is room beside the curve.

    Right of the point the curve is above everything here; left of it labels stay low, and away from it.
    """
    found, best = report.found, report.best_tokens_per_s
    assert found.tokens is not None
    assert best is not None
    left, right = math.log10(found.low or found.tokens), math.log10(found.high or found.tokens)
    room = _ROOM * (x_range[1] - x_range[0])
    on_left: Place = {"x": left, "xanchor": "right", "xshift": -6}
    on_right: Place = {"x": right, "xanchor": "left", "xshift": 6}
    if x_range[1] - right < room:
        return [_point_plate(report, theme, y=0.2 * best, **on_left)]
    parts = [_point_plate(report, theme, y=0.5 * best, **on_right)]
    words = _side_words(theme, "full:", "more only takes longer")
    parts.append(plate(theme, words, y=0.2 * best, align="left", **on_right))
    if left - x_range[0] > room and _share_at(report, 10 ** (left - room)) > _CLEAR:
        words = _side_words(theme, "too small:", "the machine is not filled")
        parts.append(plate(theme, words, y=0.2 * best, align="right", **on_left))
    return parts


def _point_plate(report: SaturationReport, theme: Theme, **place: Any) -> dict[str, Any]:
    found = report.found
    text = (
        f"<b>saturation point {count(found.tokens)}</b><br>"
        f'<span style="color:{theme.text}">95 % interval {count(found.low)}–{count(found.high)}</span>'
    )
    frame: Place = {"bordercolor": theme.accent, "borderwidth": 1, "borderpad": 5, "align": "left"}
    return plate(theme, text, **place, **frame, font={"size": 12, "color": theme.accent})


def _side_words(theme: Theme, head: str, words: str) -> str:
    return f'<span style="color:{theme.accent}"><b>{head}</b></span><br>{words}'


def _share_at(report: SaturationReport, tokens: float) -> float:
    """The fit there as a share of the best; 1 where nothing is measured, as nothing is drawn there."""
    fit = report.fitted(round(tokens))
    return 1.0 if fit is None else fit.share


def _chunk_label(mark: ChunkMark, theme: Theme, x_range: Sequence[float]) -> dict[str, Any]:
    """Above its line; to the left of it near the right end."""
    x = math.log10(mark.tokens)
    near_end = (x_range[1] - x) / (x_range[1] - x_range[0]) < _ROOM
    place = {"xanchor": "right", "xshift": 3} if near_end else {"xanchor": "left", "xshift": -3}
    return plate(theme, mark.label, x, 1.0, yref="paper", yanchor="bottom", **place)


def _upright(tokens: float, width: float, **line: Any) -> dict[str, Any]:
    place = {"type": "line", "xref": "x", "yref": "paper", "x0": tokens, "x1": tokens, "y0": 0, "y1": 1}
    return {**place, "line": {"width": width, **line}, "layer": "below"}


def _level(tokens_per_s: float, width: float, **line: Any) -> dict[str, Any]:
    place = {"type": "line", "xref": "x domain", "yref": "y", "x0": 0, "x1": 1}
    height = {"y0": tokens_per_s, "y1": tokens_per_s}
    return {**place, **height, "line": {"width": width, **line}, "layer": "below"}


def _at_level(theme: Theme, text: str, tokens_per_s: float, **more: Any) -> dict[str, Any]:
    font = {"size": 12, "color": theme.text, **more.pop("font", {})}
    return plate(theme, text, 0.02, tokens_per_s, xref="paper", xanchor="left", font=font, **more)


def _in_chart(theme: Theme, text: str, x: float, y: float, **more: Any) -> dict[str, Any]:
    font = {"size": 12, "color": theme.text, **more.pop("font", {})}
    return plate(theme, text, x, y, xref="x domain", yref="y domain", font=font, **more)
