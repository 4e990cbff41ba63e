"""Tiles of a window as terminal cells: arrays of one glyph and one ink a cell, without a terminal.

A cell of a lane shows the kind that covers most of it, with stalls weighted 2.5 and chunks 3, so that a short
stall stays visible at any zoom. A token counts for what the other kinds leave free of its cell.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from profiler.timeline.tiles import UNKNOWN, Lane, LaneKind
from ui.tui.glyphs import UNICODE, Marks
from ui.tui.ink import CURSOR, Ink
from ui.tui.text import Line

__all__ = ["Cells", "blank", "columns_of", "lane_cells"]

WEIGHTS = {
    LaneKind.CHUNK: 3.0,
    LaneKind.STALL_PREFILL: 2.5,
    LaneKind.STALL_MIXED: 2.5,
    LaneKind.STALL_HELD: 2.5,
    LaneKind.STALL_DEFERRED: 2.5,
    LaneKind.STALL_UNKNOWN: 2.5,
    LaneKind.QUEUED: 1.0,
}
INKS = {
    LaneKind.CHUNK: Ink.CHUNK,
    LaneKind.STALL_PREFILL: Ink.STALL,
    LaneKind.STALL_MIXED: Ink.MIXED,
    LaneKind.STALL_HELD: Ink.HELD,
    LaneKind.STALL_DEFERRED: Ink.DEFERRED,
    LaneKind.STALL_UNKNOWN: Ink.MUTED,
    LaneKind.QUEUED: Ink.QUEUED,
    LaneKind.TOKEN: Ink.DECODE,
}
_KINDS = (*WEIGHTS, LaneKind.TOKEN)


@dataclass(slots=True)
class Cells:
    """One row of the chart: a glyph and an ink for each cell."""

    glyph: NDArray[np.str_]
    ink: NDArray[np.uint8]

    def copy(self) -> "Cells":
        """Another row of the same cells."""
        return Cells(self.glyph.copy(), self.ink.copy())

    def write(self, column: int, text: str, ink: Ink) -> None:
        """Put text of one-cell characters over the cells from `column` on, as far as they reach."""
        text = text[: max(len(self.ink) - column, 0)]
        self.glyph[column : column + len(text)] = list(text)
        self.ink[column : column + len(text)] = ink

    def spans(self, cursor: int | None = None) -> Line:
        """The row as spans, crossed by the cursor at a column; a pill hides it, a chunk's number stays."""
        glyph, ink = self.glyph, self.ink
        if cursor is not None and ink[cursor] != Ink.PILL:
            glyph, ink = glyph.copy(), ink.copy()
            if glyph[cursor].isdecimal():
                ink[cursor] = Ink.NUMBER_AT_CURSOR
            else:
                glyph[cursor] = "│"
                ink[cursor] |= CURSOR
        bounds = [0, *(np.flatnonzero(np.diff(ink)) + 1).tolist(), len(ink)]
        text = "".join(glyph.tolist())
        return [(text[a:b], int(ink[a])) for a, b in pairwise(bounds) if b > a]


def blank(columns: int) -> Cells:
    """A row with nothing on it."""
    return Cells(np.full(columns, " ", dtype="<U1"), np.full(columns, Ink.BLANK, dtype=np.uint8))


def columns_of(t_ns: NDArray[np.int64], start_ns: int, end_ns: int, columns: int) -> NDArray[np.int64]:
    """The column that shows each moment; outside [0, columns) when out of sight."""
    return (t_ns - start_ns) * columns // (end_ns - start_ns)


def lane_cells(lane: Lane, start_ns: int, end_ns: int, columns: int, marks: Marks = UNICODE) -> Cells:
    """The lane of a request over [start_ns, end_ns) in so many cells."""
    edges = np.linspace(start_ns, end_ns, columns + 1)
    width_ns = (end_ns - start_ns) / columns
    covered = np.array([_covered_ns(lane, kind, edges) for kind in WEIGHTS]) / width_ns
    tokens = _holds_token(lane, start_ns, end_ns, columns)
    weights = np.array(list(WEIGHTS.values()))[:, None]
    free = np.clip(1.0 - covered.sum(axis=0), 1e-9, 1.0)
    scores = np.vstack([covered * weights, np.where(tokens, free, 0.0)])
    best = np.where(scores.max(axis=0) > 0, scores.argmax(axis=0), -1)
    cells = blank(columns)
    for index in np.unique(best[best >= 0]).tolist():
        here = best == index
        cells.glyph[here] = _glyph(_KINDS[index], marks)
        cells.ink[here] = INKS[_KINDS[index]]
    _number_chunks(cells, lane, edges, best == _KINDS.index(LaneKind.CHUNK))
    return cells


