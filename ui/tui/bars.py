"""Forwards and counters as terminal cells: bars that grow by eighths of a cell."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.timeline.tiles import UNKNOWN, Strip
from ui.tui.cells import Cells, blank
from ui.tui.glyphs import EIGHTHS
from ui.tui.ink import Ink

__all__ = ["held_values", "level_cells", "strip_cells"]

Ints = NDArray[np.int64]

_EIGHTHS = np.array(list(EIGHTHS))
PREFILL_WEIGHT = 3.0  # a short prefill stays visible among decodes
UNKNOWN_TOKENS = "·"


def strip_cells(
    strip: Strip, start_ns: int, end_ns: int, columns: int, rows: int, scale_tokens: int
) -> list[Cells]:
    """Bars of the forwards, `rows` cells high for `scale_tokens`: decode below, prefill above; top row first.

    A column shows the forward that covers most of it. One that exceeds the scale ends in `▲`.
    """
    if not len(strip.start_ns):
        return [blank(columns) for _ in range(rows)]
    owners = _owners(strip, start_ns, end_ns, columns)
    top = rows * 8
    decode = np.minimum(_levels(strip.decode_tokens, owners, top, scale_tokens), top)
    total = decode + _levels(strip.extend_tokens, owners, top, scale_tokens)
    alternate = (owners >= 0) & (strip.forward_id[owners] % 2 == 1)
    lines = [_bar_row(decode - 8 * row, np.minimum(total, top) - 8 * row, alternate) for row in range(rows)]
    lines[0].glyph[_unknown(strip, owners)] = UNKNOWN_TOKENS
    over = _tokens(strip, owners) > scale_tokens
    lines[-1].glyph[over] = "▲"
    lines[-1].ink[over] = np.where(alternate[over], Ink.CHUNK_ALTERNATE, Ink.CHUNK)
    return lines[::-1]


def held_values(
    t_ns: Ints, values: Ints, start_ns: int, end_ns: int, columns: int, pick: Callable[[Ints], np.int64]
) -> Ints:
    """One value a column of a step line: `pick` of those it takes there; UNKNOWN where it has none."""
    edges = np.linspace(start_ns, end_ns, columns + 1)
    held = np.maximum(np.searchsorted(t_ns, edges[:-1], side="right") - 1, 0)
    after = np.searchsorted(t_ns, edges[1:], side="left")
    found = np.full(columns, UNKNOWN, dtype=np.int64)
    for column, (first, end) in enumerate(zip(held.tolist(), after.tolist(), strict=True)):
        if end > first:
            known = values[first:end]
            known = known[known != UNKNOWN]
            found[column] = pick(known) if len(known) else UNKNOWN
    return found


def level_cells(values: Ints, most: int | None, ink: Ink, *, zero: str = " ") -> Cells:
    """A row of bars, full at `most`; a value above 0 is at least an eighth high, and `zero` marks a 0."""
    cells = blank(len(values))
    if not most or most < 0:
        return cells
    levels = np.clip(np.round(values * 8 / most).astype(np.int64), 0, 8)
    levels[(values > 0) & (levels == 0)] = 1
    cells.glyph[:] = _EIGHTHS[levels]
    cells.ink[:] = ink
    cells.glyph[values == 0] = zero
    cells.glyph[values == UNKNOWN] = " "
    return cells


def _owners(strip: Strip, start_ns: int, end_ns: int, columns: int) -> Ints:
    """The forward that covers most of each column, -1 for none."""
    edges = np.linspace(start_ns, end_ns, columns + 1)
    owners = np.full(columns, -1, dtype=np.int64)
    most = np.zeros(columns)
    first = np.clip(np.searchsorted(edges, strip.start_ns, side="right") - 1, 0, columns)
    after = np.clip(np.searchsorted(edges, strip.end_ns, side="left"), 0, columns)
    weights = np.where(strip.mode == ForwardMode.DECODE.value, 1.0, PREFILL_WEIGHT)
    for item in range(len(strip.start_ns)):
        here = slice(first[item], max(after[item], first[item] + 1))
        overlap = np.minimum(strip.end_ns[item], edges[1:][here]) - np.maximum(
            strip.start_ns[item], edges[:-1][here]
        )
        overlap = np.maximum(overlap, 1.0) * weights[item]
        won = overlap > most[here]
        most[here][won] = overlap[won]
        owners[here][won] = item
    return owners


def _levels(tokens: Ints, owners: Ints, top: int, scale_tokens: int) -> Ints:
    """Eighths of each column's bar; at least one for a count above 0."""
    counts = np.where(owners >= 0, tokens[owners], 0)
    levels = np.round(counts * top / max(scale_tokens, 1)).astype(np.int64)
    return np.where(counts > 0, np.maximum(levels, 1), 0)


def _tokens(strip: Strip, owners: Ints) -> Ints:
    """Known tokens of each column's forward, prefill and decode together."""
    counts = np.maximum(strip.extend_tokens, 0) + np.maximum(strip.decode_tokens, 0)
    return np.where(owners >= 0, counts[owners], 0)


def _unknown(strip: Strip, owners: Ints) -> NDArray[np.bool_]:
    lacking = (strip.extend_tokens == UNKNOWN) & (strip.decode_tokens == UNKNOWN)
    return np.asarray((owners >= 0) & lacking[owners])


def _bar_row(decode: Ints, total: Ints, alternate: NDArray[np.bool_]) -> Cells:
    """One row of bars whose parts end so many eighths above its floor."""
    decode, total = np.clip(decode, 0, 8), np.clip(total, 0, 8)
    cells = blank(len(total))
    prefill = np.where(alternate, Ink.BAR_CHUNK_ALTERNATE, Ink.BAR_CHUNK)
    both = np.where(alternate, Ink.DECODE_ON_ALTERNATE, Ink.DECODE_ON_CHUNK)
    split = (decode > 0) & (decode < 8) & (total == 8)  # one cell can show two parts only when it is full
    cells.glyph[:] = _EIGHTHS[np.where(split, decode, total)]
    cells.ink[:] = np.where(split, both, np.where(2 * decode >= total, Ink.DECODE, prefill))
    return cells
