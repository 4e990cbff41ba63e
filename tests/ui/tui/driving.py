"""Drives the terminal application in a test: keys in, lines of text out."""

import asyncio
import time
from collections.abc import Callable

from textual.pilot import Pilot

from profiler.timeline.timeline import Timeline
from ui.tui.app import ChunkscopeApp, make_app
from ui.tui.canvas import Canvas
from ui.tui.prompt import Prompt
from ui.tui.replay_screen import ReplayScreen
from ui.tui.saturation_screen import SaturationScreen
from ui.tui.stalls_screen import StallsScreen

__all__ = ["WIDE", "FakeClock", "Session", "drive"]

WIDE = (120, 40)


class FakeClock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Session:
    """An application under way."""

    def __init__(self, app: ChunkscopeApp, pilot: Pilot[None], clock: FakeClock) -> None:
        self.app, self.pilot, self.clock = app, pilot, clock
        self.picture = app.picture

    async def press(self, *keys: str) -> None:
        """Keys of the replay, one after another; only the last is waited for."""
        for key in keys[:-1]:
            self.app.simulate_key(key)
        await self.pilot.press(keys[-1])

    async def answer(self, text: str) -> None:
        """Into the line at the bottom, all at once, then Enter."""
        self.app.screen.query_one(Prompt).line.value = text
        await self.press("enter")

    def pass_time(self, seconds: float) -> None:
        self.clock.now_s += seconds
        self.replay.tick()

    @property
    def replay(self) -> ReplayScreen:
        screen = self.app.screen_stack[1]
        assert isinstance(screen, ReplayScreen)
        return screen

    @property
    def saturation(self) -> SaturationScreen:
        screen = self.app.screen
        assert isinstance(screen, SaturationScreen)
        return screen

    @property
    def stalls(self) -> StallsScreen:
        screen = self.app.screen
        assert isinstance(screen, StallsScreen)
        return screen

    async def open_stalls(self) -> None:
        """The Stalls screen with its report."""
        await self.press("2")
        await self.until(lambda: self.stalls.view.report is not None)

    @property
    def stalls_lines(self) -> list[str]:
        """What the canvas of the Stalls screen shows."""
        canvas = self.stalls.query_one(Canvas)
        return [canvas.render_line(y).text for y in range(canvas.size.height)]

    async def until(self, found: Callable[[], object], timeout_s: float = 10.0) -> None:
        """Wait for what a thread of the screen will show."""
        deadline_s = time.monotonic() + timeout_s
        while not found():
            assert time.monotonic() < deadline_s, "it was not shown in time"
            await self.pilot.pause(0.01)

    @property
    def saturation_lines(self) -> list[str]:
        """What the canvas of the Saturation screen shows."""
        canvas = self.saturation.query_one(Canvas)
        return [canvas.render_line(y).text for y in range(canvas.size.height)]

    @property
    def lines(self) -> list[str]:
        """What the canvas shows."""
        canvas = self.replay.query_one(Canvas)
        return [canvas.render_line(y).text for y in range(canvas.size.height)]

    @property
    def cursor_s(self) -> float:
        return self.picture.view.cursor_ns / 1e9


def drive(
    timeline: Timeline,
    act: Callable[[Session], object],
    *,
    size: tuple[int, int] = WIDE,
    live: bool = False,
    ascii_only: bool = False,
) -> None:
    """Open the application, let `act` (a coroutine function) use it, and close it."""

    async def run() -> None:
        clock = FakeClock()
        app = make_app(timeline, live=live, clock=clock, poll_s=0.02, ascii_only=ascii_only)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await act(Session(app, pilot, clock))  # type: ignore[misc]

    asyncio.run(run())
