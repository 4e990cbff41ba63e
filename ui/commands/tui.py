"""`chunkscope tui`: a trace in the terminal, replayed or live."""

import os
import sys
from pathlib import Path

import click

from ui.errors import UserError

__all__ = ["check_terminal", "command", "shows_unicode"]


@click.command("tui")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--live", is_flag=True, help="Follow a trace while it is recorded.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters alone.")
def command(trace: Path, live: bool, ascii_only: bool) -> int:
    """A trace in the terminal, replayed or live.

    Who is silent at the cursor and because of whom, forwards against the chunk budget, a lane a request, KV
    pages. Press 2 for the saturation point and what each chunk size costs, ? for the keys.
    """
    check_terminal()

    from profiler.timeline.timeline import open_timeline
    from ui.tui.app import make_app

    app = make_app(open_timeline(trace), live=live, ascii_only=ascii_only or not shows_unicode())
    app.run()
    return app.return_code or 0


def check_terminal() -> None:
    """UserError where nothing can be drawn."""
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):  # Textual draws on stderr
        raise UserError("tui needs a terminal for input, output and errors: redirect none, or use `stats`")
    if os.environ.get("TERM") == "dumb":
        raise UserError("tui needs a terminal that can place its cursor: TERM is dumb, use `stats`")


def shows_unicode() -> bool:
    """Whether what is drawn on, standard error, takes UTF-8 and the locale does not say otherwise.

    Python itself takes up UTF-8 under LC_ALL=C, so its streams alone do not tell.
    """
    locale = os.environ.get("LC_ALL", "")
    return _names_utf8(sys.stderr.encoding or "") and (not locale or _names_utf8(locale))


def _names_utf8(name: str) -> bool:
    return "utf8" in name.lower().replace("-", "")
