"""What the command line refuses, and how any refusal becomes one line and an exit code."""

import click

__all__ = [
    "BAD_INPUT",
    "BROKEN_PIPE",
    "FAILED",
    "INTERRUPTED",
    "Interrupted",
    "UserError",
    "one_line",
    "refusals",
]

FAILED = 1  # a check or gate did not pass
BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141  # what the shell says of a program that SIGPIPE ended


class UserError(Exception):
    """Something the person gave or has cannot be used; the text is one line with the mend."""


class Interrupted(Exception):
    """Ctrl-C, after the command put its work in order; the text says what was kept."""


def refusals() -> tuple[type[Exception], ...]:
    """The error types whose text is written for the person at the terminal."""
    from engine.errors import EngineError
    from traces.errors import TraceError

    return (UserError, EngineError, TraceError)


def one_line(error: BaseException) -> str:
    """The error's text on one line; for an OSError, what happened to which path."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        text = f"{error.format_message()} See {error.ctx.command_path} --help."
    elif isinstance(error, click.ClickException):
        text = error.format_message()
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {(error.strerror or type(error).__name__).lower()}: check the path"
    else:
        text = str(error)
    return " ".join(text.split()) or type(error).__name__
