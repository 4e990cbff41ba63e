"""The price list of a plan as a table; it loads no analysis of traces, so that a plan is quick."""

from rich.table import Table
from rich.text import Text

from profiler.paper.plan import PaperPlan
from profiler.price_rows import Options
from ui.price_cells import PRICE_HEADS, empty_table, price_cells, print_table
from ui.words import count

__all__ = ["plan_table", "print_plan_table"]


def print_plan_table(plan: PaperPlan) -> None:
    """The table on standard output."""
    print_table(plan_table(plan))


def plan_table(plan: PaperPlan) -> Table:
    """A line for each set of options, the one to start with marked."""
    table = empty_table([*PRICE_HEADS, "requests\nat once"])
    for row in plan.rows:
        starts = row == plan.start
        name = f"{'→' if starts else ' '} {_name(row.options)}"
        requests = count(plan.memory.requests(row.options.chunk_tokens))
        cells = [name, *price_cells(row), requests]
        table.add_row(*[Text(cell) for cell in cells], style="bold" if starts else "")
    return table


def _name(options: Options) -> str:
    if options.chunk_tokens is None:
        return "whole prompts"
    return f"{count(options.chunk_tokens)} {'mixed' if options.mixed else 'prefill first'}"
