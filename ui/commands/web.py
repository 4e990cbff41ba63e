"""`chunkscope web`: traces as pages in a browser."""

from pathlib import Path

import click

__all__ = ["command"]


@click.command("web")
@click.argument(
    "traces", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TRACE [TRACE...]"
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="0: any free one.  [default: the first free from 8050 on]"
)
@click.option("--no-open", is_flag=True, help="Open no browser; print the address only.")
@click.option("--live", is_flag=True, help="Follow traces that are still being written.")
def command(traces: tuple[Path, ...], host: str, port: int | None, no_open: bool, live: bool) -> None:
    """Traces as pages in a browser.

    Up to six traces are compared on one time axis. The server answers this machine only, unless --host says
    otherwise, and asks nothing of any other.
    """
    from ui.web.session import show_traces

    show_traces(traces, host=host, port=port, open_browser=not no_open, live=live)
