"""Each key of the Stalls screen, pressed in the running application, and its numbers against the ledger's."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.widgets import Static

from profiler.ledger.lines import ledger_lines
from profiler.ledger.parts import PartKind
from profiler.timeline.timeline import Timeline, open_timeline
from tests.ui.tui.driving import Session, drive
from ui.part_words import causes_ns
from ui.stall_words import stalls_answer
from ui.tui.overlays import LinesOverlay
from ui.tui.replay_screen import ReplayScreen
from ui.tui.saturation_screen import SaturationScreen
from ui.tui.stalls_rows import Order
from ui.tui.stalls_screen import StallsScreen
from ui.tui.stalls_view import Panel
from ui.words import seconds

COMPACT = (80, 24)
MS = 1_000_000

pytestmark = pytest.mark.usefixtures("reported")


def ms(ns: int, decimals: int = 1) -> str:
    return f"{ns / MS:,.{decimals}f}"


def test_the_answer_the_bar_and_the_ledger_are_those_of_the_report(chunked: Timeline) -> None:
    report = chunked.stall_report
    worst = report.groups[0]
    gap = chunked.gap(worst.rids[0], worst.token_index)
    assert gap is not None
    assert sum(report.by_kind.values()) == report.waiting_ns
    assert sum(part.part_ns for part in gap.parts) == gap.gap_ns

    async def act(use: Session) -> None:
        await use.open_stalls()
        text = "\n".join(use.stalls_lines)
        assert " ".join(use.stalls_lines[3].split()) == stalls_answer(report).text
        for cause, ns in causes_ns(report.by_kind).items():
            if ns:
                assert f"{cause.glyph} {cause.words} {seconds(ns / 1e9)}" in use.stalls_lines[6]
        for group in report.groups[:3]:
            row = next(line for line in use.stalls_lines if f"{group.start_ns / 1e9:,.3f} s" in line)
            assert f"{ms(group.late_ns, 0)} ms" in row
            assert f"{group.lost_ns / 1e9:.2f} s" in row
        for line in ledger_lines(gap):
            if line.name is not None:
                row = next(
                    each
                    for each in use.stalls_lines
                    if f"╱ {line.name}, c" in each or f"╱ {line.name}, w" in each
                )
                assert f"{ms(line.part_ns)} ms" in row
                assert f"{100 * line.share:.1f} %" in row
        assert f"{ms(gap.sum_ns([PartKind.OWN_DECODE]))} ms" in text
        assert re.search(rf"gap, parts sum exactly +{ms(gap.gap_ns)} ms +✓", text)
        for chunk in gap.chunks[:5]:
            row = next(line for line in use.stalls_lines if f"forward {chunk.forward_id} " in line)
            assert row.rstrip().endswith(ms(chunk.in_gap_ns))

    drive(chunked, act)


def test_two_keys_lead_from_the_screen_to_the_culprits_chunk(chunked: Timeline) -> None:
    worst = chunked.worst_gap()
    assert worst is not None
    assert worst.costliest is not None
    chunk = worst.costliest

    async def act(use: Session) -> None:
        await use.press("home", "escape")
        await use.open_stalls()
        await use.press("tab", "enter")
        assert isinstance(use.app.screen, ReplayScreen)
        assert use.picture.view.cursor_ns == chunk.start_ns
        assert use.picture.rid == worst.rid
        assert any(f"forward {chunk.forward_id}" in line.lower() for line in use.lines)

    drive(chunked, act)


def test_enter_goes_to_where_the_stall_began_with_its_lane_selected(chunked: Timeline) -> None:
    second = chunked.stall_report.groups[1]

    async def act(use: Session) -> None:
        await use.press("w", "w", "w", "end")
        await use.open_stalls()
        await use.press("down", "enter")
        assert isinstance(use.app.screen, ReplayScreen)
        view = use.picture.view
        assert view.cursor_ns == second.start_ns
        assert use.picture.rid == second.rids[0]
        assert view.start_ns <= second.start_ns <= second.end_ns <= view.end_ns
        await use.press("2")
        assert use.stalls.view.at == 1

    drive(chunked, act)


def test_the_arrows_choose_and_the_panels_follow(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.open_stalls()
        view = use.stalls.view
        await use.press("up")
        assert view.at == 0
        for at in (1, 2):
            await use.press("down")
            row = view.row
            assert view.at == at
            assert row is not None
            assert view.gap is not None
            assert (view.gap.rid, view.gap.token_index) == (row.rids[0], row.token_index)
            assert any(
                f"Ledger: {row.names[0]}, token {row.token_index}" in line for line in use.stalls_lines
            )
        await use.press(*["down"] * 20)
        assert view.at == len(view.rows) - 1
        chosen = [line for line in use.stalls_lines if "▸" in line]
        assert len(chosen) == 1

    drive(chunked, act)


def test_tab_gives_the_arrows_to_the_chunks_and_back(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.open_stalls()
        view = use.stalls.view
        await use.press("tab", "home", "up", "up")
        assert view.panel is Panel.CHUNKS
        assert view.at == 0
        assert view.chunk is not None
        arrow = next(line for line in use.stalls_lines if "▸" in line)
        assert f"forward {view.chunk.forward_id} " in arrow
        await use.press("tab")
        assert view.panel is Panel.STALLS

    drive(chunked, act)


def test_sort_group_and_brackets(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.open_stalls()
        view = use.stalls.view
        late = [row.late_ns for row in view.rows]
        assert late == sorted(late, reverse=True)
        await use.press("s")
        assert view.order is Order.LOST
        lost = [row.lost_ns for row in view.rows]
        assert lost == sorted(lost, reverse=True)
        assert "s lost in all" in use.stalls_lines[8]
        grouped = view.rows
        await use.press("r")
        assert "r each request" in use.stalls_lines[8]
        assert sum(row.lost_ns for row in view.rows) == sum(lost)
        assert len(view.rows) == sum(row.requests for row in grouped)
        await use.press("r")
        assert view.rows == grouped
        await use.press(*["left_square_bracket"] * len(grouped))
        assert view.row == min(view.rows, key=lambda row: (row.start_ns, row.rids))
        await use.press("left_square_bracket")
        assert "no wait of the list before" in use.stalls_lines[-1]
        await use.press("right_square_bracket", "right_square_bracket")
        assert view.row == sorted(view.rows, key=lambda row: (row.start_ns, row.rids))[2]
        await use.press("up")
        assert "choose" in use.stalls_lines[-1]

    drive(chunked, act)


def test_a_name_is_searched_for(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.open_stalls()
        await use.press("n")
        assert "nothing searched for yet" in use.stalls_lines[-1]
        await use.press("slash")
        await use.answer("short-2")
        row = use.stalls.view.row
        assert row is not None
        assert "short-2" in (*row.names, *(culprit.name for culprit in row.culprits))
        await use.pilot.press("slash", "1", "q", "escape")
        assert isinstance(use.app.screen, StallsScreen)
        await use.pilot.press("slash", "enter", "slash")
        await use.answer("nobody")
        assert "holds 'nobody'" in use.stalls_lines[-1]

    drive(chunked, act)


def test_c_copies_the_row_and_the_question_mark_tells_keys_and_definitions(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.open_stalls()
        await use.press("c")
        assert "clipboard" in use.stalls_lines[-1]
        assert use.app.clipboard.startswith("decode-1–decode-6\tsince ")
        assert "others' prefill" in use.app.clipboard
        await use.press("question_mark")
        assert isinstance(use.app.screen, LinesOverlay)
        told = str(use.app.screen.query_one(Static).content)
        assert "one row for all who waited" in told
        assert "docs/metrics.md, Gap ledger: part" in told

    drive(chunked, act)


def test_digits_go_from_screen_to_screen(chunked: Timeline, at_once: None) -> None:
    async def act(use: Session) -> None:
        cursor = use.cursor_s
        await use.open_stalls()
        assert " 2 Stalls " in use.stalls_lines[1]
        for keys, screen in (
            (("3",), SaturationScreen),
            (("2",), StallsScreen),
            (("1",), ReplayScreen),
            (("2", "escape"), ReplayScreen),
            (("3", "2", "3", "escape"), ReplayScreen),
        ):
            await use.press(*keys)
            assert isinstance(use.app.screen, screen)
        assert len(use.app.screen_stack) == 2
        assert use.cursor_s == cursor

    drive(chunked, act)


@pytest.mark.parametrize("size", [(60, 20), (160, 48)])
def test_every_line_fills_the_terminal_and_no_more(chunked: Timeline, size: tuple[int, int]) -> None:
    async def act(use: Session) -> None:
        await use.open_stalls()
        for keys in (("down",), ("r", "tab", "down"), ("s",)):
            await use.press(*keys)
            assert [cell_len(line) for line in use.stalls_lines] == [size[0]] * size[1]

    drive(chunked, act, size=size)


def test_a_narrow_terminal_shows_one_panel(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.open_stalls()
        assert "Ledger: " in "\n".join(use.stalls_lines)
        assert "Culprits, per chunk" not in "\n".join(use.stalls_lines)
        await use.press("tab")
        assert "Ledger: " not in "\n".join(use.stalls_lines)
        assert "Culprits, per chunk" in "\n".join(use.stalls_lines)

    drive(chunked, act, size=(64, 24))


def test_a_small_terminal_gets_one_line(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        await use.open_stalls()
        assert use.stalls_lines[0].startswith("Chunkscope needs 60")
        await use.press("down", "tab", "s", "r", "r", "c")
        await use.pilot.resize_terminal(*COMPACT)
        await use.until(lambda: "Ledger: " in "\n".join(use.stalls_lines))

    drive(chunked, act, size=(59, 24))


def test_ascii_alone(traces: dict[str, Path]) -> None:
    async def act(use: Session) -> None:
        await use.open_stalls()
        await use.press("tab")
        canvas = use.stalls.children[0]
        lines = ["".join(s.text for s in canvas.render_lines(canvas.region)[y]) for y in range(24)]
        assert all(line.isascii() for line in lines)
        assert "?" not in "".join(lines).replace("? help", "")
        assert any(">long-1" in line and "#" in line for line in lines)

    drive(open_timeline(traces["mixed"]), act, size=COMPACT, ascii_only=True)
