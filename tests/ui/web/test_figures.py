"""Plotly figures of the Saturation page, looked at as the JSON that the browser gets."""

import json
from dataclasses import asdict, replace
from typing import Any

import plotly.graph_objects as go
import polars as pl
import pytest

from engine.batch import ForwardMode
from profiler.memory import memory_model
from profiler.memory_fit import measured_activations
from profiler.prefix_curve import PrefixCurve
from profiler.roofline import Roof, roofline_points, sample_by_mode
from profiler.roofline_choice import Roofs, SourcedRoof
from profiler.saturation_board import DRAWN_PER_MODE
from profiler.saturation_report import SaturationReport, decode_report, saturation_report
from tests.support.recorded import TINY
from tests.support.traces import MemoryTrace, forward, prefill_trace
from ui.palette import FILLS, THEMES, Theme
from ui.web.figures.decodes import decodes_figure
from ui.web.figures.memory import memory_figure
from ui.web.figures.residuals import residuals_figure
from ui.web.figures.roofline import roofline_figure
from ui.web.figures.style import CONFIG, log_range, log_ticks, size_ticks, time_tick
from ui.web.figures.throughput import DRAWN_OTHERS, DRAWN_POINTS, ModelCurves, overlay, throughput_figure
from ui.web.figures.throughput_marks import ChunkMark, Marks

MS = 1_000_000
SIZES = [8, 16, 32, 64, 128, 256, 512, 1024, 2048]
ROOF = Roof("float32", flops_per_s=1e11, bytes_per_s=1e10)
ROOFS = Roofs(SourcedRoof(ROOF, "measured", "CPU, 2 threads", date="2026-11-30"))
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
    band, upright, best, share, plateau = figure["layout"]["shapes"]
    assert (band["x0"], band["x1"]) == (found.low, found.high)
    assert (upright["x0"], upright["yref"]) == (found.tokens, "paper")
    assert best["y0"] == report.best_tokens_per_s
    assert share["y0"] == pytest.approx(0.95 * best["y0"])
    assert found.plateau is not None
    assert (plateau["y0"], plateau["y1"]) == (found.plateau.low, found.plateau.high)
    assert f"saturation point {found.tokens}" in texts(figure)
    assert f"95 % interval {found.low}–{found.high}" in texts(figure)
    assert [trace["x"] for trace in figure["data"][-2:]] == [[found.tokens]] * 2
    lines = [trace for trace in figure["data"] if trace["mode"] == "lines"]
    assert {trace["line"]["color"] for trace in lines} == {FILLS["prefill"]}
    assert lines[0]["y"] == report.curve["tokens_per_s"].to_list()


def test_chunk_sizes_are_marked_across_both_charts(report: SaturationReport) -> None:
    figure = plain(throughput_figure(report, LIGHT, Marks([ChunkMark(256, "chunk 256 in B")])))
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
        roofline_figure(sample(), ROOFS, theme),
    ):
        parsed = plain(figure)
        assert parsed["data"] == []
        assert texts(parsed).startswith("no ")


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
    lower = plain(roofline_figure(sample(*others), ROOFS, LIGHT))
    assert drawn(upper) <= 2 * (DRAWN_POINTS + DRAWN_OTHERS + report.curve.height + 1)
    assert drawn(lower) <= 3 * DRAWN_PER_MODE + 3 + 3 * DRAWN_PER_MODE // 4
    assert drawn(upper) + drawn(lower) < 3000
    assert not {trace["type"] for trace in (*upper["data"], *lower["data"])} - {"scatter"}


@themes
def test_the_roof_bends_at_the_ridge(theme: Theme) -> None:
    figure = plain(roofline_figure(sample(costly(0, MS), costly(1, MS, ForwardMode.DECODE)), ROOFS, theme))
    roof, prefill, decode = figure["data"]
    assert roof["x"][1] == ROOF.ridge
    assert roof["y"] == pytest.approx([roof["x"][0] * 1e10, 1e11, 1e11])
    assert (prefill["marker"]["symbol"], prefill["marker"]["color"]) == ("square", FILLS["prefill"])
    assert (decode["marker"]["symbol"], decode["marker"]["color"]) == ("circle", FILLS["decode"])
    assert (prefill["x"], prefill["y"]) == ([1.0], [4e9])
    assert "fp32 100 GFLOP/s" in texts(figure)


def test_the_slope_says_whether_its_rate_was_measured() -> None:
    forwards = sample(costly(0, MS), costly(1, MS, ForwardMode.DECODE))
    assert "copy 10.0 GB/s" in texts(plain(roofline_figure(forwards, ROOFS, LIGHT)))
    data_sheet = Roofs(SourcedRoof(replace(ROOF, traffic="memory"), "data sheet", "X1"))
    drawn_texts = texts(plain(roofline_figure(forwards, data_sheet, LIGHT)))
    assert "memory 10.0 GB/s" in drawn_texts
    assert "</b>, data sheet" in drawn_texts
    assert "copy" not in drawn_texts


