"""What every screen has: rules between its parts, the bar of keys, and a line for a terminal too small."""

from collections.abc import Iterator, Sequence

from ui.tui.ink import Ink
from ui.tui.layout import LEAST_HEIGHT, LEAST_WIDTH
from ui.tui.text import Line, fit, together

__all__ = ["Keys", "bar_line", "key_bar", "rule", "too_small"]

Keys = Sequence[tuple[str, str]]
"""What to press, and what it does."""


def rule(cells: int) -> Line:
    """A line across the screen, with a margin at both ends."""
    return [(" ", Ink.BLANK), ("─" * (cells - 2), Ink.RULE), (" ", Ink.BLANK)]


def key_bar(keys: Keys, width: int, gap: int = 2) -> Line:
    """The keys that there is room for."""
    groups: Iterator[Line] = ([(key, Ink.BAR_ACCENT), (f" {meaning}", Ink.BAR)] for key, meaning in keys)
    return fit([(" ", Ink.BAR), *together(groups, width - 2, gap, Ink.BAR)], width, Ink.BAR)


def bar_line(text: str, width: int) -> Line:
    """One line in place of the keys, until the next key."""
    return fit([(" ", Ink.BAR), (text, Ink.BAR_STRONG)], width, Ink.BAR)


def too_small(width: int, height: int) -> Line:
    """What a terminal that is too small gets."""
    needs = f"Chunkscope needs {LEAST_WIDTH} x {LEAST_HEIGHT} cells, here are {width} x {height}; q quits."
    return [(needs, Ink.STRONG)]
