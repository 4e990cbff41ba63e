"""The Stalls screen while it works, on traces with nothing to tell, and on traces that grow or are gone."""

import re
import shutil
import threading
from pathlib import Path

import pytest
from textual.color import Color

from engine.batch import ForwardMode
from profiler.ledger.report import StallReport
from profiler.ledger.stall_report import stall_report
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.traces import forward
from tests.ui.tui.driving import Session, drive
from tests.ui.tui.stall_parts import group, report
from tests.ui.tui.test_live import append
from tests.ui.tui.test_states import contrast, recorded, written
from tests.ui.tui.test_text import HOSTILE
from traces.writer import TraceWriter
from ui.tui.colours import Depth, Inks
from ui.tui.ink import BAND, Ink

COMPACT = (80, 24)
ALL_KEYS = ("down", "up", "tab", "s", "r", "n", "c", "right_square_bracket", "left_square_bracket", "enter")


def text(use: Session) -> str:
    return "\n".join(use.stalls_lines)


def test_it_tells_what_it_works_at_and_for_how_long(
    chunked: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def slow(trace: object, top: int) -> StallReport:
        assert go_on.wait(10)
        return stall_report(chunked.trace)

    monkeypatch.setattr("profiler.timeline.timeline.stall_report", slow)

    async def act(use: Session) -> None:
        await use.press("2")
        assert "taking every gap apart … 0 s" in text(use)
        use.clock.now_s += 7
        use.stalls.tick()
        assert "taking every gap apart … 7 s" in text(use)
        await use.press(*ALL_KEYS)
        await use.press("escape", "2")
        go_on.set()
        await use.until(lambda: use.stalls.view.report)
        assert "of waiting went to" in text(use)
        assert not use.stalls.view.working

    drive(chunked, act)


def test_a_trace_without_tokens_says_so_and_takes_every_key(tmp_path: Path) -> None:
    timeline = written(tmp_path / "t.chunkscope", forward(0, 0, 1_000_000, ForwardMode.DECODE))

    async def act(use: Session) -> None:
        await use.open_stalls()
        assert "No request gave two tokens" in text(use)
        assert "The trace was imported" in text(use)
        assert "◇ imported" in use.stalls_lines[0]
        await use.press(*ALL_KEYS, "question_mark", "escape", "escape")

    drive(timeline, act)


def test_where_nobody_was_late_nothing_is_listed(chunked: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = report(group(0, 0, ["r1"]))
    monkeypatch.setattr("profiler.timeline.timeline.stall_report", lambda trace, top: nobody)

    async def act(use: Session) -> None:
        await use.open_stalls()
        assert "All 1.0 ms of waiting went to own decode." in text(use)
        assert "No token came later than its own decode forwards needed." in text(use)
        await use.press(*ALL_KEYS)

    drive(chunked, act)


@pytest.mark.parametrize("size", [COMPACT, (120, 40)])
def test_a_trace_that_cannot_be_read_is_named(
    traces: dict[str, Path], tmp_path: Path, size: tuple[int, int]
) -> None:
    path = tmp_path / "gone.chunkscope"
    shutil.copytree(traces["chunked"], path)
    timeline = open_timeline(path)
    shutil.rmtree(path)

    async def act(use: Session) -> None:
        await use.press("2")
        await use.until(lambda: use.stalls.view.lacking)
        assert "gone.chunkscope: " in text(use)
        assert str(tmp_path) not in text(use)
        await use.press(*ALL_KEYS, "question_mark", "escape", "1")

    drive(timeline, act, size=size)


def test_a_growing_trace_is_read_anew_and_the_choice_stays(tmp_path: Path) -> None:
    path = tmp_path / "live.chunkscope"
    writer = TraceWriter(path, {"provenance": "measured"})

    async def act(use: Session) -> None:
        await use.open_stalls()
        view = use.stalls.view
        assert "the first will be shown when there is one" in text(use)
        assert "live" in use.stalls_lines[0]
        for number in range(4):
            append(writer, number)
            await use.until(lambda n=number: use.picture.source.timeline.num_forwards == n + 1)
        use.stalls.tick()
        assert not view.working  # it rests first
        use.clock.now_s += 3
        use.stalls.tick()
        await use.until(lambda: view.report is not None and view.report.gaps == 3)
        row = view.row
        append(writer, 4)
        await use.until(lambda: use.picture.source.timeline.num_forwards == 5)
        use.clock.now_s += 3
        use.stalls.tick()
        await use.until(lambda: view.report is not None and view.report.gaps == 4)
        assert row is not None
        assert view.row is not None
        assert view.row.start_ns == row.start_ns
        await use.press("enter")
        assert use.picture.view.cursor_ns == row.start_ns
        assert not use.picture.at_end
        writer.close()

    drive(open_timeline(path), act, live=True)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    async def act(use: Session) -> None:
        await use.open_stalls()
        assert use.stalls.view.rows
        for key in ("r", "tab", "down", "down", "s", "right_square_bracket"):
            await use.press(key)
            assert "\x1b" not in text(use)
            assert re.search(r"gap, exact sum +[\d.]+ ms +✓|gap, parts sum exactly", text(use))
        await use.press("enter", "enter")

    drive(recorded(tmp_path / "t.chunkscope", HOSTILE), act, size=COMPACT)


@pytest.mark.parametrize("depth", Depth)
def test_causes_on_a_band_can_be_told(depth: Depth) -> None:
    for ink in (Ink.STALL, Ink.MIXED, Ink.HELD, Ink.DECODE, Ink.BAR_CHUNK, Ink.MUTED):
        style = Inks(depth).style(ink | BAND)
        assert style.color is not None
        assert style.bgcolor is not None
        assert contrast(*(Color(*c.get_truecolor()) for c in (style.color, style.bgcolor))) >= 2.5
