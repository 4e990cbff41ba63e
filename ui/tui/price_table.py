"""The price list of the Saturation screen: a row a chunk size, crosses where a limit is broken."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from profiler.advice_choice import VALUES
from profiler.price_rows import PriceRow
from ui import words
from ui.tui.ink import BAND, Ink
from ui.tui.price_notes import CROSS, note_lines
from ui.tui.saturation_view import POLICIES, SaturationView
from ui.tui.text import Line, fit

__all__ = ["policy_words", "price_lines", "table_rows"]

ADVISED = "▼"
MARK_CELLS = 2  # before the first column


class _Column(NamedTuple):
    head: str
    cells: int
    text: Callable[[PriceRow], str]
    limits: tuple[str, ...] = ()  # whose breaking is crossed here


def price_lines(view: SaturationView, cells: int, rows: int) -> list[Line]:
    """Heads, as many rows as there is room for around the selected one, and what the crosses mean."""
    columns = _columns(view, cells)
    notes = note_lines(view, cells, 0)
    if rows < table_rows(view, cells):
        notes = note_lines(view, cells, len(view.rows))
    shown = _window(view, rows - 1 - len(notes))
    if len(shown) < len(view.rows):
        notes = note_lines(view, cells, len(view.rows) - len(shown))
    return [_heads(columns, cells), *(_row(view, row, columns, cells) for row in shown), *notes]


def table_rows(view: SaturationView, cells: int) -> int:
    """Rows that the whole table takes."""
    return 1 + len(view.rows) + len(note_lines(view, cells, 0))


def policy_words(policy: tuple[bool, int]) -> str:
    """Prefill first, mixed, or interval 1."""
    return POLICIES.get(policy) or f"interval {policy[1]}"


def _window(view: SaturationView, most: int) -> Sequence[PriceRow]:
    rows = view.rows
    if len(rows) <= most or view.row is None:
        return rows
    first = min(max(rows.index(view.row) - most // 2, 0), len(rows) - most)
    return rows[first : first + most]


def _columns(view: SaturationView, cells: int) -> list[_Column]:
    """The columns that there is room for, in the order of a reading: the least telling are left out.

    Those of limits come before others: the one that the arrows move, then the ones that are set. A limit
    whose column is left out has its crosses at the chunk.
    """
    chosen = [(_rank(view, rank, column), column) for rank, column in _COLUMNS]
    while sum(column.cells for _, column in chosen) + MARK_CELLS > cells:
        chosen.remove(max(chosen, key=lambda ranked: ranked[0]))
    chunk, *others = (column for _, column in chosen)
    seen = {name for column in others for name in column.limits}
    return [chunk._replace(limits=tuple(name for name in VALUES if name not in seen)), *others]


def _rank(view: SaturationView, rank: int, column: _Column) -> int:
    if view.knob in column.limits:
        return 0
    return 1 if any(getattr(view.limits, name) is not None for name in column.limits) else rank


def _heads(columns: Sequence[_Column], cells: int) -> Line:
    text = "  " + "".join(f"{column.head:>{column.cells - 1}} " for column in columns)
    return fit([(text, Ink.MUTED)], cells)


def _row(view: SaturationView, row: PriceRow, columns: Sequence[_Column], cells: int) -> Line:
    advised, selected = row == view.advised, row == view.row
    broken = view.broken(row)
    ink = Ink.STRONG if selected or advised else Ink.TEXT
    line: Line = [(f"{ADVISED} " if advised else "  ", Ink.GOOD)]
    for column in columns:
        over = bool(broken & set(column.limits))
        text = f"{column.text(row):>{column.cells - 1}}"
        line.append((text + (CROSS if over else " "), Ink.BAD if over else ink))
    line = fit(line, cells)
    return [(text, code | BAND) for text, code in line] if selected else line


def _chunk(row: PriceRow) -> str:
    size = row.options.chunk_tokens
    return "whole" if size is None else words.count(size)


def _share(value: float | None) -> str:
    return words.UNKNOWN if value is None else f"{value * 100:.0f} %"


def _gib(value: int | None) -> str:
    return words.UNKNOWN if value is None else f"{value / 2**30:.2f}"


def _time(name: str) -> Callable[[PriceRow], str]:
    return lambda row: words.seconds(getattr(row, name))


_COLUMNS = (
    (0, _Column("chunk", 8, _chunk)),
    (0, _Column("of best", 8, lambda row: _share(row.plateau_share))),
    (8, _Column("n", 5, lambda row: words.count(row.forwards))),
    (7, _Column("first", 9, _time("first_forward_s"))),
    (6, _Column("last", 9, _time("last_forward_s"))),
    (2, _Column("wait", 9, _time("longest_wait_s"), ("itl_max_s",))),
    (4, _Column("ITL p99", 9, _time("itl_p99_s"), ("itl_p99_s",))),
    (5, _Column("TTFT p99", 9, _time("ttft_p99_s"), ("ttft_p99_s",))),
    (3, _Column("TTFT long", 10, _time("ttft_long_s"))),
    (9, _Column("act. GiB", 9, lambda row: _gib(row.activation_bytes))),
    (10, _Column("KV tokens", 11, lambda row: words.count(row.kv_tokens))),
)
"""Columns by how much they tell, 0 the most; the ranks 0 and 1 belong to limits as well."""
