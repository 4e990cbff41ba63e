"""Labels over the throughput chart: of its lines, of what holds beside the point, of dips.

Plotly takes annotations on a log axis in powers of ten.
"""

import math
from collections.abc import Sequence
from typing import Any

from profiler.saturation_report import SaturationReport
from ui.palette import Theme
from ui.si_words import percent
from ui.web.figures.style import plate
from ui.web.figures.throughput_marks import ChunkMark, Marks, other_chunks, ridge_is_seen, share_at
from ui.words import count, plural, rate, seconds

__all__ = ["labels", "limit_is_low"]

Parts = list[dict[str, Any]]

Place = dict[str, Any]

_TITLE = 0.24  # share of the width that the chart's title takes at the left
_WIDE = 0.32  # share of the width that a label at the left end takes
_ROOM = 0.25  # share of the width that a label beside the point needs
_CLEAR = 0.35  # share of the best throughput below which a label would cross the curve
_DIPS_SAID = 3
_ROW_PX = 17  # between labels above the charts


def labels(
    report: SaturationReport,
    theme: Theme,
    marks: Marks,
    x_range: Sequence[float],
    time_range: Sequence[float],
) -> Parts:
    """Annotations of those lines, or why there are none. Ranges are those of the axes, in powers of ten."""
    found, best = report.found, report.best_tokens_per_s
    parts = [_chunk_label(mark, theme, x_range) for mark in other_chunks(marks)]
    parts += _recommended_label(marks, theme, x_range)
    if marks.limit_s is not None:
        parts.append(_limit_label(marks.limit_s, theme, time_range))
    if best is None:
        measured = plural(found.num_sizes, "size") if found.num_sizes else "no forward"
        text = f"no fit: {measured} of one prompt without a prefix, 8 sizes are needed"
        if marks.modelled:
            text += "<br>dotted: the model of all forwards"
        place: Place = {"xanchor": "right", "yanchor": "bottom", "align": "right"}
        return [*parts, _in_chart(theme, text, 0.98, 0.05, **place, font={"color": theme.muted})]
    parts.append(_at_level(theme, _plateau_words(report), best, yanchor="bottom"))
    share = f"{found.q * 100:g} % of it"
    parts.append(_at_level(theme, share, found.q * best, yanchor="top", font={"color": theme.muted}))
    parts += _dip_labels(report, theme)
    if found.tokens is None:
        text = f"<b>not saturated</b><br>still rises at {count(report.sizes['tokens'][-1])} tokens"
        return [*parts, _in_chart(theme, text, 0.97, 0.12, xanchor="right", align="right")]
    return [*parts, *_around_point(report, theme, marks, x_range)]


def _plateau_words(report: SaturationReport) -> str:
    plateau = report.found.plateau
    if plateau is None:
        return f"<b>best of the fit {rate(report.best_tokens_per_s)}</b>"
    low, high = rate(plateau.low).removesuffix(" tokens/s"), rate(plateau.high).removesuffix(" tokens/s")
    return f"<b>plateau {rate(plateau.tokens_per_s)}</b> [{low}, {high}]"


def _dip_labels(report: SaturationReport, theme: Theme) -> Parts:
    """The deepest dips by their sizes; their points are marked whether they are named here or not."""
    rates = report.sizes.select("tokens_per_s", "tokens").rows()
    deepest = sorted(report.found.dips, key=lambda dip: -dip.depth)[:_DIPS_SAID]
    parts = []
    for dip in deepest:
        sizes = count(dip.first) if dip.first == dip.last else f"{count(dip.first)}–{count(dip.last)}"
        text = f"▲ dip at {sizes}, {percent(dip.depth)}"
        inside = [(speed, tokens) for speed, tokens in rates if dip.first <= tokens <= dip.last]
        height, tokens = min(inside, default=(0.0, dip.first))
        more: Place = {"yanchor": "top", "yshift": -6, "font": {"size": 11, "color": theme.stall_mixed_text}}
        parts.append(plate(theme, text, math.log10(tokens), height, **more))
    return parts


def _around_point(report: SaturationReport, theme: Theme, marks: Marks, x_range: Sequence[float]) -> Parts:
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
    ridge = ridge_is_seen(report, marks)
    parts = [_ridge_label(marks.ridge_tokens, theme)] if ridge and marks.ridge_tokens else []
    if x_range[1] - right < room:
        return [*parts, _point_plate(report, theme, y=0.2 * best, **on_left)]
    parts.append(_point_plate(report, theme, y=0.5 * best, **on_right))
    words = _side_words(theme, "compute bound:" if ridge else "full:", "more only takes longer")
    parts.append(plate(theme, words, y=0.2 * best, align="left", **on_right))
    if ridge:
        return [*parts, *_left_of_ridge(report, theme, marks, x_range)]
    if left - x_range[0] > room and share_at(report, 10 ** (left - room)) > _CLEAR:
        words = _side_words(theme, "too small:", "the machine is not filled")
        parts.append(plate(theme, words, y=0.2 * best, align="right", **on_left))
    return parts


