"""What the trace package may refuse."""

__all__ = ["TraceError"]


class TraceError(Exception):
    """A trace cannot be written or read; the text is one line that names the file and the mend."""
