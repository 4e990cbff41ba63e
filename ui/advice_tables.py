"""The price list of advice as a table."""

from rich.table import Table
from rich.text import Text

from profiler.advice import Advice
from profiler.advice_names import LIMIT_WORDS, option_words
from profiler.price_rows import PriceRow
from ui.price_cells import PRICE_HEADS, empty_table, price_cells, print_table
from ui.words import UNKNOWN

__all__ = ["price_table", "print_prices"]


def print_prices(advice: Advice) -> None:
    """The table on standard output."""
    print_table(price_table(advice))


def price_table(advice: Advice) -> Table:
    """A line for each set of options, the chosen one marked; what a line breaks of the limits stands last.

    A column of which nothing is known is left out.
    """
    limited = any(getattr(advice.choice.limits, name) is not None for name in LIMIT_WORDS)
    cells = [price_cells(row) for row in advice.rows]
    told = [at for at in range(len(PRICE_HEADS)) if any(each[at] != UNKNOWN for each in cells)]
    table = empty_table([*(PRICE_HEADS[at] for at in told), *(["breaks"] if limited else [])])
    for row, values in zip(advice.rows, cells, strict=True):
        line = [_name(advice, row), *(values[at] for at in told)]
        if limited:
            broken = row.breaks(advice.margins.tightened(row, advice.choice.limits))
            line.append(", ".join(LIMIT_WORDS[name] for name in broken))
        table.add_row(*[Text(cell) for cell in line], style="bold" if row == advice.choice.row else "")
    return table


def _name(advice: Advice, row: PriceRow) -> str:
    return f"{'→' if row == advice.choice.row else ' '} {option_words(row.options)}"