def _left_of_ridge(report: SaturationReport, theme: Theme, marks: Marks, x_range: Sequence[float]) -> Parts:
    """What holds left of the ridge, above the curve where that is low."""
    assert marks.ridge_tokens is not None
    ridge = math.log10(marks.ridge_tokens)
    end = x_range[0] + _WIDE * (x_range[1] - x_range[0])
    if ridge <= end or share_at(report, 10**end) >= _CLEAR:
        return []
    words = _side_words(theme, "memory bound:", "more tokens are almost free")
    place: Place = {"xanchor": "left", "yanchor": "middle", "align": "left"}
    return [_in_chart(theme, words, 0.02, 0.55, **place)]


def _ridge_label(tokens: float, theme: Theme) -> dict[str, Any]:
    """At the foot of its line."""
    foot: Place = {"yref": "y domain", "xanchor": "right", "yanchor": "bottom", "xshift": -2}
    font = {"size": 11, "color": theme.muted}
    return plate(theme, f"ridge {count(round(tokens))} tokens", math.log10(tokens), 0, **foot, font=font)


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


def _chunk_label(mark: ChunkMark, theme: Theme, x_range: Sequence[float]) -> dict[str, Any]:
    return _above(mark.label, mark.tokens, _row(mark.tokens, x_range), theme, x_range, {"color": theme.text})


def _recommended_label(marks: Marks, theme: Theme, x_range: Sequence[float]) -> Parts:
    if marks.recommended is None:
        return []
    used = [mark.label for mark in marks.chunks if mark.tokens == marks.recommended]
    text = f"<b>▼ recommended chunk {count(marks.recommended)}</b>" + "".join(f", {label}" for label in used)
    others = [_row(mark.tokens, x_range) for mark in other_chunks(marks)]
    row = max(1 + max(others, default=-1), _row(marks.recommended, x_range))
    return [_above(text, marks.recommended, row, theme, x_range, {"color": theme.decode_text})]


def _row(tokens: int, x_range: Sequence[float]) -> int:
    """The first row above the chart, or the second where the chart's title stands in the first."""
    return int((math.log10(tokens) - x_range[0]) / (x_range[1] - x_range[0]) < _TITLE)


def _above(
    text: str, tokens: int, row: int, theme: Theme, x_range: Sequence[float], font: dict[str, Any]
) -> dict[str, Any]:
    """A label above its line; to the left of it near the right end."""
    x = math.log10(tokens)
    near_end = (x_range[1] - x) / (x_range[1] - x_range[0]) < _ROOM
    place: Place = {"xanchor": "right", "xshift": 6} if near_end else {"xanchor": "left", "xshift": -6}
    height: Place = {"yref": "paper", "yanchor": "bottom", "yshift": row * _ROW_PX}
    return plate(theme, text, x, 1.0, **place, **height, font={"size": 12, **font})


def limit_is_low(limit_s: float | None, time_range: Sequence[float]) -> bool:
    """Whether a limit lies in the lower half of the forward times, so that its label stands at the right."""
    return limit_s is not None and math.log10(limit_s) < sum(time_range) / 2


def _limit_label(limit_s: float, theme: Theme, time_range: Sequence[float]) -> dict[str, Any]:
    """On its line, at the end where no forward takes so long; at the edge with an arrow if it lies beyond."""
    text = f"<b>longest wait you accept {seconds(limit_s)}</b>"
    font = {"size": 12, "color": theme.stall_prefill_text}
    right = limit_is_low(limit_s, time_range)
    x, more = (
        0.98 if right else 0.02,
        {"xref": "paper", "xanchor": "right" if right else "left", "font": font},
    )
    height, (low, high) = math.log10(limit_s), time_range
    if low <= height <= high:
        return plate(theme, text, x, height, yref="y2", **more)
    top = height > high
    edge: Place = {"yref": "y2 domain", "yanchor": "top" if top else "bottom"}
    return plate(theme, f"{text} {'↑' if top else '↓'}", x, float(top), **edge, **more)


def _at_level(theme: Theme, text: str, tokens_per_s: float, **more: Any) -> dict[str, Any]:
    font = {"size": 12, "color": theme.text, **more.pop("font", {})}
    return plate(theme, text, 0.02, tokens_per_s, xref="paper", xanchor="left", font=font, **more)


def _in_chart(theme: Theme, text: str, x: float, y: float, **more: Any) -> dict[str, Any]:
    font = {"size": 12, "color": theme.text, **more.pop("font", {})}
    return plate(theme, text, x, y, xref="x domain", yref="y domain", font=font, **more)
