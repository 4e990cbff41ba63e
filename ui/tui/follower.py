"""What a growing trace's writer does, told to the screen about twice a second."""

import time
from collections.abc import Callable
from threading import Event

from textual.message import Message

from traces.errors import TraceError
from traces.reader import Trace
from ui.tui.picture import Following
from ui.tui.source import Source

__all__ = ["TraceGrew", "follow", "writer_of"]

REST = 3  # reading blocks the screen: of a large trace it may take a quarter of the time


class TraceGrew(Message):
    """The trace has more in it, its writer has gone, or it cannot be read on: then `error` says why."""

    def __init__(self, following: Following, error: str = "") -> None:
        super().__init__()
        self.following = following
        self.error = error


def writer_of(trace: Trace) -> Following:
    """Whether the trace's writer still writes, came to its end, or died."""
    if trace.sealed:
        return Following.ENDED if trace.meta["sealed"].get("clean_end") is True else Following.DIED
    return Following.LIVE if trace.live else Following.DIED


def follow(source: Source, tell: Callable[[TraceGrew], object], stop: Event, poll_s: float) -> None:
    """Read on until the writer has gone, the trace is corrupt, or `stop` is set; for a thread of its own."""
    told = Following.LIVE
    while not stop.is_set():
        begin_s = time.monotonic()
        try:
            # Looked at before reading: what a dying writer wrote last is then read before it is called dead.
            following = source.ask(lambda timeline: writer_of(timeline.trace))
            changed = source.refresh()
            following = source.ask(lambda timeline: writer_of(timeline.trace)) if changed else following
        except TraceError as error:
            tell(TraceGrew(Following.UNREADABLE, str(error)))
            return
        if changed or following is not told:
            tell(TraceGrew(following))
        told = following
        if following is not Following.LIVE and not changed:
            return
        stop.wait(max(poll_s, REST * (time.monotonic() - begin_s)))
