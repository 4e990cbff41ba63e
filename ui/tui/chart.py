"""The chart: time axis, forwards, a lane for each request, KV pages and the counter of middle chunks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from profiler.timeline.tiles import UNKNOWN, Counters, LaneRef
from ui import words
from ui.tui.answer import reason
from ui.tui.axis import axis_cells
from ui.tui.bars import held_values, level_cells, strip_cells
from ui.tui.cells import Cells, blank, lane_cells
from ui.tui.ink import Ink
from ui.tui.lane_window import LaneWindow, lane_window
from ui.tui.layout import Layout
from ui.tui.picture import Picture
from ui.tui.text import Line, fit, shown

__all__ = ["axis_line", "gauge_lines", "lane_lines", "strip_lines"]

Ints = NDArray[np.int64]

PILL_ROWS = 4  # the answer's pill lies over one of the first lanes
MOST_MIDDLE_CHUNKS = 2  # two of them in flight is the most that an overlapped scheduler has


def axis_line(picture: Picture, place: Layout) -> Line:
    """The time axis."""
    cells = axis_cells(picture.view, place.columns, picture.mark_ns)
    return _row(place, "time s", cells, None)


def strip_lines(picture: Picture, place: Layout, cursor: int | None) -> list[Line]:
    """The forwards' tokens against the chunk budget, or against the largest forward where there is none."""
    view, timeline = picture.view, picture.source.timeline
    budget, largest = timeline.chunk_budget_tokens, timeline.largest_forward_tokens
    scale = budget or largest
    labels = [""] * place.strip_rows
    labels[:2] = words.count(scale), "budget" if budget else "largest"
    labels[-1] = "tokens"
    source, window = picture.source, (view.start_ns, view.end_ns, place.columns)
    bars = source.keep(
        ("bars", *window, place.strip_rows),
        lambda _: strip_cells(source.strip(*window), *window, place.strip_rows, scale or 1),
    )
    return [_row(place, label, cells, cursor) for label, cells in zip(labels, bars, strict=True)]


def lane_lines(picture: Picture, place: Layout, cursor: int | None) -> list[Line]:
    """One row a request; where there are more than rows, the last row counts the others."""
    window = lane_window(picture, place.lane_rows)
    lanes = [_lane(picture, place, ref) for ref in window.refs]
    _put_pill(picture, place, window.refs, lanes)
    lines = [
        _lane_row(picture, place, ref, cells, cursor) for ref, cells in zip(window.refs, lanes, strict=True)
    ]
    if not window.refs:
        lines.append(_note(place, "no request has anything to show in this range"))
    elif window.above or window.below:
        lines.append(_note(place, _beyond(window)))
    empty = _row(place, "", blank(place.columns), cursor)
    return lines + [empty] * (place.lane_rows - len(lines))


def gauge_lines(picture: Picture, place: Layout, cursor: int | None) -> list[Line]:
    """KV pages by kind as shares of the pool, and middle chunks in flight where there is room."""
    view, source = picture.view, picture.source
    window = (view.start_ns, view.end_ns, place.columns)
    names = ("locked", "private", "evictable", "free", "middle") if place.wide else ("locked", "free")
    gauges = source.keep(
        ("gauges", *window, names), lambda _: _gauge_cells(source.counters(*window), window, names)
    )
    return [_row(place, name, cells, cursor) for name, cells in zip(names, gauges, strict=True)]


def _gauge_cells(tile: Counters, window: tuple[int, int, int], names: Sequence[str]) -> list[Cells]:
    most = int(tile.pages_total.max(initial=UNKNOWN))
    gauges = _gauges(tile)
    rows = []
    for name in names:
        values, ink, pick = gauges[name]
        held = held_values(tile.t_ns, values, *window, pick)
        full = MOST_MIDDLE_CHUNKS if name == "middle" else most
        rows.append(level_cells(held, full, ink, zero="·" if name == "free" else " "))
        if not len(values) or (values == UNKNOWN).all():
            rows[-1].write(2, f"{words.UNKNOWN} not in this trace", Ink.MUTED)
    return rows


class _Gauge(NamedTuple):
    values: Ints
    ink: Ink
    pick: Callable[[Ints], np.int64]  # of several values in a cell: that of the fullest pool


