"""A run in one small picture: tokens per forward over time, and below it what its decodes waited for."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.batch import ForwardMode
from profiler.ledger.parts import Chunk, GapDetail
from profiler.ledger.report import CausesOverTime, StallGroup
from profiler.timeline.tiles import Strip
from ui.palette import FILLS, Theme
from ui.web.figures.causes import causes_figure
from ui.web.figures.style import CLEAR, axis, base_layout, empty, plate
from ui.web.names import shown
from ui.words import count, plural, seconds

__all__ = ["COLUMNS", "HEIGHT", "glance_figure"]

HEIGHT = 256
COLUMNS = 360  # forwards that are drawn; of more, the longest of each column

_UPPER, _LOWER = [0.36, 1.0], [0.0, 0.24]  # shares of the height: tokens, waiting
_LEAST = 0.03  # of the scale: a forward of a few tokens stays visible
_ROOM = 0.011  # of the width that a character of a label takes
_WIDE = 0.004  # of the width from which on forwards are set apart by a line
_DIAGONALS = {"shape": "\\", "size": 7, "solidity": 0.12, "fgcolor": "#FFFFFF", "fgopacity": 0.45}


def glance_figure(
    strip: Strip,
    causes: CausesOverTime,
    budget_tokens: int | None,
    wall: tuple[StallGroup, GapDetail] | None,
    span_ns: tuple[int, int],
    theme: Theme,
) -> go.Figure:
    """`wall` is the longest wait; `span_ns` are the run's ends, from whose first one times count."""
    if not len(strip.start_ns):
        return empty(theme, HEIGHT, "no forward has a time")
    start_ns, end_ns = span_ns
    length_s = max(1e-9, (end_ns - start_ns) / 1e9)
    top = max(budget_tokens or 0, int(strip.extend_tokens.max()) + int(strip.decode_tokens.max()), 1)
    waiting = _waiting(causes, start_ns, theme)
    upper = _UPPER if waiting else [0.0, 1.0]
    layout = {
        "xaxis": axis(
            theme,
            range=[0, length_s],
            anchor="y2" if waiting else "y",
            ticksuffix=" s",
            nticks=7,
            showgrid=False,
        ),
        "yaxis": axis(theme, domain=upper, range=[0, top * 1.1], nticks=4, tickformat=",d"),
        "yaxis2": axis(theme, domain=_LOWER, nticks=3, rangemode="tozero"),
        "shapes": _budget_line(budget_tokens, length_s, theme),
        "annotations": [
            *_titles(theme, both=bool(waiting)),
            *_labels(wall, budget_tokens, top, start_ns, length_s, theme),
        ],
        "margin": {"l": 60, "r": 4, "t": 18, "b": 24},
        "bargap": 0,
        "barmode": "stack",  # those of forwards have a base of their own
    }
    bars = list(_forwards(strip, start_ns, length_s, top, theme))
    return go.Figure(data=[*bars, *waiting], layout=base_layout(theme, HEIGHT, **layout))


def _forwards(strip: Strip, start_ns: int, length_s: float, top: int, theme: Theme) -> Iterator[go.Bar]:
    """Decode rows below, prompt tokens above them; a thin forward stays as high as can be seen."""
    x = (strip.start_ns - start_ns) / 1e9
    width = np.maximum((strip.end_ns - strip.start_ns) / 1e9, length_s / 2_000)
    decode, extend = (np.maximum(column, 0) for column in (strip.decode_tokens, strip.extend_tokens))
    floor = np.where(decode > 0, np.maximum(decode, _LEAST * top), 0)
    told = [
        [int(forward), _mode(mode), count(int(prompt)), count(int(rows)), seconds(float(ns) / 1e9)]
        for forward, mode, prompt, rows, ns in zip(
            strip.forward_id, strip.mode, extend, decode, strip.end_ns - strip.start_ns, strict=True
        )
    ]
    hover = (
        "forward %{customdata[0]} %{customdata[1]}, %{customdata[4]}<br>"
        "%{customdata[2]} prompt + %{customdata[3]} decode tokens<extra></extra>"
    )
    above = np.where(extend > 0, np.maximum(decode + extend - floor, _LEAST * top), 0)
    parts = (("decode", floor, np.zeros_like(floor)), ("prefill", above, floor))
    for name, height, base in parts:
        there = height > 0
        edges = np.where(width[there] > _WIDE * length_s, 1, 0)
        yield go.Bar(
            x=(x + width / 2)[there].tolist(),
            y=height[there].tolist(),
            base=base[there].tolist(),
            width=width[there].tolist(),
            marker={
                "color": FILLS[name],
                "line": {"color": theme.page, "width": edges.tolist()},
                "pattern": _DIAGONALS if name == "prefill" else {},
            },
            customdata=[row for row, kept in zip(told, there, strict=True) if kept],
            hovertemplate=hover,
            name=name,
        )