def test_the_other_roof_is_dashed_and_named() -> None:
    sheet = SourcedRoof(replace(ROOF, flops_per_s=2e11), "data sheet", "X1")
    both = replace(ROOFS, others=(sheet,))
    figure = plain(roofline_figure(sample(costly(0, MS)), both, LIGHT))
    assert [trace["line"].get("dash") for trace in figure["data"][:2]] == ["dash", None]
    assert "fp32 100 GFLOP/s</b>, measured" in texts(figure)
    assert "data sheet 200 GFLOP/s" in texts(figure)


def test_points_above_the_roof_wear_a_ring() -> None:
    figure = plain(roofline_figure(sample(costly(0, MS), costly(1, 10_000)), ROOFS, LIGHT))
    ring = figure["data"][-1]
    assert (ring["x"], ring["y"]) == ([1.0], [4e11])
    assert ring["marker"]["symbol"] == "circle-open"


def test_without_a_roof_the_points_stand_alone() -> None:
    figure = plain(roofline_figure(sample(costly(0, MS), roof=None), Roofs(None), LIGHT))
    assert len(figure["data"]) == 1
    assert texts(figure) == ""
    assert "– of the roof" in figure["data"][0]["hovertemplate"].replace("%{customdata[5]}", "–")


def test_operators_have_a_shape_each_and_the_colour_of_their_mode() -> None:
    points = sample(costly(0, MS), costly(1, MS, ForwardMode.DECODE))
    points = points.with_columns(operator=pl.Series(["QKV", "O"]))
    _, qkv, o = plain(roofline_figure(points, ROOFS, LIGHT))["data"]
    assert (qkv["marker"]["symbol"], qkv["marker"]["color"]) == ("square", FILLS["prefill"])
    assert (o["marker"]["symbol"], o["marker"]["color"]) == ("circle", FILLS["decode"])
    assert "QKV, prefill forward" in qkv["hovertemplate"]


def test_the_recommended_chunk_and_the_limit_are_drawn_over_both_charts(report: SaturationReport) -> None:
    marks = Marks([ChunkMark(256, "chunk 256 in B")], recommended=512, limit_s=0.02)
    parts = overlay(report, LIGHT, marks)
    [chosen] = [shape for shape in parts["shapes"] if shape["x0"] == 512]
    assert chosen["line"]["color"] == LIGHT.decode_text
    [limit] = [shape for shape in parts["shapes"] if shape["y0"] == 0.02]
    assert limit["yref"] == "y2"
    told = "\n".join(note["text"] for note in parts["annotations"])
    assert "▼ recommended chunk 512" in told
    assert "longest wait you accept 20.0 ms" in told
    same = overlay(report, LIGHT, replace(marks, recommended=256))
    assert "▼ recommended chunk 256</b>, chunk 256 in B" in "\n".join(n["text"] for n in same["annotations"])


def note(parts: dict[str, Any], words: str) -> dict[str, Any]:
    """The one label with those words."""
    [found] = [note for note in parts["annotations"] if words in note["text"]]
    return found


def test_a_label_at_the_left_leaves_the_title_its_row(report: SaturationReport) -> None:
    marks = Marks([ChunkMark(1024, "chunk 1,024 in B")], recommended=8)
    assert note(overlay(report, LIGHT, marks), "recommended")["yshift"] == 17
    beside = replace(marks, chunks=[ChunkMark(16, "chunk 16 in B")])
    assert note(overlay(report, LIGHT, beside), "chunk 16")["yshift"] == 17
    assert note(overlay(report, LIGHT, beside), "recommended")["yshift"] == 34
    assert note(overlay(report, LIGHT, replace(marks, recommended=1024)), "recommended")["yshift"] == 0


def test_labels_stand_where_rising_curves_leave_room(report: SaturationReport) -> None:
    behind = ModelCurves(None, PrefixCurve(4096, (1, 8, 64), (0.1, 0.2, 0.4)))

    def ends(limit_s: float | None) -> list[str]:
        parts = overlay(report, LIGHT, Marks(limit_s=limit_s), behind)
        words = ["behind a prefix", *([] if limit_s is None else ["longest wait"])]
        return [note(parts, each)["xanchor"] for each in words]

    assert ends(None) == ["right"]
    assert ends(10.0) == ["right", "left"]  # longer than any forward: above the low end of the curve
    assert ends(1e-4) == ["left", "right"]
    few = plain(throughput_figure(reported(swept([8, 16])), LIGHT))["layout"]
    assert note(few, "no fit")["yanchor"] == "bottom"


def test_memory_bound_is_said_inside_the_chart() -> None:
    sizes = [2**i for i in range(3, 15)]
    steep = reported(prefill_trace([(size, max(MS, size * 1000) + i) for i in range(2) for size in sizes]))
    said = note(overlay(steep, LIGHT, Marks(ridge_tokens=1000.0)), "memory bound")
    assert (said["xref"], said["xanchor"], said["x"]) == ("x domain", "left", 0.02)


