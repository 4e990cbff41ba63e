"""The Textual application: a theme of the palette's colours, and the screens that digits open."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.screen import Screen

from profiler.timeline.timeline import Timeline
from ui.tui import moves
from ui.tui.colours import Depth, Inks, theme_of
from ui.tui.follower import writer_of
from ui.tui.glyphs import PLAIN, UNICODE, AsciiFilter
from ui.tui.picture import Following, Picture
from ui.tui.replay_screen import ReplayScreen
from ui.tui.saturation_screen import SaturationScreen
from ui.tui.source import Source
from ui.tui.stalls_screen import StallsScreen
from ui.tui.view import Moment, View

__all__ = ["ChunkscopeApp", "make_app"]

POLL_S = 0.5
REPLAY, STALLS = "Replay", "Stalls"
SIGNALLED = 128  # what a shell adds to the number of the signal that ended a program


class ChunkscopeApp(App[None]):
    """Shows one picture; `ascii_only` draws everything in ASCII."""

    TITLE = "Chunkscope"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(
        self, picture: Picture, *, clock: Callable[[], float], poll_s: float, ascii_only: bool
    ) -> None:
        super().__init__()
        self.animation_level = "none"
        self.picture = picture
        self._clock = clock
        self._poll_s = poll_s
        self._ascii = [AsciiFilter()] if ascii_only else []

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Those of every application, then ASCII where only that can be shown."""
        return [*super().get_line_filters(), *self._ascii]

    def on_mount(self) -> None:
        """Open the replay."""
        self._end_on_signals()
        depth = self._depth()
        theme = theme_of(depth)
        self.register_theme(theme)
        self.theme = theme.name
        if self.console.color_system is None:
            self.picture.marks = replace(self.picture.marks, chunk=PLAIN.chunk)
        self._inks = Inks(depth)
        self._replay = ReplayScreen(self.picture, self._inks, self._clock, self._poll_s)
        self.push_screen(self._replay)

    def action_show(self, name: str) -> None:
        """The screen of a name in `ui.tui.head.TABS`; it begins to compute when it is first shown."""
        if self.screen is not self._replay:
            self.pop_screen()
        if name == REPLAY:
            return
        if not self.is_screen_installed(name):
            self.install_screen(self._make(name), name)
        self.push_screen(name)

    def visit(self, moment: Moment) -> None:
        """The replay, at a moment of a request's wait."""
        self.action_show(REPLAY)
        self._replay.visit(moment)

    def _make(self, name: str) -> Screen[None]:
        if name == STALLS:
            return StallsScreen(self.picture, self._inks, self._clock, self.visit)
        return SaturationScreen(self.picture.source.timeline, self._inks, self._clock)

    def _end_on_signals(self) -> None:
        """Give the terminal back when asked to end: by the shell's code for the signal."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGHUP):
            code = SIGNALLED + number
            asyncio.get_running_loop().add_signal_handler(number, partial(self.exit, return_code=code))

    def _depth(self) -> Depth:
        if self.no_color or self.console.color_system is None:
            return Depth.GREY
        return Depth.SIXTEEN if self.console.color_system in ("standard", "windows") else Depth.FULL


def make_app(
    timeline: Timeline,
    *,
    live: bool = False,
    clock: Callable[[], float] = time.monotonic,
    poll_s: float = POLL_S,
    ascii_only: bool = False,
) -> ChunkscopeApp:
    """The application on a timeline; with `live` it follows a trace that grows. May raise TraceError."""
    source = Source(timeline)
    picture = Picture(source, View.whole(timeline.start_ns, timeline.end_ns))
    picture.marks = PLAIN if ascii_only else UNICODE
    if live:
        picture.following = writer_of(timeline.trace)
    if picture.following is Following.LIVE:
        picture.at_end = True
        moves.trace_grew(picture)
    else:
        moves.opening(picture)
    return ChunkscopeApp(picture, clock=clock, poll_s=poll_s, ascii_only=ascii_only)
