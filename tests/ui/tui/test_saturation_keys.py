"""Each key of the Saturation screen, pressed in the running application."""

from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.widgets import Static

from profiler.price_rows import Limits, Options
from profiler.timeline.timeline import open_timeline
from tests.ui.tui.driving import Session, drive
from ui.tui.overlays import LinesOverlay
from ui.tui.replay_screen import ReplayScreen

COMPACT = (80, 24)

pytestmark = pytest.mark.usefixtures("at_once")


async def opened(use: Session) -> None:
    """The screen with its prices."""
    await use.press("3")
    await use.until(lambda: use.saturation.view.advice is not None)


def overlay(use: Session) -> str:
    assert isinstance(use.app.screen, LinesOverlay)
    return str(use.app.screen.query_one(Static).content)


def test_3_opens_it_and_1_and_escape_go_back_to_the_replay_as_it_was(sized: Path) -> None:
    async def act(use: Session) -> None:
        cursor = use.cursor_s
        for key in ("escape", "1"):
            await opened(use)
            assert " 3 Saturation " in use.saturation_lines[1]
            await use.press(key)
            assert isinstance(use.app.screen, ReplayScreen)
        assert use.cursor_s == cursor

    drive(open_timeline(sized), act)


def test_what_was_computed_and_chosen_stays_when_it_is_opened_again(sized: Path) -> None:
    async def act(use: Session) -> None:
        await opened(use)
        await use.press("l", "down", "right")
        chosen, limits = use.saturation.view.selected, use.saturation.view.limits
        await use.press("escape", "3")
        assert (use.saturation.view.selected, use.saturation.view.limits) == (chosen, limits)
        assert not use.saturation.view.working

    drive(open_timeline(sized), act)


def test_left_and_right_move_the_chunk(sized: Path) -> None:
    async def act(use: Session) -> None:
        await opened(use)
        view = use.saturation.view
        advised = view.advised
        assert advised is not None
        assert view.row == advised
        await use.press("right")
        assert view.selected_tokens == 1024
        await use.press("left", "left", "left")
        assert view.selected_tokens == 256
        await use.press("left")
        assert view.selected_tokens == 256
        await use.press(*["right"] * 9)
        assert view.selected == Options(None)
        assert view.advised == advised

    drive(open_timeline(sized), act)


def test_p_shows_the_same_chunk_under_the_next_policy(sized: Path) -> None:
    async def act(use: Session) -> None:
        await opened(use)
        view = use.saturation.view
        seen = []
        for _ in range(3):
            assert view.row is not None
            seen.append((view.row.options.mixed, view.row.options.interval))
            assert view.selected_tokens == 704
            assert all((r.options.mixed, r.options.interval) == seen[-1] for r in view.rows[:-1])
            await use.press("p")
        assert sorted(seen) == [(False, 0), (False, 1), (True, 0)]
        assert (view.row.options.mixed, view.row.options.interval) == seen[0]

    drive(open_timeline(sized), act)


def test_l_and_the_arrows_move_a_limit_and_the_advice_follows(sized: Path) -> None:
    async def act(use: Session) -> None:
        await opened(use)
        view = use.saturation.view
        advised = view.advised
        assert advised is not None
        assert advised.longest_wait_s is not None
        await use.press("l", "down")
        limit_s = view.limits.itl_max_s
        assert limit_s is not None
        assert limit_s <= advised.longest_wait_s
        assert view.advised != advised
        assert any("✕" in line for line in use.saturation_lines)
        assert any("ITL limit" in line for line in use.saturation_lines)
        await use.press(*["down"] * 20)
        assert view.advised is None
        assert "No option meets ITL max" in "\n".join(use.saturation_lines)
        await use.press("0")
        assert (view.limits, view.advised) == (Limits(), advised)
        await use.press("l", "l", "down", "l", "l")
        assert view.limits.ttft_p99_s is not None
        assert view.knob is None
        await use.press("up")  # chooses the first limit, of which there is none
        assert (view.knob, view.limits.itl_max_s) == ("itl_max_s", None)

    drive(open_timeline(sized), act)


def test_decodes_that_ride_along_lengthen_mixed_forwards(sized: Path) -> None:
    async def act(use: Session) -> None:
        await opened(use)
        view = use.saturation.view
        before = view.row
        assert before is not None
        assert before.options.mixed
        await use.press("l", "l", "l", "l", *["up"] * 10)
        assert view.decodes == 32
        after = next(row for row in view.rows if row.options == before.options)
        assert after.last_forward_s > before.last_forward_s  # type: ignore[operator]
        assert any("decodes" in line and "32" in line for line in use.saturation_lines)
        await use.press("0")
        assert (view.decodes, view.row) == (None, before)

    drive(open_timeline(sized), act)


def test_enter_and_the_question_mark_tell_more(sized: Path) -> None:
    async def act(use: Session) -> None:
        await opened(use)
        await use.press("enter")
        told = overlay(use)
        assert "What the point rests on" in told
        assert "What the prices rest on" in told
        assert "peaks of the simulated H100 SXM5" in told
        assert "of the exact count" in told
        await use.press("escape", "question_mark")
        told = overlay(use)
        assert "the next policy" in told
        assert "docs/metrics.md" in told
        await use.press("escape", "u")
        assert "the trace is complete" in use.saturation_lines[-1]
        await use.press("right")
        assert "the trace is complete" not in use.saturation_lines[-1]

    drive(open_timeline(sized), act)


def test_tab_shows_the_other_half_where_there_is_room_for_one(sized: Path) -> None:
    async def act(use: Session) -> None:
        await opened(use)
        text = "\n".join(use.saturation_lines)
        assert "Throughput" in text
        assert "Price list" not in text
        await use.press("tab")
        text = "\n".join(use.saturation_lines)
        assert "Throughput" not in text
        assert "Price list" in text

    drive(open_timeline(sized), act, size=(64, 24))


@pytest.mark.parametrize("size", [(60, 20), (100, 30), (160, 50)])
def test_every_line_fills_the_terminal_and_no_more(sized: Path, size: tuple[int, int]) -> None:
    async def act(use: Session) -> None:
        await opened(use)
        await use.press("l", "down", "p", "right")
        assert [cell_len(line) for line in use.saturation_lines] == [size[0]] * size[1]

    drive(open_timeline(sized), act, size=size)


def test_a_small_terminal_gets_one_line(sized: Path) -> None:
    async def act(use: Session) -> None:
        await use.press("3")
        assert use.saturation_lines[0].startswith("Chunkscope needs 60")
        await use.press("right", "l", "down", "p", "tab")
        await use.pilot.resize_terminal(*COMPACT)
        await use.until(lambda: "Price list" in "\n".join(use.saturation_lines))

    drive(open_timeline(sized), act, size=(59, 24))


def test_ascii_alone(sized: Path) -> None:
    async def act(use: Session) -> None:
        await opened(use)
        await use.press("l", "down")
        canvas = use.saturation.children[0]
        lines = ["".join(s.text for s in canvas.render_lines(canvas.region)[y]) for y in range(24)]
        assert all(line.isascii() for line in lines)
        assert any("v" in line and "advised" not in line for line in lines)

    drive(open_timeline(sized), act, size=COMPACT, ascii_only=True)
