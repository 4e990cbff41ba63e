"""Following a trace that another process writes: growth, its clean end, and its death."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from engine.batch import ForwardMode
from profiler.timeline.timeline import open_timeline
from tests.support.traces import decode_row, forward
from tests.ui.tui.driving import Session, drive
from traces.writer import TraceWriter

ROOT = Path(__file__).parents[3]
MS = 1_000_000
COMPACT = (80, 24)
_WRITER = f"""
import pathlib, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.ui.tui.test_live import append
from traces.writer import TraceWriter

writer = TraceWriter(pathlib.Path(sys.argv[1]), {{"provenance": "measured"}})
for number in range(3):
    append(writer, number)
print("written", flush=True)
sys.stdin.read()
"""


def append(writer: TraceWriter, number: int) -> None:
    """One more forward of 10 ms, in which the only request gets a token."""
    if not number:
        request = {"rid": 0, "name": "only", "arrival_ns": 0, "prompt_tokens": 4}
        writer.append("requests", {name: [value] for name, value in request.items()}, 1)
    at = forward(number, number * 10 * MS, number * 10 * MS + 9 * MS, ForwardMode.DECODE, decode_tokens=1)
    writer.append("forwards", {name: [value] for name, value in at.items()}, 1)
    row = decode_row(number, 0, number)
    writer.append("rows", {name: [value] for name, value in row.items()}, 1)


async def until(use: Session, holds: Callable[[], bool]) -> None:
    for _ in range(500):
        await use.pilot.pause(0.01)
        if holds():
            return
    raise AssertionError("\n".join(use.lines))


def test_it_grows_from_empty_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    writer = TraceWriter(path, {"provenance": "measured"})

    async def act(use: Session) -> None:
        view = lambda: use.picture.view  # noqa: E731
        assert "waiting for the first one of the run" in "\n".join(use.lines)
        assert "live" in use.lines[0]
        append(writer, 0)
        await until(use, lambda: view().last_ns // MS == 9)
        assert "│" in use.lines[6]
        append(writer, 1)
        await until(use, lambda: view().last_ns // MS == 19)
        assert view().cursor_ns // MS == 19
        await use.press("home")
        append(writer, 2)
        await until(use, lambda: view().last_ns // MS == 29)
        assert view().cursor_ns == 0
        assert view().end_ns // MS == 19
        await use.press("f")
        assert view().cursor_ns // MS == 29
        append(writer, 3)
        await until(use, lambda: view().last_ns // MS == 39)
        assert view().cursor_ns == view().end_ns == view().last_ns
        writer.close()
        await until(use, lambda: "ended" in use.lines[0])
        assert "the run has ended" in use.lines[-1]
        await use.press("left", "left")
        assert "live" not in use.lines[0]
        assert use.picture.view.cursor_ns == 20 * MS

    drive(open_timeline(path), act, size=COMPACT, live=True)


def test_it_says_when_the_writer_has_died(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == b"written\n"

    async def act(use: Session) -> None:
        assert "live" in use.lines[0]
        assert use.picture.view.last_ns // MS == 29
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        await until(use, lambda: "writer died" in use.lines[0])
        assert "writer died: showing what was recorded" in use.lines[-1]
        await use.press("left")
        assert use.picture.view.cursor_ns == 20 * MS

    try:
        drive(open_timeline(path), act, size=COMPACT, live=True)
    finally:
        child.kill()
        child.stdin.close()
        child.stdout.close()
        child.wait()


def test_a_trace_whose_writer_is_long_gone_is_shown_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    with TraceWriter(path, {"provenance": "measured"}) as writer:
        append(writer, 0)

    async def act(use: Session) -> None:
        assert "ended" in use.lines[0]
        assert use.picture.view.cursor_ns == 0

    drive(open_timeline(path), act, size=COMPACT, live=True)


def test_a_trace_that_goes_bad_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    writer = TraceWriter(path, {"provenance": "measured"})
    append(writer, 0)

    async def act(use: Session) -> None:
        (path / "meta.json").write_text("{")
        await until(use, lambda: "unreadable" in use.lines[0])
        assert use.lines[-1].startswith(" t.chunkscope/meta.json: ")
        await use.press("w")
        assert "Space play" in use.lines[-1]

    drive(open_timeline(path), act, size=COMPACT, live=True)
