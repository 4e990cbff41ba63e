"""Plotly figures of the Saturation page, looked at as the JSON that the browser gets."""

import json
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import polars as pl
import pytest

from engine.batch import ForwardMode
from profiler.roofline import Roof, roofline_points, sample_by_mode
from profiler.saturation_report import SaturationReport, saturation_report
from tests.support.traces import MemoryTrace, forward, prefill_trace
from ui.palette import FILLS, THEMES, Theme
from ui.web.figures.roofline import DRAWN_PER_MODE, roofline_figure
from ui.web.figures.style import CONFIG, log_range, log_ticks, time_tick
from ui.web.figures.throughput import DRAWN_OTHERS, DRAWN_POINTS, throughput_figure
from ui.web.figures.throughput_marks import ChunkMark

MS = 1_000_000
SIZES = [8, 16, 32, 64, 128, 256, 512, 1024, 2048]
ROOF = Roof("float32", flops_per_s=1e11, bytes_per_s=1e10)
LIGHT = THEMES["light"]

themes = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)


def swept(sizes: list[int] = SIZES) -> MemoryTrace:
    return prefill_trace([(size, max(MS, size * 10_000) + 100 * i) for i in range(2) for size in sizes])


def reported(trace: MemoryTrace) -> SaturationReport:
    return saturation_report(trace, resamples=5)


@pytest.fixture(scope="module")
def report() -> SaturationReport:
    """Of nine sizes around a knee."""
    return reported(swept())


def plain(figure: go.Figure) -> dict[str, Any]:
    """The figure as JSON has it: no numpy, no NaN."""
    parsed: dict[str, Any] = json.loads(json.dumps(figure.to_plotly_json(), allow_nan=False))
    return parsed


def texts(figure: dict[str, Any]) -> str:
    return "\n".join(note["text"] for note in figure["layout"].get("annotations", []))


def drawn(figure: dict[str, Any]) -> int:
    return sum(len(trace["x"]) for trace in figure["data"])


def costly(forward_id: int, time_ns: int, mode: ForwardMode = ForwardMode.EXTEND) -> dict[str, Any]:
    flops = dict.fromkeys(
        ("flops_linear", "flops_attention_extend", "flops_attention_decode", "flops_head"), 10**6
    )
    sizes = dict.fromkeys(("bytes_weights", "bytes_kv_read", "bytes_kv_write", "bytes_activation"), 10**6)
    return forward(forward_id, 0, time_ns, mode, extend_tokens=8, decode_tokens=1, **flops, **sizes)


def sample(*forwards: dict[str, Any], roof: Roof | None = ROOF) -> pl.DataFrame:
    return sample_by_mode(roofline_points(MemoryTrace({"forwards": forwards}), roof), DRAWN_PER_MODE)


def test_no_figure_may_leave_the_machine() -> None:
    assert CONFIG["showSendToCloud"] is False
    assert CONFIG["displaylogo"] is False


@themes
def test_both_charts_hold_the_same_forwards_on_one_axis(theme: Theme, report: SaturationReport) -> None:
    figure = plain(throughput_figure(report, theme))
    dots = [trace for trace in figure["data"] if trace["mode"] == "markers" and len(trace["x"]) == 18]
    assert [trace["yaxis"] for trace in dots] == ["y", "y2"]
    assert sorted(dots[0]["x"]) == sorted(SIZES * 2)
    for x, rate, time_s in zip(dots[0]["x"], dots[0]["y"], dots[1]["y"], strict=True):
        assert rate * time_s == pytest.approx(x)
    assert dots[0]["x"] == dots[1]["x"]
    assert figure["layout"]["xaxis"]["type"] == figure["layout"]["yaxis2"]["type"] == "log"
    assert figure["layout"]["xaxis"]["ticktext"][-1] == "2,048"
    assert figure["layout"]["paper_bgcolor"] == "rgba(0,0,0,0)"
    assert figure["layout"]["font"]["color"] == theme.muted


@themes
def test_the_point_its_interval_and_the_line_it_reaches(theme: Theme, report: SaturationReport) -> None:
    found = report.found
    figure = plain(throughput_figure(report, theme))
    band, upright, best, share = figure["layout"]["shapes"]
    assert (band["x0"], band["x1"]) == (found.low, found.high)
    assert (upright["x0"], upright["yref"]) == (found.tokens, "paper")
    assert best["y0"] == report.best_tokens_per_s
    assert share["y0"] == pytest.approx(0.95 * best["y0"])
    assert f"saturation point {found.tokens}" in texts(figure)
    assert f"95 % interval {found.low}–{found.high}" in texts(figure)
    assert [trace["x"] for trace in figure["data"][-2:]] == [[found.tokens]] * 2
    lines = [trace for trace in figure["data"] if trace["mode"] == "lines"]
    assert {trace["line"]["color"] for trace in lines} == {FILLS["prefill"]}
    assert lines[0]["y"] == report.curve["tokens_per_s"].to_list()


def test_chunk_sizes_are_marked_across_both_charts(report: SaturationReport) -> None:
    figure = plain(throughput_figure(report, LIGHT, [ChunkMark(256, "chunk 256 in B")]))
    [mark] = [shape for shape in figure["layout"]["shapes"] if shape["x0"] == 256]
    assert (mark["yref"], mark["line"]["dash"]) == ("paper", "dash")
    assert "chunk 256 in B" in texts(figure)


