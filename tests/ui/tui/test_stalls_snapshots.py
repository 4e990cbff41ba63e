"""The Stalls screen as an image of text, on recorded runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from profiler.timeline.timeline import open_timeline
from tests.ui.tui.driving import FakeClock
from ui.tui.app import ChunkscopeApp, make_app
from ui.tui.stalls_screen import StallsScreen

Compare = Callable[..., bool]

pytestmark = pytest.mark.usefixtures("reported")


def opened(*keys: str) -> Callable[[Pilot[None]], object]:
    """Opens the screen, waits for its report, and presses keys."""

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("2")
        screen = pilot.app.screen
        assert isinstance(screen, StallsScreen)
        while screen.view.report is None:
            await pilot.pause(0.01)
        if keys:
            await pilot.press(*keys)

    return act


def app(path: Path) -> ChunkscopeApp:
    return make_app(open_timeline(path), clock=FakeClock())


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_stalls(traces: dict[str, Path], snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(app(traces["chunked"]), terminal_size=size, run_before=opened())


def test_chunks_of_a_large_terminal(traces: dict[str, Path], snap_compare: Compare) -> None:
    assert snap_compare(app(traces["chunked"]), terminal_size=(160, 48), run_before=opened("tab", "up", "s"))


def test_mixed(traces: dict[str, Path], snap_compare: Compare) -> None:
    assert snap_compare(app(traces["mixed"]), terminal_size=(120, 40), run_before=opened("r", "down", "tab"))
