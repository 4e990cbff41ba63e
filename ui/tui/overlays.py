"""Pages of lines over a screen: a gap taken apart, what numbers rest on, help."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from ui.tui.colours import Inks
from ui.tui.text import Line

__all__ = ["LinesOverlay", "as_text", "overlay_cells"]

PAGE_CELLS = 100


class LinesOverlay(ModalScreen[None]):
    """Lines that scroll when there are many; Esc, Enter or q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,question_mark", "close", "close"),
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
    ]
    CSS = """
    LinesOverlay { align: center middle; }
    LinesOverlay > VerticalScroll {
        width: PAGE_CELLS; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
        border: round $accent; scrollbar-size-vertical: 1;
    }
    LinesOverlay Static { text-wrap: nowrap; text-overflow: ellipsis; }
    """.replace("PAGE_CELLS", str(PAGE_CELLS))

    def __init__(self, lines: Sequence[Line], inks: Inks) -> None:
        super().__init__()
        self._text = as_text(lines, inks)

    def compose(self) -> ComposeResult:
        """One block of text."""
        with VerticalScroll() as page:
            page.border_subtitle = "Esc closes"
            yield Static(self._text)

    def action_close(self) -> None:
        """Back to the replay."""
        self.dismiss(None)

    def action_scroll(self, rows: int) -> None:
        """Up or down."""
        self.query_one(VerticalScroll).scroll_relative(y=rows, animate=False)


def overlay_cells(width: int) -> int:
    """Cells that a line of a page has on a screen of that width: less its border, margins and scroll bar."""
    return min(width, PAGE_CELLS) - 5


def as_text(lines: Sequence[Line], inks: Inks) -> Text:
    """Lines as one Rich text, in which nothing is markup."""
    text = Text(no_wrap=True, overflow="ellipsis", end="")
    for y, line in enumerate(lines):
        if y:
            text.append("\n")
        for words, ink in line:
            text.append(words, inks.style(ink))
    return text