def test_not_saturated_has_a_curve_and_no_point() -> None:
    figure = plain(throughput_figure(reported(prefill_trace([(s, MS) for s in SIZES])), LIGHT))
    assert "not saturated" in texts(figure)
    assert "saturation point" not in texts(figure)
    assert any(trace["mode"] == "lines" for trace in figure["data"])


def test_too_few_sizes_have_points_and_the_reason() -> None:
    figure = plain(throughput_figure(reported(swept([8, 16])), LIGHT))
    assert "no fit: 2 sizes of one prompt without a prefix, 8 sizes are needed" in texts(figure)
    assert all(trace["mode"] == "markers" for trace in figure["data"])
    assert "shapes" not in figure["layout"]


@themes
def test_nothing_to_draw_has_axes_and_the_reason(theme: Theme) -> None:
    for figure in (
        throughput_figure(reported(MemoryTrace({})), theme),
        roofline_figure(sample(), ROOF, theme),
    ):
        parsed = plain(figure)
        assert parsed["data"] == []
        assert texts(parsed).startswith("no forward with")


def test_other_forwards_are_faint() -> None:
    others = [
        forward(100 + i, 0, MS, ForwardMode.MIXED, num_extend_seqs=1, extend_tokens=9, decode_tokens=i)
        for i in range(3)
    ]
    report = reported(MemoryTrace({"forwards": [*swept().tables["forwards"], *others]}))
    faint = plain(throughput_figure(report, LIGHT))["data"][0]
    assert faint["x"] == [9, 10, 11]
    assert faint["marker"]["opacity"] < 1


def test_a_large_trace_ships_few_points() -> None:
    pure = prefill_trace([(1 + i % 3000, MS + i) for i in range(5000)]).tables["forwards"]
    others = [
        costly(10_000 + i, MS + i, mode) | {"num_extend_seqs": 2} for mode in ForwardMode for i in range(900)
    ]
    trace = MemoryTrace({"forwards": [*pure, *others]})
    report = reported(trace)
    upper = plain(throughput_figure(report, LIGHT))
    lower = plain(roofline_figure(sample(*others), ROOF, LIGHT))
    assert drawn(upper) <= 2 * (DRAWN_POINTS + DRAWN_OTHERS + report.curve.height + 1)
    assert drawn(lower) <= 3 * DRAWN_PER_MODE + 3 + 3 * DRAWN_PER_MODE // 4
    assert drawn(upper) + drawn(lower) < 3000
    assert not {trace["type"] for trace in (*upper["data"], *lower["data"])} - {"scatter"}


@themes
def test_the_roof_bends_at_the_ridge(theme: Theme) -> None:
    figure = plain(roofline_figure(sample(costly(0, MS), costly(1, MS, ForwardMode.DECODE)), ROOF, theme))
    roof, prefill, decode = figure["data"]
    assert roof["x"][1] == ROOF.ridge
    assert roof["y"] == pytest.approx([roof["x"][0] * 1e10, 1e11, 1e11])
    assert (prefill["marker"]["symbol"], prefill["marker"]["color"]) == ("square", FILLS["prefill"])
    assert (decode["marker"]["symbol"], decode["marker"]["color"]) == ("circle", FILLS["decode"])
    assert (prefill["x"], prefill["y"]) == ([1.0], [4e9])
    assert "fp32 100 GFLOP/s" in texts(figure)


def test_the_slope_says_whether_its_rate_was_measured() -> None:
    forwards = sample(costly(0, MS), costly(1, MS, ForwardMode.DECODE))
    assert "copy 10.0 GB/s" in texts(plain(roofline_figure(forwards, ROOF, LIGHT)))
    data_sheet = replace(ROOF, traffic="memory")
    drawn_texts = texts(plain(roofline_figure(forwards, data_sheet, LIGHT)))
    assert "memory 10.0 GB/s" in drawn_texts
    assert "copy" not in drawn_texts


def test_points_above_the_roof_wear_a_ring() -> None:
    figure = plain(roofline_figure(sample(costly(0, MS), costly(1, 10_000)), ROOF, LIGHT))
    ring = figure["data"][-1]
    assert (ring["x"], ring["y"]) == ([1.0], [4e11])
    assert ring["marker"]["symbol"] == "circle-open"


def test_without_a_roof_the_points_stand_alone() -> None:
    figure = plain(roofline_figure(sample(costly(0, MS), roof=None), None, LIGHT))
    assert len(figure["data"]) == 1
    assert texts(figure) == ""
    assert "– of the roof" in figure["data"][0]["hovertemplate"].replace("%{customdata[5]}", "–")


def test_log_axes_have_few_round_ticks() -> None:
    assert log_ticks(log_range([1.0, 100.0])) == [1, 2, 5, 10, 20, 50, 100]
    assert log_ticks([0, 3]) == [1, 3, 10, 30, 100, 300, 1000]
    assert log_ticks([0, 5]) == [1, 10, 100, 1e3, 1e4, 1e5]
    assert [time_tick(value) for value in (0.0005, 0.05, 2.0)] == ["0.5 ms", "50 ms", "2 s"]


@pytest.mark.parametrize("size", [1, 7])
def test_one_size_alone_still_has_a_range(size: int) -> None:
    figure = plain(throughput_figure(reported(prefill_trace([(size, MS)])), LIGHT))
    low, high = figure["layout"]["xaxis"]["range"]
    assert low < high
