"""The Saturation screen as an image of text, on a simulated run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from profiler.timeline.timeline import open_timeline
from tests.ui.tui.driving import FakeClock
from ui.tui.app import ChunkscopeApp, make_app
from ui.tui.saturation_screen import SaturationScreen

Compare = Callable[..., bool]

pytestmark = pytest.mark.usefixtures("at_once")


def opened(*keys: str) -> Callable[[Pilot[None]], object]:
    """Opens the screen, waits for its prices, and presses keys."""

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("3")
        screen = pilot.app.screen
        assert isinstance(screen, SaturationScreen)
        while screen.view.advice is None:
            await pilot.pause(0.01)
        if keys:
            await pilot.press(*keys)

    return act


def app(path: Path) -> ChunkscopeApp:
    return make_app(open_timeline(path), clock=FakeClock())


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_saturation(sized: Path, snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(app(sized), terminal_size=size, run_before=opened())


def test_under_a_limit(sized: Path, snap_compare: Compare) -> None:
    keys = ("l", "down", "down", "right")
    assert snap_compare(app(sized), terminal_size=(120, 40), run_before=opened(*keys))


def test_no_option_meets_it(sized: Path, snap_compare: Compare) -> None:
    keys = ("l", *["down"] * 12)
    assert snap_compare(app(sized), terminal_size=(80, 24), run_before=opened(*keys))
