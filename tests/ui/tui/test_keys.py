"""Each key, pressed in the running application."""

import pytest
from textual.widgets import DataTable, Static

from profiler.timeline.timeline import Timeline
from tests.ui.tui.driving import Session, drive
from ui.metric_entries import ENTRIES
from ui.tui.overlays import LinesOverlay
from ui.tui.request_table import RequestTable

COMPACT = (80, 24)


def test_it_opens_at_the_costliest_chunk_of_the_longest_gap(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        worst = chunked.worst_gap()
        assert worst is not None
        assert worst.costliest is not None
        assert use.picture.view.cursor_ns == worst.costliest.start_ns
        assert use.picture.view.is_whole
        assert "decodes silent since" in use.lines[3]
        assert "long-1 holds the half-done slot" in use.lines[3]

    drive(chunked, act)


def test_space_plays_and_pauses_at_the_speed_of_plus_and_minus(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.press("home")
        before = use.cursor_s
        use.pass_time(1.0)
        assert use.cursor_s == before
        await use.press("space")
        assert "▶ 1×" in use.lines[0]
        use.pass_time(0.1)
        assert use.cursor_s == pytest.approx(before + 0.1)
        await use.press("plus", "full_stop")
        assert "▶ 5×" in use.lines[0]
        use.pass_time(0.02)
        assert use.cursor_s == pytest.approx(before + 0.2)
        await use.press("minus", "comma", "minus")
        assert "▶ 0.5×" in use.lines[0]
        use.pass_time(0.1)
        assert use.cursor_s == pytest.approx(before + 0.25)
        await use.press("space")
        use.pass_time(1.0)
        assert use.cursor_s == pytest.approx(before + 0.25)
        await use.press(*["minus"] * 3)
        assert "0.1×" in use.lines[0]
        use.picture.speed = 50.0
        await use.press("equals_sign", "equals_sign")
        assert "100×" in use.lines[0]

    drive(chunked, act)


def test_playing_stops_at_the_end_and_starts_again_from_there(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.press("space")
        use.pass_time(1_000.0)
        assert use.cursor_s == chunked.end_ns / 1e9
        assert "❙❙" in use.lines[0]
        await use.press("space")
        use.pass_time(0.01)
        assert use.cursor_s == pytest.approx(chunked.start_ns / 1e9 + 0.01)

    drive(chunked, act)


def test_arrows_step_by_forward(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        here = use.picture.view.cursor_ns
        after = chunked.forward_start(here, 1)
        await use.press("right")
        assert use.picture.view.cursor_ns == after
        await use.press("left")
        assert use.picture.view.cursor_ns == here
        await use.press("home", "left")
        assert "this is the first forward" in use.lines[-1]
        await use.press("end", "right")
        assert "this is the last forward" in use.lines[-1]

    drive(chunked, act)


def test_brackets_go_from_stall_to_stall(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.press("home", "right_square_bracket")
        first = chunked.next_stall(chunked.start_ns)
        assert first is not None
        assert use.picture.view.cursor_ns == first["start_ns"]
        assert use.picture.rid == first["rid"]
        second = chunked.next_stall(first["start_ns"])
        assert second is not None
        await use.press("right_square_bracket")
        assert use.picture.view.cursor_ns == second["start_ns"]
        await use.press("left_square_bracket")
        assert use.picture.view.cursor_ns == first["start_ns"]
        await use.press("left_square_bracket")
        assert "no stall before" in use.lines[-1]

    drive(chunked, act)


def test_wasd_zoom_and_pan_and_f_fits(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        whole = use.picture.view
        await use.press("w", "W")
        near = use.picture.view
        assert near.span_ns < whole.span_ns / 2
        await use.press("D")
        assert use.picture.view.start_ns > near.start_ns
        await use.press("a")
        assert use.picture.view.start_ns == near.start_ns
        await use.press("s")
        assert near.span_ns < use.picture.view.span_ns < whole.span_ns
        await use.press("f")
        assert use.picture.view == whole

    drive(chunked, act)


def test_g_goes_to_a_moment_or_a_forward(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.pilot.press("g", "0", "full_stop", "2", "5", "enter")
        assert use.picture.view.cursor_ns == 250_000_000
        await use.press("g")
        await use.answer("#5")
        assert use.picture.view.cursor_ns == chunked.start_of_forward(5)
        await use.pilot.press("g", "1", "escape", "w")
        assert use.picture.view.cursor_ns == chunked.start_of_forward(5)
        assert not use.picture.view.is_whole

    drive(chunked, act)


WRONG_MOMENTS = {
    "soon": "'soon' is no moment: give seconds, or #number of a forward",
    "99": "99 s is outside the trace: give 0.000 to",
    "-1": "-1 s is outside the trace",
    "nan": "'nan' is no moment",
    "#9999": "no forward #9999 in this trace",
    "#x": "no forward #x in this trace",
}


def test_a_wrong_moment_gets_one_line(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        before = use.picture.view
        for typed, said in WRONG_MOMENTS.items():
            await use.press("g")
            await use.answer(typed)
            assert said in use.lines[-1]
            assert use.picture.view == before
        await use.press("w")
        assert "Space play" in use.lines[-1]

    drive(chunked, act, size=COMPACT)


def test_m_marks_and_the_axis_tells_the_time_from_there(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.press("home", "m", "g")
        await use.answer("0.25")
        assert "▼ 0.250 +0.250 from mark" in use.lines[5]
        assert "▽" in use.lines[5]
        await use.press("escape")
        assert "mark" not in use.lines[5]

    drive(chunked, act)


def test_slash_finds_requests_and_n_the_next(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.press("slash")
        await use.answer("LONG-2")
        assert use.picture.rid == chunked.request_by_name("long-2")
        assert any(line.startswith("▸long-2") for line in use.lines)
        await use.press("slash")
        await use.answer("decode")
        assert "6 requests match" in use.lines[-1]
        first = use.picture.rid
        await use.press("n")
        assert use.picture.rid not in (first, None)
        await use.press("n", "n", "n", "n", "n")
        assert use.picture.rid == first
        await use.press("slash")
        await use.answer("[bold]x")
        assert "no request's name holds '[bold]x'" in use.lines[-1]
        assert use.picture.rid == first

    drive(chunked, act)


def test_up_and_down_select_lanes(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.press("down")
        assert any(line.startswith("▸decode-1") for line in use.lines)
        await use.press("down", "down")
        assert any(line.startswith("▸decode-3") for line in use.lines)
        await use.press("up")
        assert any(line.startswith("▸decode-2") for line in use.lines)
        await use.press("escape")
        assert not any(line.startswith("▸") for line in use.lines)

    drive(chunked, act)


def test_lanes_without_room_are_counted_and_scrolled_to(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        assert any("more requests" in line for line in use.lines)
        await use.press(*["down"] * 11)
        assert use.picture.rid == chunked.request_by_name("short-3")
        assert any(line.startswith("▸short-3") for line in use.lines)
        assert any("↑" in line and "before" in line for line in use.lines)
        await use.press(*["up"] * 10)
        assert any(line.startswith("▸decode-1") for line in use.lines)

    drive(chunked, act, size=(80, 20))


def test_enter_takes_the_gap_at_the_cursor_apart(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.press("down", "enter")
        page = use.app.screen
        assert isinstance(page, LinesOverlay)
        gap = chunked.gap_at(0, use.picture.view.cursor_ns)
        assert gap is not None
        text = str(page.query_one(Static).content)
        assert f"decode-1 waits {gap.gap_ns / 1e6:.0f} ms for its token {gap.token_index}" in text
        assert "gap, parts sum exactly" in text
        assert "A prefill batch could be formed" in text
        assert "long-1" in text
        await use.press("escape")
        await use.press("end", "enter")
        assert "decode-1 has no gap at" in use.lines[-1]

    drive(chunked, act)


def test_enter_opens_the_state_where_there_is_no_panel(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.press("end", "enter")
        text = str(use.app.screen.query_one(Static).content)
        assert "inflight_middle_chunks" in text or "Half-done request" in text
        assert "KV pages" in text

    drive(chunked, act, size=COMPACT)


def test_r_lists_requests_and_enter_goes_to_the_longest_gap(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.press("r")
        assert isinstance(use.app.screen, RequestTable)
        table = use.app.screen.query_one(DataTable)
        assert table.row_count == chunked.num_requests
        await use.press("down", "down", "enter")
        assert use.picture.rid == chunked.request_by_name("decode-3")
        gap = chunked.longest_gap(2)
        assert gap is not None
        assert gap.start_ns <= use.picture.view.cursor_ns < gap.end_ns
        await use.press("r", "escape")
        assert use.app.screen is use.replay

    drive(chunked, act)


def test_question_mark_tells_the_keys_and_q_quits(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.press("question_mark")
        text = str(use.app.screen.query_one(Static).content)
        assert "play, pause" in text
        assert "zoom in, out" in text
        for name in ("ITL p99", "queue max", "KV peak", "budget fill", "locked", "private"):
            assert f"\n{name:<13}" in text.partition("Numbers")[2]
        assert "inflight_middle_chunks\n" in text
        assert f"{ENTRIES['budgets'].words}\n{'':<13}{ENTRIES['budgets'].place}" in text
        await use.press("question_mark")
        assert use.app.screen is use.replay
        assert use.app.is_running
        await use.press("q")
        assert not use.app.is_running

    drive(chunked, act)