def _gauges(tile: Counters) -> dict[str, _Gauge]:
    return {
        "locked": _Gauge(tile.pages_protected, Ink.LOCKED, np.max),
        "private": _Gauge(tile.pages_private, Ink.PRIVATE, np.max),
        "evictable": _Gauge(tile.pages_evictable, Ink.EVICTABLE, np.max),
        "free": _Gauge(tile.pages_free, Ink.FREE, np.min),
        "middle": _Gauge(tile.inflight_middle_chunks, Ink.MIDDLE, np.max),
    }


def _lane(picture: Picture, place: Layout, ref: LaneRef) -> Cells:
    view, source = picture.view, picture.source
    window = (view.start_ns, view.end_ns, place.columns)
    cells = source.keep(
        ("cells", ref.rid, *window),
        lambda _: lane_cells(source.lane(ref.rid, *window), *window, picture.marks),
    ).copy()
    if ref.first_token_ns is not None:
        _put_first_token(cells, ref, ref.first_token_ns, view.column(ref.first_token_ns, place.columns))
    return cells


def _put_first_token(cells: Cells, ref: LaneRef, t_ns: int, column: int | None) -> None:
    """The first token's mark, and of a long prompt what it took to get there, where that fits."""
    if column is None:
        return
    cells.write(column, "◆", Ink.GOOD)
    if ref.long and ref.arrival_ns is not None:
        text = f"TTFT {words.seconds((t_ns - ref.arrival_ns) / 1e9)} "
        if column + 1 + len(text) <= len(cells.ink):
            cells.write(column + 1, text, Ink.PILL)


def _put_pill(picture: Picture, place: Layout, refs: Sequence[LaneRef], lanes: Sequence[Cells]) -> None:
    """Names the longest stall in sight over one of the lanes it crosses, where it is long enough for it."""
    view, source = picture.view, picture.source
    window = (view.start_ns, view.end_ns)
    stall = source.keep(("longest", *window), lambda _: source.stalls().longest_in(*window))
    if stall is None:
        return
    first, last = (view.nearest_column(stall[end], place.columns) for end in ("start_ns", "end_ns"))
    text = _pill_text(stall, last - first - 2)
    if text is None:
        return
    column = first + (last - first - len(text)) // 2
    under = slice(column - 1, column + len(text) + 1)
    crossed = [
        cells
        for ref, cells in zip(refs[:PILL_ROWS], lanes, strict=False)
        if ref.rid != picture.rid and np.isin(cells.ink[under], (Ink.STALL, Ink.HELD, Ink.DEFERRED)).all()
    ]
    if crossed:
        crossed[len(crossed) // 2].write(column, text, Ink.PILL)


def _pill_text(stall: Mapping[str, Any], room: int) -> str | None:
    """As much of the answer as fits; None where not even the length does."""
    length = words.seconds(stall["gap_ns"] / 1e9)
    texts = (f" {length} with no token: {reason(stall)} ", f" {length} with no token ", f" {length} ")
    return next((text for text in texts if len(text) <= room), None)


def _lane_row(picture: Picture, place: Layout, ref: LaneRef, cells: Cells, cursor: int | None) -> Line:
    chosen = ref.rid == picture.rid
    room = place.label_cells - 1
    label = shown(ref.name, room)
    size = f" {_size(ref.prompt_tokens)}" if ref.long else ""
    if cell_len(label) + len(size) <= room:
        label += size
    ink = Ink.STRONG if chosen or ref.long else Ink.MUTED
    return _row(place, label, cells, cursor, ink=ink, chosen=chosen)


def _row(
    place: Layout, label: str, cells: Cells, cursor: int | None, *, ink: Ink = Ink.MUTED, chosen: bool = False
) -> Line:
    margin = ("▸" if chosen else " ", Ink.STRONG)
    return [margin, *fit([(label, ink)], place.label_cells), *cells.spans(cursor)]


def _note(place: Layout, text: str) -> Line:
    cells = blank(place.columns)
    cells.write(0, text, Ink.MUTED)
    return _row(place, "", cells, None)


def _beyond(window: LaneWindow) -> str:
    parts = [f"↑ {window.above:,} before"] if window.above else []
    parts += [f"↓ {words.plural(window.below, 'more request')}"] if window.below else []
    return " · ".join(parts)


def _size(tokens: int | None) -> str:
    """A prompt's length in a few cells: 940, 1.2K, 32K."""
    if tokens is None:
        return ""
    if tokens < 1000:
        return str(tokens)
    thousands = tokens / 1024 if tokens % 1024 == 0 else tokens / 1000
    return f"{thousands:.0f}K" if thousands >= 9.95 or thousands == int(thousands) else f"{thousands:.1f}K"
