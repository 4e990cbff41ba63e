"""A table of numbers whose heads name their entries in docs/metrics.md."""

from collections.abc import Iterable, Sequence

from dash import html

from ui.words import count

__all__ = ["MOST_ROWS", "cut_note", "numbers_table"]

MOST_ROWS = 60
"""Of a table whose rows answer something each; a browser takes milliseconds for a cell."""


def cut_note(of: str, height: int, most: int = MOST_ROWS) -> list[html.P]:
    """Says that not all rows are here, where that is so."""
    if height <= most:
        return []
    return [html.P(f"{most} of {count(height)} {of}, at even steps", className="caption")]


def numbers_table(caption: str, heads: Sequence[html.Th], rows: Iterable[Sequence[str]]) -> html.Table:
    """A table of texts under heads that name their entries."""
    return html.Table(
        [
            html.Caption(caption, className="sr-only"),
            html.Thead(html.Tr(heads)),
            html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in rows]),
        ],
        className="numbers",
    )
