"""What the screen shows of odd traces and in odd terminals."""

import os
import signal
from array import array
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.color import Color

from engine.batch import ForwardMode
from engine.config import EngineConfig
from engine.engine import Engine
from engine.request import Request, SamplingParams
from profiler.recorder import Recorder
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.hash_executor import HashExecutor
from tests.support.recorded import TINY, TickClock, TimedExecutor
from tests.support.traces import forward
from tests.ui.tui.driving import Session, drive
from tests.ui.tui.test_text import HOSTILE
from traces.writer import TraceWriter
from ui.tui import moves
from ui.tui.colours import Depth, Inks
from ui.tui.ink import CURSOR, Ink

COMPACT = (80, 24)


def written(path: Path, *forwards: dict[str, object]) -> Timeline:
    """A sealed trace of these forwards and of nothing else."""
    with TraceWriter(path, {"provenance": "imported"}) as writer:
        for row in forwards:
            writer.append("forwards", {name: [value] for name, value in row.items()}, 1)
    return open_timeline(path)


def recorded(path: Path, names: tuple[str, ...]) -> Timeline:
    """A run of requests with these names."""
    config = EngineConfig(chunked_prefill_size=16).resolve(max_total_tokens=512, context_length=512)
    clock = TickClock(500_000)
    recorder = Recorder(TraceWriter(path, {"provenance": "measured"}), TINY, clock=clock, element_bytes=2)
    executor = TimedExecutor(HashExecutor(512, config.page_size), clock)
    engine = Engine(config, executor, clock=clock, observer=recorder)
    sampling = SamplingParams(max_new_tokens=8, ignore_eos=True)
    engine.run(
        [Request(i, name, array("i", [i + 1] * (6 + 9 * i)), sampling, 0) for i, name in enumerate(names)]
    )
    recorder.close(engine.cache.pool_state())
    return open_timeline(path)


def test_a_trace_without_forwards_says_so_and_takes_every_key(tmp_path: Path) -> None:
    async def act(use: Session) -> None:
        assert "holds no forward: there is nothing to replay" in "\n".join(use.lines)
        assert "◇ imported" in use.lines[0]
        keys = ("space", "right", "left", "right_square_bracket", "left_square_bracket", "w", "s", "a", "d")
        await use.press(*keys, "f", "m", "n", "up", "down", "enter", "home", "end", "plus", "minus", "escape")
        await use.press("r", "escape")
        await use.press("question_mark", "escape")
        assert "holds no forward" in "\n".join(use.lines)

    drive(written(tmp_path / "t.chunkscope"), act, size=COMPACT)


@pytest.mark.parametrize("size", [COMPACT, (120, 40)])
def test_missing_tables_and_columns_are_dashes(tmp_path: Path, size: tuple[int, int]) -> None:
    rows = [forward(i, i * 1_000_000, i * 1_000_000 + 900_000, ForwardMode.EXTEND) for i in range(4)]

    async def act(use: Session) -> None:
        text = "\n".join(use.lines)
        assert "no request has anything to show in this range" in text
        assert "locked" in text
        assert "– not in this trace" in text
        assert "TTFT" in text
        assert "–" in use.lines[-4 if size == COMPACT else -8]
        await use.press("right", "enter", "escape", "r", "escape", "slash")
        await use.answer("nobody")
        assert "no request's name holds 'nobody'" in use.lines[-1]

    drive(written(tmp_path / "t.chunkscope", *rows), act, size=size)


