"""The one-line question at the bottom of the screen: go to a moment, or search a request."""

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static

__all__ = ["Prompt"]


class Prompt(Horizontal):
    """Hidden until a question is put; `question` says which one is being answered."""

    DEFAULT_CSS = """
    Prompt { dock: bottom; height: 1; display: none; background: $panel; }
    Prompt > Static { width: auto; padding: 0 1; color: $accent; text-style: bold; }
    Prompt > Input { width: 1fr; border: none; padding: 0; height: 1; }
    Prompt > Input:focus { border: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.question = ""

    def compose(self) -> ComposeResult:
        """The question, and the line for the answer."""
        yield Static()
        line = Input(compact=True, select_on_focus=False, max_length=200)
        line.cursor_blink = False
        yield line

    @property
    def line(self) -> Input:
        """Where the answer is typed."""
        return self.query_one(Input)

    def put(self, question: str, hint: str) -> None:
        """Show the question with a hint of what to type."""
        self.question = question
        self.query_one(Static).update(question)
        self.line.value = ""
        self.line.placeholder = hint
        self.display = True
        self.line.focus()

    def close(self) -> None:
        """Hide the line and give the keys back to the screen."""
        self.display = False
        self.screen.set_focus(None)
