"""A session of the web UI from traces on disk to the last request."""

from collections.abc import Sequence
from pathlib import Path

from profiler.timeline.timeline import Timeline, open_timeline
from ui.errors import UserError
from ui.tables import narrator, say
from ui.web.app import create_app, first_page
from ui.web.guards import LOOPBACK
from ui.web.runs import MOST_RUNS
from ui.web.server import bind, has_display, serve

__all__ = ["show_traces"]


def show_traces(
    paths: Sequence[Path], *, host: str, port: int | None, open_browser: bool, live: bool = False
) -> None:
    """Serve the pages of these traces until Ctrl-C; the address goes to standard error.

    UserError or TraceError, before anything is served, if that cannot be done.
    """
    if len(paths) > MOST_RUNS:
        raise UserError(f"{len(paths)} traces are too many for one page: give at most {MOST_RUNS}")
    with bind(host, port) as listener:
        console = narrator()
        timelines = [open_timeline(path) for path in paths]
        if not live:
            for timeline in filter(_grows, timelines):
                say(console, f"{timeline.path} is still being written: --live follows it")
        url = _address(host, listener.getsockname()[1])
        app = create_app(timelines, live=live, hosts=LOOPBACK if _is_local(host) else None)
        first = f"{url}{first_page(timelines)}"
        say(console, f"{first}  (Ctrl-C ends it)")
        serve(app, listener, url=first, open_browser=open_browser and has_display())


def _grows(timeline: Timeline) -> bool:
    return timeline.trace.live


def _is_local(host: str) -> bool:
    return host in ("127.0.0.1", "localhost", "::1")


def _address(host: str, port: int) -> str:
    shown = "127.0.0.1" if host == "0.0.0.0" else "::1" if host == "::" else host
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