def test_a_small_terminal_gets_one_line(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        assert use.lines[0].startswith("Chunkscope needs 60")
        assert not "".join(use.lines[1:]).strip()
        await use.press("down", "enter", "w")
        await use.pilot.resize_terminal(*COMPACT)
        assert "decode-1" in "\n".join(use.lines)
        await use.pilot.resize_terminal(80, 19)
        assert use.lines[0].startswith("Chunkscope needs 60")

    drive(chunked, act, size=(59, 24))


@pytest.mark.parametrize("size", [(60, 20), (119, 50), (120, 34)])
def test_every_line_fills_the_terminal_and_no_more(chunked: Timeline, size: tuple[int, int]) -> None:
    async def act(use: Session) -> None:
        await use.press("down", "m", "w", "w", "d")
        assert [cell_len(line) for line in use.lines] == [size[0]] * size[1]

    drive(chunked, act, size=size)


@pytest.mark.parametrize("size", [COMPACT, (120, 40)])
def test_hostile_names_are_text_everywhere(tmp_path: Path, size: tuple[int, int]) -> None:
    timeline = recorded(tmp_path / "t.chunkscope", tuple(HOSTILE))

    async def act(use: Session) -> None:
        for rid in range(timeline.num_requests):
            moves.select(use.picture, rid)
            use.replay.paint()
            assert [cell_len(line) for line in use.lines] == [size[0]] * size[1]
        await use.press("enter", "escape", "down", "enter", "escape")
        text = "\n".join(use.lines)
        assert "[bold re" in text
        assert not any(c in text for c in "\x1b\x07\t\r\u202e")
        await use.press("r", "end", "enter")
        await use.press("slash")
        await use.answer("[/nothing]")
        assert "'[/nothing]'" in use.lines[-1]

    drive(timeline, act, size=size)


def test_ascii_alone(chunked: Timeline) -> None:
    async def act(use: Session) -> None:
        canvas = use.replay.children[0]
        lines = ["".join(s.text for s in canvas.render_lines(canvas.region)[y]) for y in range(24)]
        assert all(line.isascii() for line in lines)
        text = "\n".join(lines)
        assert "////" in text
        assert "####" in text
        assert "||||" in text
        assert "...." in text

    drive(chunked, act, size=COMPACT, ascii_only=True)


def test_sixteen_colours_are_those_of_the_terminal() -> None:
    standard = {(r, g, b) for r in (0, 170) for g in (0, 85, 170) for b in (0, 170)}
    bright = {(r, g, b) for r in (85, 255) for g in (85, 255) for b in (85, 255)}
    inks = Inks(Depth.SIXTEEN)
    for ink in Ink:
        for style in (inks.style(ink), inks.style(ink | CURSOR)):
            for colour in (style.color, style.bgcolor):
                assert colour is not None
                assert colour.get_truecolor() in standard | bright


@pytest.mark.parametrize("depth", Depth)
def test_every_ink_can_be_read(depth: Depth) -> None:
    """Words have a contrast of 4.5 to their ground, and strokes and bars 2.5; rules are there to be faint."""
    for ink in set(Ink) - {Ink.BLANK, Ink.RULE, Ink.DECODE_ON_CHUNK, Ink.DECODE_ON_ALTERNATE}:
        style = Inks(depth).style(ink)
        assert style.color is not None
        assert style.bgcolor is not None
        colours = [Color(*colour.get_truecolor()) for colour in (style.color, style.bgcolor)]
        drawn = ink in STROKES
        assert contrast(*colours) >= (2.5 if drawn else 4.5), ink


STROKES = {
    Ink.DECODE, Ink.STALL, Ink.MIXED, Ink.HELD, Ink.QUEUED, Ink.DEFERRED, Ink.BAR_CHUNK,
    Ink.BAR_CHUNK_ALTERNATE, Ink.LOCKED, Ink.PRIVATE, Ink.EVICTABLE, Ink.FREE, Ink.MIDDLE,
}  # fmt: skip


def contrast(one: Color, other: Color) -> float:
    """The ratio of WCAG."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: Color) -> float:
    parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_asked_to_end_it_gives_the_terminal_back(chunked: Timeline, number: signal.Signals) -> None:
    codes: list[int | None] = []

    async def act(use: Session) -> None:
        os.kill(os.getpid(), number)
        await use.pilot.pause()
        codes.append(use.app.return_code)

    drive(chunked, act)
    assert codes == [128 + number]
