"""The price list of a plan as a table; it loads no analysis of traces, so that a plan is quick."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from profiler.paper.plan import PaperPlan
from profiler.price_rows import Options, PriceRow
from ui.si_words import percent
from ui.words import UNKNOWN, binary_bytes, count, seconds

__all__ = ["plan_table", "print_plan_table"]

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
    "requests\nat once",
)


def print_plan_table(plan: PaperPlan) -> None:
    """The table on standard output."""
    Console(highlight=False, width=WIDTH).print(plan_table(plan))


def plan_table(plan: PaperPlan) -> Table:
    """A line for each set of options, the one to start with marked."""
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for at, head in enumerate(HEADS):
        table.add_column(Text(head), justify="left" if at == 0 else "right", no_wrap=True)
    for row in plan.rows:
        starts = row == plan.start
        name = f"{'→' if starts else ' '} {_name(row.options)}"
        requests = count(plan.memory.requests(row.options.chunk_tokens))
        cells = [name, *_cells(row), requests]
        table.add_row(*[Text(cell) for cell in cells], style="bold" if starts else "")
    return table


def _name(options: Options) -> str:
    if options.chunk_tokens is None:
        return "whole prompts"
    return f"{count(options.chunk_tokens)} {'mixed' if options.mixed else 'prefill first'}"


def _cells(row: PriceRow) -> list[str]:
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