def test_a_ridge_parts_what_is_memory_bound_from_what_is_compute_bound(report: SaturationReport) -> None:
    told = texts(plain(throughput_figure(report, LIGHT, Marks(ridge_tokens=100.4))))
    assert "ridge 100 tokens" in told
    assert "<b>compute bound:</b>" in told
    beyond = texts(plain(throughput_figure(report, LIGHT, Marks(ridge_tokens=1e6))))
    assert "ridge" not in beyond
    assert "<b>full:</b>" in beyond


def test_dips_are_marked_and_kept() -> None:
    sizes = [2**i for i in range(3, 14)]
    curved = [(size, round(1e6 * (1 + size / 100) * (1.25 if size == 512 else 1))) for size in sizes]
    report = reported(prefill_trace(curved * 3))
    assert [(dip.first, dip.last) for dip in report.found.dips] == [(512, 512)]
    figure = plain(throughput_figure(report, LIGHT))
    [dips] = [trace for trace in figure["data"] if trace.get("marker", {}).get("symbol") == "triangle-down"]
    assert dips["x"] == [512]
    assert "▲ dip at 512, 20 %" in texts(figure)
    residuals = plain(residuals_figure(report, LIGHT))["data"][0]
    assert residuals["marker"]["symbol"].count("triangle-down") == 1
    assert residuals["x"] == sizes
    assert residuals["y"][sizes.index(512)] == pytest.approx(-20, abs=3)


def test_the_models_curves_are_dashed_and_stand_in_for_a_fit(report: SaturationReport) -> None:
    plain_curve, behind = (PrefixCurve(prefix, (1, 8, 64), (0.1, 0.2, 0.4)) for prefix in (0, 4096))
    figure = plain(throughput_figure(report, LIGHT, model=ModelCurves(plain_curve, behind)))
    dashes = [trace["line"].get("dash") for trace in figure["data"] if trace["mode"] == "lines"]
    assert dashes == ["dash", "dash", None, None]
    assert "behind a prefix of 4,096 tokens" in texts(figure)
    alone = reported(swept([8, 16]))
    marks = Marks(modelled=True)
    figure = plain(throughput_figure(alone, LIGHT, marks, ModelCurves(plain_curve, None)))
    [rates, times] = [trace for trace in figure["data"] if trace["mode"] == "lines"]
    assert (rates["line"]["dash"], rates["y"]) == ("dot", [10, 40, 160])
    assert times["y"] == [0.1, 0.2, 0.4]
    assert "dotted: the model of all forwards" in texts(figure)


@themes
def test_decode_batches_have_points_a_fit_and_a_point(theme: Theme) -> None:
    forwards = [
        forward(i, 0, max(MS, rows * 20_000), decode_tokens=rows, num_decode_seqs=rows, kv_tokens=rows * 9)
        for i, rows in enumerate([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048] * 2)
    ]
    report = decode_report(MemoryTrace({"forwards": forwards}), resamples=5)
    figure = plain(decodes_figure(report, theme, ""))
    assert {trace["mode"] for trace in figure["data"]} == {"markers", "lines"}
    assert f"{report.found.tokens:,} rows" in texts(figure)
    assert texts(plain(decodes_figure(None, theme, "none here"))) == "none here"


def test_memory_has_a_line_and_what_was_measured() -> None:
    nothing = measured_activations(MemoryTrace({}))
    assert texts(plain(memory_figure(None, nothing, 64, LIGHT, "no model"))) == "no model"
    measured = [
        forward(i, 0, MS, ForwardMode.EXTEND, extend_tokens=size, decode_tokens=0, prefix_tokens=0)
        | {
            "memory_allocated_bytes": 5,
            "memory_peak_bytes": 5 + size * 4096,
            "activation_est_bytes": size * 2048,
        }
        for i, size in enumerate([8, 64, 512])
    ]
    trace = MemoryTrace(
        {"forwards": measured}, {"model": {**asdict(TINY), "dtype": "float32"}, "provenance": "measured"}
    )
    figure = plain(memory_figure(memory_model(trace), measured_activations(trace), 1024, LIGHT, ""))
    dots, line = figure["data"]
    assert (dots["x"], dots["y"]) == ([8, 64, 512], [8 * 4096, 64 * 4096, 512 * 4096])
    assert line["x"][-1] == 1024
    assert line["y"] == sorted(line["y"])


def test_sizes_between_two_powers_of_two_are_their_own_ticks() -> None:
    assert size_ticks(log_range([5, 7]), [7, 5, 7, 6])["ticktext"] == ["5", "6", "7"]
    assert size_ticks(log_range([5, 70]), [5, 70])["tickvals"] == [8, 16, 32, 64]
    assert len(size_ticks(log_range([1025, 2047]), range(1025, 2047))["tickvals"]) <= 8


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