def _mode(code: int) -> str:
    return next((mode.name for mode in ForwardMode if mode.value == code), "")


def _waiting(causes: CausesOverTime, start_ns: int, theme: Theme) -> list[go.Bar]:
    """Requests that wait, by what for: the bars of the Stalls page."""
    bars = causes_figure(causes, start_ns, theme, "").data
    return [bar.update(yaxis="y2") for bar in bars]


def _budget_line(budget: int | None, length_s: float, theme: Theme) -> list[dict[str, Any]]:
    if not budget:
        return []
    line = {"color": theme.text, "width": 1, "dash": "dash"}
    return [{"type": "line", "x0": 0, "x1": length_s, "y0": budget, "y1": budget, "line": line}]


def _titles(theme: Theme, *, both: bool) -> list[dict[str, Any]]:
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "bgcolor": CLEAR}
    font = {"size": 11, "color": theme.muted}
    texts = (("tokens of each forward", _UPPER[1]), ("requests waiting, by what for", _LOWER[1]))
    return [plate(theme, text, 0, y, **place, font=font) for text, y in texts[: 1 + both]]


def _labels(
    wall: tuple[StallGroup, GapDetail] | None,
    budget: int | None,
    top: int,
    start_ns: int,
    length_s: float,
    theme: Theme,
) -> list[dict[str, Any]]:
    """The budget, whose chunks make the wall, and how long that is; what does not fit is left out."""
    labels = []
    if budget:
        text = f"budget {count(budget)}"
        place = {"xanchor": "right", "yanchor": "bottom", "xref": "paper", "bgcolor": CLEAR}
        labels.append(plate(theme, text, 1, budget, **place, font={"size": 11, "color": theme.muted}))
    if wall is None:
        return labels
    group, gap = wall
    for name, x0, x1, chunks in _runs(gap.chunks):
        text = f"{shown(name)}: {chunks}"
        at = ((x0 + x1) / 2 - start_ns) / 1e9
        if (x1 - x0) / 1e9 > _ROOM * len(text) * length_s:
            labels.append(plate(theme, f"<b>{_safe(text)}</b>", at, min(top, budget or top) * 0.9))
    said = seconds(group.gap_ns / 1e9)
    if group.gap_ns / 1e9 > _ROOM * len(said) * length_s:
        at = ((group.start_ns + group.end_ns) / 2 - start_ns) / 1e9
        labels.append(plate(theme, f"<b>{said}</b>", at, group.requests / 2, yref="y2"))
    return labels


def _runs(chunks: Sequence[Chunk]) -> Iterator[tuple[str, int, int, str]]:
    """Each request whose chunks these are: name, first start, last end, chunks in words."""
    by_rid: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        by_rid.setdefault(chunk.rid, []).append(chunk)
    for mine in by_rid.values():
        said = "whole prompt" if mine[0].of == 1 else plural(len(mine), "chunk")
        yield mine[0].name, min(c.start_ns for c in mine), max(c.end_ns for c in mine), said


def _safe(text: str) -> str:
    """Plotly reads a few tags in text: a name is not markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
