"""Tables and plain lines for people; a command's one JSON document goes past these."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["columns", "narrator", "print_facts", "print_json", "reporter", "say"]


def reporter() -> Console:
    """Where a command's result goes when it is words: standard output."""
    return Console(highlight=False)


def narrator() -> Console:
    """Where everything goes that is not the result: standard error."""
    return Console(stderr=True, highlight=False)


def say(console: Console, line: str, style: str = "") -> None:
    """Print a line as it is: no markup, and never broken, so that paths and commands can be copied."""
    console.print(Text(line, style), soft_wrap=True)


def print_json(document: Any) -> None:
    """The one JSON document of a `--json` run, on standard output; refuses NaN, which is no JSON."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def print_facts(console: Console, rows: Sequence[tuple[str, str]]) -> None:
    """A name and what is known of it, one a line; a row without a name continues the one above."""
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        say(console, f"{name:<{width}}  {value}")


def columns(title: str, heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> Table:
    """One column for each of `heads`, right-aligned; a row is its name and a cell for each."""
    table = Table(title=Text(title), title_justify="left")
    table.add_column("")
    for head in heads:
        table.add_column(Text(head), justify="right")
    for name, cells in rows:
        table.add_row(Text(name), *[Text(cell) for cell in cells])
    return table
