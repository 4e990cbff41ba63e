"""The one-line question at the bottom of the screen: go to a moment, or search a request."""

from textual.widgets import Input

__all__ = ["Prompt"]


class Prompt(Input):
    """Hidden until a question is put; `question` says which one is being answered."""

    DEFAULT_CSS = """
    Prompt { dock: bottom; height: 1; border: none; padding: 0 1; display: none; }
    Prompt:focus { border: none; }
    """

    def __init__(self) -> None:
        super().__init__(compact=True, select_on_focus=False, max_length=200)
        self.cursor_blink = False
        self.question = ""

    def put(self, question: str, hint: str) -> None:
        """Show the line, empty, with a hint of what to type."""
        self.question = question
        self.value = ""
        self.placeholder = hint
        self.display = True
        self.focus()

    def close(self) -> None:
        """Hide the line and give the keys back to the screen."""
        self.display = False
        self.screen.set_focus(None)
