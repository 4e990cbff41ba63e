"""The price list of advice as a table."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from profiler.advice import Advice
from profiler.advice_names import LIMIT_WORDS, option_words
from profiler.price_rows import PriceRow
from ui.si_words import percent
from ui.words import UNKNOWN, binary_bytes, count, seconds

__all__ = ["price_table", "print_prices"]

WIDTH = 160  # a table is never squeezed: a narrow terminal breaks its lines

HEADS = (
    "options",
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


def print_prices(advice: Advice) -> None:
    """The table on standard output."""
    Console(highlight=False, width=WIDTH).print(price_table(advice))


def price_table(advice: Advice) -> Table:
    """A line for each set of options, the chosen one marked; what a line breaks of the limits stands last.

    A column of which nothing is known is left out.
    """
    limited = any(getattr(advice.choice.limits, name) is not None for name in LIMIT_WORDS)
    cells = [_cells(row) for row in advice.rows]
    told = [at for at in range(len(HEADS) - 1) if any(each[at] != UNKNOWN for each in cells)]
    heads = [HEADS[0], *(HEADS[at + 1] for at in told), *(["breaks"] if limited else [])]
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for at, head in enumerate(heads):
        table.add_column(Text(head), justify="left" if at == 0 else "right", no_wrap=True)
    for row, values in zip(advice.rows, cells, strict=True):
        line = [_name(advice, row), *(values[at] for at in told)]
        if limited:
            broken = row.breaks(advice.margins.tightened(row, advice.choice.limits))
            line.append(", ".join(LIMIT_WORDS[name] for name in broken))
        table.add_row(*[Text(cell) for cell in line], style="bold" if row == advice.choice.row else "")
    return table


def _name(advice: Advice, row: PriceRow) -> str:
    return f"{'→' if row == advice.choice.row else ' '} {option_words(row.options)}"


def _cells(row: PriceRow) -> list[str]:
    lost = None if row.plateau_share is None else max(0.0, 1 - row.plateau_share)
    return [
        percent(lost),
        seconds(row.first_forward_s),
        seconds(row.last_forward_s),
        seconds(row.longest_wait_s),
        seconds(row.itl_p99_s),
        seconds(row.ttft_p99_s),
        seconds(row.ttft_long_s),
        UNKNOWN if row.activation_bytes is None else binary_bytes(row.activation_bytes),
        count(row.kv_tokens),
    ]
