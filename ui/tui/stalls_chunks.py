"""The right panel of the Stalls screen: what each chunk took of the chosen wait."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from rich.cells import cell_len

from profiler.ledger.parts import Chunk, GapDetail
from ui import words
from ui.tui.ink import BAND, Ink
from ui.tui.stalls_bar import eighths
from ui.tui.stalls_chunk_rows import ChunkRow, chunk_rows
from ui.tui.stalls_numbers import Durations
from ui.tui.stalls_rows import in_sight
from ui.tui.stalls_view import Panel, StallsView
from ui.tui.text import Line, between, fit, shown, wrapped

__all__ = ["chunks_panel"]

NAME_CELLS = 12
COST_CELLS = 9
_WIDE_FROM = 50  # cells, from which there is room for words
_GROWS = 1.2


def chunks_panel(view: StallsView, cells: int, rows: int) -> list[Line]:
    """Exactly so many rows: what each chunk took of the gap, in order of time."""
    lines: list[Line] = []
    if view.gap is not None:
        lines = _costs(view.gap, view, cells, rows) if view.chunks else _nobody(cells)
    return [*lines, *([[]] * rows)][:rows]


def _nobody(cells: int) -> list[Line]:
    said = wrapped([("Nobody's chunk took of this wait.", Ink.MUTED)], cells)
    return [[("Culprits, per chunk", Ink.STRONG)], *said]


def _costs(gap: GapDetail, view: StallsView, cells: int, rows: int) -> list[Line]:
    folded = chunk_rows(view.chunks, view.chunk_at, rows - 1)
    chosen = next(i for i, row in enumerate(folded) if view.chunk in row.chunks)
    seen = in_sight(len(folded), chosen, rows - 1)
    columns = _ChunkColumns.of(Durations.in_ms(gap.gap_ns, 1), view.chunks, [folded[i] for i in seen], cells)
    lines = [_head(len(folded), seen, columns, cells)]
    pointed = view.panel is Panel.CHUNKS
    lines += [_chunk_line(folded[i], columns, chosen=i == chosen, pointed=pointed) for i in seen]
    lines.append(fit([(_note(view.chunks, view.chunk), Ink.MUTED)], cells))
    return lines


@dataclass(frozen=True, slots=True)
class _ChunkColumns:
    """Cells of the columns of chunks, and what their bars are measured by."""

    name_cells: int
    number_cells: int
    forward_cells: int
    bar_cells: int
    most_ns: int
    form: Durations
    brief: bool

    @classmethod
    def of(cls, form: Durations, chunks: Sequence[Chunk], rows: Sequence[ChunkRow], cells: int) -> Self:
        brief = cells < _WIDE_FROM
        names = max(cell_len(shown(chunk.name, NAME_CELLS)) for chunk in chunks)
        numbers = max(len(_numbers(row)) for row in rows)
        forwards = max(len(_forwards(row, brief=brief)) for row in rows)
        most_ns = max(chunk.in_gap_ns for chunk in chunks)
        bars = max(cells - names - numbers - forwards - COST_CELLS - 4, 0)
        return cls(names, numbers, forwards, bars, most_ns, form, brief)


def _head(total: int, seen: range, columns: _ChunkColumns, cells: int) -> Line:
    left: Line = [("Per chunk" if columns.brief else "Culprits, per chunk", Ink.STRONG)]
    if len(seen) < total:
        left += [(f"  {seen.start + 1}–{seen.stop} of {total}", Ink.MUTED)]
    return between(left, [(columns.form.unit, Ink.MUTED)], cells)


def _chunk_line(row: ChunkRow, columns: _ChunkColumns, *, chosen: bool, pointed: bool) -> Line:
    """One row of chunks: whose, which, in which forward, and what they took."""
    ink = Ink.STRONG if chosen else Ink.TEXT
    line: Line = [("▸" if chosen and pointed else " ", Ink.ACCENT)]
    line += fit([(shown(row.chunks[0].name, NAME_CELLS), ink)], columns.name_cells)
    line += [(f" {_numbers(row):>{columns.number_cells}}", ink)]
    line += [(f" {_forwards(row, brief=columns.brief):<{columns.forward_cells}} ", Ink.MUTED)]
    costs = [chunk.in_gap_ns for chunk in row.chunks]
    if len(costs) == 1:
        line += [(eighths(costs[0], columns.most_ns, columns.bar_cells), Ink.BAR_CHUNK)]
    else:
        each = f"{columns.form.of(min(costs))} to {columns.form.of(max(costs))} each"
        line += fit([(each if len(each) <= columns.bar_cells else "", Ink.MUTED)], columns.bar_cells)
    line += [(f"{columns.form.of(row.in_gap_ns):>{COST_CELLS}}", ink)]
    return [(text, code | BAND) for text, code in line] if chosen else line


def _numbers(row: ChunkRow) -> str:
    first, last = row.chunks[0], row.chunks[-1]
    if first.of == 1:
        return "whole"
    of = "" if last.of is None else f"/{last.of}"
    return f"{first.number}{of}" if first is last else f"{first.number}–{last.number}{of}"


def _forwards(row: ChunkRow, *, brief: bool) -> str:
    first, last = row.chunks[0].forward_id, row.chunks[-1].forward_id
    return f"{'#' if brief else 'forward '}{first if first == last else f'{first}–{last}'}"


def _note(chunks: tuple[Chunk, ...], chosen: Chunk | None) -> str:
    """How large the chunks of the chosen one's request are, and why later ones take longer."""
    if chosen is None:
        return ""
    own = [chunk for chunk in chunks if chunk.rid == chosen.rid]
    size = chosen.extend_end - chosen.prefix_len
    if len(own) < 3:
        return f"{words.plural(size, 'token')}, prefix {words.count(chosen.prefix_len)}"
    sizes = {chunk.extend_end - chunk.prefix_len for chunk in own[:-1]}
    each = f"{max(sizes):,} tokens each" if len(sizes) == 1 else f"{min(sizes):,} to {max(sizes):,} tokens"
    grows = own[-2].in_gap_ns > _GROWS * own[0].in_gap_ns
    return f"{each}; longer prefix, more keys to read" if grows else each
