"""What tables of the Stalls page are made of: rows that stand for a gap, bars, how many rows are left."""

from collections.abc import Iterable, Sequence

from dash import html
from dash.development.base_component import Component

from ui.web.attributes import aria, data
from ui.words import plural, seconds

__all__ = ["MOST_ROWS", "bar_cell", "gap_button", "gap_row", "more_rows", "rest_note", "rows_table"]

MOST_ROWS = 12
"""Of each list; how many more there are is said below it."""


def rows_table(
    caption: str, heads: Sequence[html.Th], body: Iterable[Component], kind: str = ""
) -> html.Table:
    """A table; `kind` is a further class of it."""
    return html.Table(
        [
            html.Caption(caption, className="sr-only"),
            html.Thead(html.Tr(list(heads))),
            html.Tbody(list(body)),
        ],
        className=f"numbers {kind}".strip(),
    )


def more_rows(number: int, noun: str, which: str) -> list[Component]:
    """How many of a list are not in its table, if any: 3 more requests with less."""
    left = number - MOST_ROWS
    return [html.P(f"{plural(left, f'more {noun}')} {which}.", className="caption")] if left > 0 else []


def rest_note(rest_ns: int, what: str) -> list[Component]:
    """What all that have no row lost together, if anything: the rows and this sum to all."""
    if rest_ns <= 0:
        return []
    return [html.P(f"{what} {seconds(rest_ns / 1e9)} together.", className="caption", **data(rest=rest_ns))]


def gap_row(cells: Sequence[Component], rid: int, token_index: int, chosen: bool, ns: int) -> html.Tr:
    """A row that stands for a gap; the page's script chooses it."""
    return html.Tr(
        cells,
        className="selected" if chosen else None,
        **data(rid=rid, tok=token_index, ns=ns),
        **(aria(current="true") if chosen else {}),
    )


def gap_button(words: str) -> html.Button:
    """The button of such a row, for the keyboard."""
    return html.Button(words, className="plain", title="show this gap's ledger")


def bar_cell(swatch: str, share: float) -> html.Td:
    """A cell with a bar that takes a share of its width."""
    return html.Td(
        html.Span(className=f"bar {swatch}", style={"width": f"{100 * share:.2f}%"}), className="bar-cell"
    )
