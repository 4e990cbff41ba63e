"""A page of help: the keys of a screen, then what each of its numbers is and where that is defined."""

import textwrap
from collections.abc import Iterator, Sequence

from ui.metric_entries import MetricEntry
from ui.tui.ink import Ink
from ui.tui.text import Line

__all__ = ["help_lines"]

NAME_CELLS = 13


def help_lines(
    keys: Sequence[tuple[str, str]], numbers: Sequence[tuple[str, MetricEntry]], cells: int
) -> list[Line]:
    """Keys with their meanings, then numbers with their entries, wrapped to so many cells."""
    lines: list[Line] = []
    for name, meaning in keys:
        lines += _beside(name, meaning, cells)
    lines += [[], [("Numbers", Ink.STRONG)]]
    for name, entry in numbers:
        lines += _beside(name, entry.words, cells)
        lines += ([(" " * NAME_CELLS + line, Ink.MUTED)] for line in _wrapped(entry.place, cells))
    return lines


def _beside(name: str, text: str, cells: int) -> Iterator[Line]:
    """The text beside its name, or below a name that takes more room than names have."""
    long = len(name) >= NAME_CELLS
    if long:
        yield [(name, Ink.ACCENT)]
    for i, line in enumerate(_wrapped(text, cells)):
        yield [(f"{'' if i or long else name:<{NAME_CELLS}}", Ink.ACCENT), (line, Ink.TEXT)]


def _wrapped(text: str, cells: int) -> list[str]:
    return textwrap.wrap(text, max(cells - NAME_CELLS, 1))
