"""A widget that shows lines of cells, and repaints those that changed."""

from collections.abc import Sequence

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ui.tui.colours import Inks
from ui.tui.ink import Ink
from ui.tui.text import Line

__all__ = ["Canvas"]


class Canvas(Widget):
    """Drawn through the line API alone; `show` hands it its lines."""

    ALLOW_SELECT = False

    def __init__(self, inks: Inks) -> None:
        super().__init__()
        self._inks = inks
        self._lines: list[Line] = []
        self._strips: list[Strip] = []

    def show(self, lines: Sequence[Line]) -> None:
        """Put these lines on screen, top first."""
        changed = [y for y, line in enumerate(lines) if y >= len(self._lines) or line != self._lines[y]]
        for y in changed:
            strip = Strip(Segment(text, self._inks.style(ink)) for text, ink in lines[y])
            self._strips[y : y + 1] = [strip]
        if len(lines) < len(self._lines):
            del self._strips[len(lines) :]
            self.refresh()
        elif changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))
        self._lines = list(lines)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, self._inks.style(Ink.BLANK))