def _glyph(kind: LaneKind, marks: Marks) -> str:
    return {
        LaneKind.CHUNK: marks.chunk,
        LaneKind.STALL_PREFILL: marks.stall,
        LaneKind.STALL_MIXED: marks.mixed,
        LaneKind.STALL_HELD: marks.held,
        LaneKind.STALL_DEFERRED: marks.deferred,
        LaneKind.STALL_UNKNOWN: marks.mixed,
        LaneKind.QUEUED: marks.queued,
        LaneKind.TOKEN: marks.decode,
    }[kind]


def _covered_ns(lane: Lane, kind: LaneKind, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time of each column that items of a kind take; those of one kind follow one another.

    Their covered time up to a moment is a broken line through the items' ends: its differences between the
    edges of the columns are what each column holds. A bucket's busy time is spread over its length.
    """
    chosen = np.flatnonzero(lane.kind == kind)
    if not len(chosen):
        return np.zeros(len(edges) - 1)
    ends, up_to = np.empty(2 * len(chosen)), np.zeros(2 * len(chosen))
    ends[::2], ends[1::2] = lane.start_ns[chosen], lane.end_ns[chosen]
    up_to[1::2] = np.cumsum(lane.busy_ns[chosen])
    up_to[2::2] = up_to[1:-1:2]
    at_edges = np.interp(edges, np.maximum.accumulate(ends), up_to)
    return at_edges[1:] - at_edges[:-1]


def _holds_token(lane: Lane, start_ns: int, end_ns: int, columns: int) -> NDArray[np.bool_]:
    """Which columns hold a token; a bucket of tokens holds one in every column it reaches."""
    chosen = lane.kind == LaneKind.TOKEN
    first = columns_of(lane.start_ns[chosen], start_ns, end_ns, columns)
    last = columns_of(np.maximum(lane.end_ns[chosen], lane.start_ns[chosen]), start_ns, end_ns, columns)
    seen = (last >= 0) & (first < columns)
    steps = np.zeros(columns + 1, dtype=np.int64)
    np.add.at(steps, np.clip(first[seen], 0, columns), 1)
    np.add.at(steps, np.clip(last[seen] + 1, 0, columns), -1)
    return np.asarray(np.cumsum(steps)[:-1] > 0)


def _number_chunks(cells: Cells, lane: Lane, edges: NDArray[np.float64], is_chunk: NDArray[np.bool_]) -> None:
    """Shades the chunks of a lane in turn and numbers them: all k/n if that fits all, else k where it fits.

    A prompt that is one chunk has no number.
    """
    chosen = np.flatnonzero(lane.kind == LaneKind.CHUNK)
    if not len(chosen) or not is_chunk.any():
        return
    owners = np.where(is_chunk, _nearest(lane, chosen, (edges[:-1] + edges[1:]) / 2), -1)
    cells.ink[is_chunk & (lane.number[owners] % 2 == 0)] = Ink.CHUNK_ALTERNATE
    bounds = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]
    runs = [(int(owners[a]), a, b - a) for a, b in pairwise(bounds) if owners[a] >= 0]
    runs = [run for run in runs if lane.count[run[0]] == 1 and lane.of[run[0]] != 1]
    numbers = {item: int(lane.number[item]) for item, _, _ in runs}
    whole = {item: f"{k}/{lane.of[item]}" for item, k in numbers.items() if lane.of[item] != UNKNOWN}
    both = all(item in whole and len(whole[item]) < room for item, _, room in runs)
    for item, column, room in runs:
        text = whole[item] if both else str(numbers[item])
        if len(text) < room:
            cells.glyph[column : column + len(text)] = list(text)


def _nearest(lane: Lane, chosen: NDArray[np.int64], at_ns: NDArray[np.float64]) -> NDArray[np.int64]:
    """The item among `chosen` that holds each moment, or else lies nearest to it."""
    starts, ends = lane.start_ns[chosen], lane.end_ns[chosen]
    before = np.clip(np.searchsorted(starts, at_ns, side="right") - 1, 0, len(chosen) - 1)
    after = np.minimum(before + 1, len(chosen) - 1)
    closer = np.maximum(at_ns - ends[before], 0) > np.abs(starts[after] - at_ns)
    return chosen[np.where(closer, after, before)]
