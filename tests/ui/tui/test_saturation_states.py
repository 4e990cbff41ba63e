"""The Saturation screen while it works, of a trace that tells nothing, grows, or cannot be read."""

import re
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from textual.color import Color

from engine.batch import ForwardMode
from engine.errors import ConfigError
from profiler.advice_choice import Margins
from profiler.advice_names import limit_words
from profiler.prefix_curve import prefix_curve
from profiler.price_rows import Limits
from profiler.saturation import Saturation
from profiler.saturation_curve import Dip
from profiler.timeline.timeline import open_timeline
from profiler.wording import duration
from tests.support.traces import forward
from tests.ui.tui.conftest import Computed
from tests.ui.tui.driving import Session, drive
from tests.ui.tui.test_states import contrast
from traces.writer import TraceWriter
from ui.tui.basis_page import basis_page
from ui.tui.colours import Depth, Inks
from ui.tui.ink import BAND, Ink
from ui.tui.price_panel import price_panel
from ui.tui.price_table import price_lines
from ui.tui.saturation_basis import basis_groups
from ui.tui.saturation_charts import throughput_lines, time_lines
from ui.tui.saturation_page import compose_saturation
from ui.tui.saturation_view import SaturationView
from ui.tui.text import span_length

COMPACT = (80, 24)


def text_of(lines: list[list[tuple[str, int]]]) -> str:
    return "\n".join("".join(text for text, _ in line) for line in lines)


@pytest.fixture
def view(computed: Computed) -> SaturationView:
    view = SaturationView("sized", {"provenance": "simulated"}, board=computed.board)
    view.set(tried=computed.advice)
    return view


