"""The columns that every price list in a terminal has: of advice and of a plan, and so free of both."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from profiler.price_rows import PriceRow
from ui.si_words import percent
from ui.words import UNKNOWN, binary_bytes, count, seconds

__all__ = ["PRICE_HEADS", "empty_table", "price_cells", "print_table"]

WIDTH = 160  # a table is never squeezed: a narrow terminal breaks its lines

PRICE_HEADS = (
    "lost",
    "first\nchunk",
    "last\nchunk",
    "longest\nwait",
    "ITL\np99",
    "TTFT\np99",
    "TTFT\nlongest",
    "activa-\ntions",
    "KV\ntokens",
)
"""Heads of `price_cells`; the options stand before them."""


def price_cells(row: PriceRow) -> list[str]:
    """A row's numbers in words, in the order of PRICE_HEADS."""
    lost = None if row.plateau_share is None else max(0.0, 1 - row.plateau_share)
    times = (
        row.first_forward_s,
        row.last_forward_s,
        row.longest_wait_s,
        row.itl_p99_s,
        row.ttft_p99_s,
        row.ttft_long_s,
    )
    activations = UNKNOWN if row.activation_bytes is None else binary_bytes(row.activation_bytes)
    return [percent(lost), *map(seconds, times), activations, count(row.kv_tokens)]


def empty_table(heads: Iterable[str]) -> Table:
    """A table whose first column holds the options, and the others these heads."""
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column(Text("options"), justify="left", no_wrap=True)
    for head in heads:
        table.add_column(Text(head), justify="right", no_wrap=True)
    return table


def print_table(table: Table) -> None:
    """On standard output."""
    Console(highlight=False, width=WIDTH).print(table)
