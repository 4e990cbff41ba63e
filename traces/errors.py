"""What the trace package may refuse."""

__all__ = ["TraceError"]


class TraceError(Exception):
    """A trace cannot be written or read; the text is one line that names the file and the mend.

    Paths and names are data: whatever they hold, the text stays one printable line.
    """

    def __init__(self, text: str) -> None:
        super().__init__("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text))