def test_it_tells_what_it_works_at_and_for_how_long(
    sized: Path, computed: Computed, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def board(trace: object) -> object:
        assert go_on.wait(10)
        return computed.board

    monkeypatch.setattr("profiler.saturation_board.saturation_board", board)
    monkeypatch.setattr("profiler.advice.advise", lambda trace: computed.advice)

    async def act(use: Session) -> None:
        await use.press("3")
        assert "fitting forwards … 0 s" in use.saturation_lines[3]
        use.clock.now_s += 7
        use.saturation.tick()
        assert "fitting forwards … 7 s" in use.saturation_lines[3]
        await use.press("right", "p", "enter", "l", "down", "u")
        assert "still working" in use.saturation_lines[-1]
        assert use.saturation.view.limits == Limits(itl_max_s=1.0)
        go_on.set()
        await use.until(lambda: use.saturation.view.advice)
        assert not use.saturation.view.working
        assert use.saturation.view.advice.choice.limits == Limits(itl_max_s=1.0)  # type: ignore[union-attr]

    drive(open_timeline(sized), act)


def test_a_trace_that_tells_nothing_says_why(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    with TraceWriter(path, {"provenance": "imported"}) as writer:
        row = forward(0, 0, 1_000_000, ForwardMode.DECODE)
        writer.append("forwards", {name: [value] for name, value in row.items()}, 1)

    async def act(use: Session) -> None:
        await use.press("3")
        await use.until(lambda: use.saturation.view.board and not use.saturation.view.working)
        text = "\n".join(use.saturation_lines)
        assert "No saturation point: no forward here computes one prompt without a prefix." in text
        assert "fewer than two sizes: nothing to draw" in text
        assert "meta.json tells no model" in text
        await use.press("right", "left", "p", "l", "down", "0", "tab", "enter", "escape")

    drive(open_timeline(path), act)


@pytest.mark.parametrize("size", [COMPACT, (120, 40)])
def test_a_trace_that_cannot_be_read_is_named(sized: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "gone.chunkscope"
    shutil.copytree(sized, path)
    timeline = open_timeline(path)
    shutil.rmtree(path)

    async def act(use: Session) -> None:
        await use.press("3")
        await use.until(lambda: use.saturation.view.lacking)
        text = "\n".join(use.saturation_lines)
        assert "gone.chunkscope: " in text
        assert str(tmp_path) not in text
        await use.press("right", "p", "l", "down", "enter", "question_mark", "escape", "1")

    drive(timeline, act, size=size)


def test_prices_that_cannot_be_had_leave_the_charts(
    sized: Path, computed: Computed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advise(trace: object) -> object:
        raise ConfigError("meta.json tells no model")

    monkeypatch.setattr("profiler.saturation_board.saturation_board", lambda trace: computed.board)
    monkeypatch.setattr("profiler.advice.advise", advise)

    async def act(use: Session) -> None:
        await use.press("3")
        await use.until(lambda: use.saturation.view.lacking)
        text = "\n".join(use.saturation_lines)
        assert "meta.json tells no model" in text
        assert "tokens fill one forward" in text

    drive(open_timeline(sized), act)


def test_a_growing_trace_is_computed_anew_on_demand(
    tmp_path: Path, computed: Computed, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []

    def board(trace: object) -> object:
        calls.append(trace)
        return computed.board

    monkeypatch.setattr("profiler.saturation_board.saturation_board", board)
    monkeypatch.setattr("profiler.advice.advise", lambda trace: computed.advice)
    path = tmp_path / "live.chunkscope"
    with TraceWriter(path, {"provenance": "measured"}) as writer:
        row = forward(0, 0, 1_000_000, ForwardMode.DECODE)
        writer.append("forwards", {name: [value] for name, value in row.items()}, 1)

        async def act(use: Session) -> None:
            await use.press("3")
            await use.until(lambda: use.saturation.view.advice)
            assert "still growing" in use.saturation_lines[0]
            assert "u update" in use.saturation_lines[-1]
            await use.press("u")
            await use.until(lambda: len(calls) == 2 and not use.saturation.view.working)

        drive(open_timeline(path), act)


def test_the_point_its_interval_and_the_dips_are_drawn(view: SaturationView, computed: Computed) -> None:
    found = computed.board.report.found
    assert found.tokens is not None
    lines = throughput_lines(view, 50, 13)
    text = text_of(lines)
    assert f"● {found.tokens:,} tokens" in text
    assert f"[{found.low:,}, {found.high:,}]" in text
    assert "plateau" in text
    assert "▲" not in text
    dipped = replace(found, dips=(Dip(64, 91, 0.2),))
    view.board = replace(computed.board, report=replace(computed.board.report, found=dipped))
    glyphs = [(glyph, ink) for line in throughput_lines(view, 50, 13) for glyph, ink in line]
    assert [ink for glyph, ink in glyphs if "▲" in glyph] == [Ink.WATCH] * 2
    told = text_of(basis_groups(view))
    assert "▲ dips at 64 to 91 tokens, by up to 20 %" in told
    assert "not covered" in told.splitlines()[-1]


def test_a_limit_out_of_sight_is_told_at_the_edge(view: SaturationView) -> None:
    view.set(limits=Limits(itl_max_s=90.0))
    assert "ITL limit 90 s, above" in text_of(time_lines(view, 50, 11))
    view.set(limits=Limits(itl_max_s=1e-3))
    lines = text_of(time_lines(view, 50, 11)).splitlines()
    assert "ITL limit 1 ms" in text_of(time_lines(view, 50, 11))
    assert len(lines) == 11


def test_without_a_fit_the_cost_model_draws_the_line(view: SaturationView, computed: Computed) -> None:
    report = computed.board.report
    few = replace(
        report, found=Saturation("too_few_points", 0.95), curve=report.curve.clear(), sizes=report.sizes[:1]
    )
    view.board = replace(computed.board, report=few)
    assert "nothing to draw" in text_of(compose_saturation(view, 120, 40))
    view.modelled = prefix_curve(computed.advice.basis.cost, 1, 12_000, 0)
    text = text_of(compose_saturation(view, 120, 40))
    assert "line: cost model" in text
    assert "◦" in text
    assert "By the cost model about" in text


def test_without_a_point_nothing_is_marked(view: SaturationView, computed: Computed) -> None:
    report = computed.board.report
    empty = replace(
        report, found=Saturation("not_saturated", 0.95), best_tokens_per_s=None, curve=report.curve.clear()
    )
    view.board = replace(computed.board, report=empty)
    text = text_of(compose_saturation(view, 120, 40))
    assert "●" not in text
    assert "◦" in text


@pytest.mark.parametrize("depth", Depth)
def test_words_on_a_band_can_be_read(depth: Depth) -> None:
    for ink in (Ink.TEXT, Ink.STRONG, Ink.MUTED, Ink.ACCENT, Ink.GOOD, Ink.BAD, Ink.WATCH, Ink.PREFILL):
        style = Inks(depth).style(ink | BAND)
        assert style.color is not None
        assert style.bgcolor is not None
        assert contrast(*(Color(*c.get_truecolor()) for c in (style.color, style.bgcolor))) >= 4.5


@pytest.mark.parametrize("cells", [40, 75])
def test_what_it_rests_on_is_wrapped_and_points_above_the_roof_are_counted(
    view: SaturationView, computed: Computed, cells: int
) -> None:
    above = pl.DataFrame({"reason": ["clock", "cache", "cache"]})
    view.board = replace(computed.board, forwards_above=above, operators_above=above[:1])
    lines = basis_page(view, cells)
    assert max(span_length(line) for line in lines) <= cells
    text = " ".join(text_of(lines).split())
    assert "above it 2 forwards, cache: a cache held a part of what is counted as moved" in text
    assert "above it 1 operator, clock: " in text
    assert "as SGLang does" in text


def prices(view: SaturationView, cells: int, rows: int = 20) -> list[str]:
    return text_of(price_panel(view, cells, rows, wide=cells >= 60)).splitlines()


def test_the_title_says_simulated_whatever_there_is_room_for(view: SaturationView) -> None:
    view.next_policy()
    for cells in (30, 40, 64):
        assert prices(view, cells)[0].startswith("Price list · simulated")
    assert "prefill first" in prices(view, 40)[0]
    assert "prompt 12,000" in prices(view, 64)[0]


def test_every_duration_of_the_list_has_its_unit(view: SaturationView) -> None:
    heads, *rows = price_lines(view, 97, 20)
    durations = ("first", "last", "wait", "ITL p99", "TTFT p99", "TTFT long")
    assert all(head in text_of([heads]) for head in durations)
    told = text_of(rows[: len(view.rows)]).splitlines()
    assert all(len(re.findall(r"[\d.]+ m?s\b", line)) == len(durations) for line in told)


def test_the_column_of_the_chosen_limit_is_shown_and_crosses_are_never_out_of_sight(
    view: SaturationView,
) -> None:
    assert "TTFT p99" not in prices(view, 40)[1]
    view.knob = "ttft_p99_s"
    assert "TTFT p99" in prices(view, 40)[1]
    view.set(limits=Limits(ttft_p99_s=1e-3))
    view.knob = None
    assert "TTFT p99" in prices(view, 40)[1]
    narrow = text_of(price_lines(view, 20, 20)).splitlines()
    assert "TTFT" not in narrow[0]
    assert all(re.match(r"[▼ ] +([\d,]+|whole)✕", line) for line in narrow[1 : 1 + len(view.rows)])


def test_a_cross_that_the_margin_makes_says_so(view: SaturationView, computed: Computed) -> None:
    advised = view.advised
    assert advised is not None
    assert advised.longest_wait_s is not None
    margins = Margins(dict.fromkeys((row.options.chunk_tokens for row in view.rows), 0.2))
    limit_s = round(1.1 * advised.longest_wait_s, 4)
    assert "added" not in "\n".join(prices(view, 64))
    view.set(tried=replace(computed.advice, margins=margins), limits=Limits(itl_max_s=limit_s))
    view.selected = advised.options
    raised = duration(1.2 * advised.longest_wait_s)
    told = " ".join(" ".join(prices(view, 64)).split())
    assert "✕ breaks a limit, with up to 20 % added, as measured forwards miss the model" in told
    assert f"ITL max {raised} with a margin of 20 %, over {limit_words(limit_s)}" in told
    assert f"✕ ITL max {raised} (+20 %) over {limit_words(limit_s)}" in "\n".join(prices(view, 40))


def test_a_long_answer_takes_two_lines_and_what_is_cut_says_where_the_rest_is(
    view: SaturationView, computed: Computed
) -> None:
    view.board = replace(
        computed.board, report=replace(computed.board.report, found=Saturation("too_few_points", 0.95))
    )
    lines = text_of(compose_saturation(view, 120, 40)).splitlines()
    assert "By the cost model" in " ".join(lines[2:4])
    said = " ".join(" ".join(lines[2:4]).split())
    assert said.endswith("fill one forward.")
    assert "…" not in said
    view.set(limits=Limits(itl_max_s=1e-3))
    compact = text_of(compose_saturation(view, 80, 20))
    assert "… Enter: more" in compact
    full = " ".join(text_of(basis_page(view, 75)).split())
    assert said in full
    assert "Without limits it is" in full
