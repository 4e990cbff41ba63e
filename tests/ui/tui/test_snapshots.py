"""The whole screen as an image of text, on a recorded trace."""

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from profiler.timeline.timeline import Timeline
from tests.ui.tui.driving import FakeClock
from ui.tui.app import ChunkscopeApp, make_app

Compare = Callable[..., bool]


def app(timeline: Timeline) -> ChunkscopeApp:
    return make_app(timeline, clock=FakeClock())


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_replay(chunked: Timeline, snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(app(chunked), terminal_size=size)


def test_a_stall_close_by(chunked: Timeline, snap_compare: Compare) -> None:
    async def look(pilot: Pilot[None]) -> None:
        await pilot.press("down", "m", "w", "w", "right")

    assert snap_compare(app(chunked), terminal_size=(120, 40), run_before=look)


def test_a_gap_taken_apart(chunked: Timeline, snap_compare: Compare) -> None:
    assert snap_compare(app(chunked), terminal_size=(80, 24), press=["down", "enter"])
