"""The price list of the Saturation screen: a row a chunk size, crosses where a limit is broken."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from profiler.price_rows import PriceRow
from ui import words
from ui.tui.ink import BAND, Ink
from ui.tui.saturation_view import POLICIES, SaturationView
from ui.tui.text import Line, fit, together

__all__ = ["policy_words", "price_lines", "table_rows"]

CROSS, ADVISED = "✕", "▼"


class _Column(NamedTuple):
    head: str
    cells: int
    text: Callable[[PriceRow], str]
    limits: tuple[str, ...] = ()  # whose breaking is crossed here


def price_lines(view: SaturationView, cells: int, rows: int) -> list[Line]:
    """Heads, as many rows as there is room for around the selected one, and what the crosses mean."""
    columns = _columns(view, cells)
    shown = _window(view, rows - 2)
    left_out = len(view.rows) - len(shown)
    notes = [f"{left_out} more: ←→"] if left_out else []
    notes += [f"{CROSS} breaks a limit", "of best: a long prompt's throughput"]
    groups: Iterator[Line] = ([(note, Ink.MUTED)] for note in notes)
    lines = [_heads(columns, cells), *(_row(view, row, columns, cells) for row in shown)]
    return [*lines, together(groups, cells)]


def table_rows(view: SaturationView) -> int:
    """Rows that the whole table takes."""
    return len(view.rows) + 2


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
    """The columns that there is room for, the most telling first, in the order of the mockup."""
    rows = view.rows
    everything = [
        (0, _Column("chunk", 8, lambda row: _chunk(row))),
        (0, _Column("of best", 9, lambda row: _share(row.plateau_share))),
        (4, _Column("n", 5, lambda row: words.count(row.forwards))),
        (3, _Column("first", 8, _times(rows, "first_forward_s"))),
        (2, _Column("last", 8, _times(rows, "last_forward_s"))),
        (1, _Column("wait", 9, _times(rows, "longest_wait_s"), ("itl_max_s", "itl_p99_s"))),
        (1, _Column("TTFT", 9, _times(rows, "ttft_long_s"), ("ttft_p99_s",))),
        (5, _Column("act. GiB", 9, lambda row: _gib(row.activation_bytes))),
        (6, _Column("KV tokens", 11, lambda row: words.count(row.kv_tokens))),
    ]
    chosen = list(everything)
    while sum(column.cells for _, column in chosen) + 2 > cells:
        chosen.remove(max(chosen, key=lambda ranked: ranked[0]))
    return [column for _, column in chosen]


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


def _times(rows: Sequence[PriceRow], name: str) -> Callable[[PriceRow], str]:
    """A column of durations in one unit: ms, or s where the shortest is longer than that."""
    known = [value for row in rows if (value := getattr(row, name)) is not None]
    in_seconds = bool(known) and min(known) >= 1.0
    decimals = 2 if in_seconds else 0 if not known or min(known) >= 0.00995 else 1

    def text(row: PriceRow) -> str:
        value = getattr(row, name)
        if value is None:
            return words.UNKNOWN
        return f"{value:,.{decimals}f} s" if in_seconds else f"{value * 1e3:,.{decimals}f}"

    return text
