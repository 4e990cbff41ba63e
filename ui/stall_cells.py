"""Cells of the ledgers' tables: durations of a column in one unit, shares with one decimal."""

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from ui.words import UNKNOWN

__all__ = ["cells_table", "milliseconds", "share"]

_WORDS = frozenset({"cause", "culprits, share of the gap", "who waited"})  # heads of columns that hold words


def cells_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table whose first column is headed by the title; numbers stand right, words left."""
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column(Text(title), no_wrap=True)
    for head in heads:
        table.add_column(Text(head), justify="left" if head in _WORDS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*[Text(cell) for cell in row])
    return table


def milliseconds(ns: int | None) -> str:
    """Under a head that names the unit, so that all of a column have it: 1,516.0."""
    return UNKNOWN if ns is None else f"{ns / 1e6:,.1f}"


def share(part_ns: int, whole_ns: int) -> str:
    """A part of a whole: 75.9 %."""
    return f"{100 * part_ns / whole_ns:.1f} %" if whole_ns else UNKNOWN
