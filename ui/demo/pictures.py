"""The demo's last step: its runs in a browser, or the command that puts them there."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from ui.program import program
from ui.tables import say

__all__ = ["open_pictures"]


def open_pictures(console: Console, traces: Sequence[Path], *, no_open: bool) -> None:
    """Serve the Compare page of these traces until Ctrl-C; only say how to where nothing could show it."""
    from ui.web.server import has_display

    if no_open or not has_display():
        say(console, f"Their pictures: {shlex.join([program(), 'web', *map(str, traces)])}")
        return
    from ui.web.session import show_traces

    show_traces(traces, host="127.0.0.1", port=None, open_browser=True)
