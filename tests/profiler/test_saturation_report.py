"""What a saturation point rests on, and the words for it."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from engine.batch import ForwardMode
from profiler.points import decode_points
from profiler.saturation import Saturation, fit_saturation, saturation, saturation_of
from profiler.saturation_report import SaturationReport, decode_report, saturation_report
from profiler.saturation_words import answer, basis, price, sweep_command
from tests.support.traces import MemoryTrace, forward, prefill_trace

MS = 1_000_000
SIZES = [8, 16, 32, 64, 128, 256, 512, 1024, 2048]


def knee(tokens: int) -> int:
    """1 ms up to 100 tokens, 10 µs a token above."""
    return max(MS, tokens * 10_000)


def swept(sizes: list[int] = SIZES, repeats: int = 2) -> MemoryTrace:
    return prefill_trace([(size, knee(size) + 100 * i) for i in range(repeats) for size in sizes])


def reported(trace: MemoryTrace) -> SaturationReport:
    return saturation_report(trace, resamples=5)


@pytest.fixture(scope="module")
def report() -> SaturationReport:
    """Of nine sizes around a knee."""
    return reported(swept())


@pytest.fixture(scope="module")
def rising() -> SaturationReport:
    """Of forwards that all take the same time."""
    return reported(prefill_trace([(size, MS) for size in SIZES]))


def test_the_point_is_that_of_the_summary() -> None:
    assert saturation_report(swept([8, 16])).found == saturation(swept([8, 16]))


def test_the_point_is_that_of_its_points(report: SaturationReport) -> None:
    tokens, times_s = report.points["tokens"].to_numpy(), report.points["time_ns"].to_numpy() / 1e9
    assert report.found == fit_saturation(tokens, times_s, resamples=5)
    assert report.found.status == "ok"


def test_each_size_has_its_spread_and_its_share_of_the_best_fit(report: SaturationReport) -> None:
    assert report.sizes["tokens"].to_list() == SIZES
    assert report.sizes["forwards"].to_list() == [2] * 9
    first = report.sizes.row(0, named=True)
    assert (first["low_ns"], first["time_ns"], first["high_ns"]) == (MS, MS + 50, MS + 100)
    assert first["tokens_per_s"] == pytest.approx(8000, rel=1e-3)
    assert report.sizes["share"].max() == pytest.approx(1, abs=1e-3)
    assert report.best_tokens_per_s == pytest.approx(1e5, rel=0.02)
    assert report.residual is not None
    assert report.residual < 0.02


def test_the_curve_spans_the_measured_range_and_is_the_fit(report: SaturationReport) -> None:
    curve = report.curve
    assert (curve["tokens"][0], curve["tokens"][-1]) == (pytest.approx(8), pytest.approx(2048))
    assert curve["tokens"].is_sorted()
    assert report.found.curve is not None
    rates = report.found.curve.throughput(curve["tokens"].to_numpy())
    assert curve["tokens_per_s"].to_numpy() == pytest.approx(rates)
    assert curve["time_ns"].to_numpy() == pytest.approx(curve["tokens"].to_numpy() / rates * 1e9)


def test_the_fit_at_a_size_is_known_inside_of_the_range_only(report: SaturationReport) -> None:
    fit = report.fitted(1000)
    assert fit is not None
    assert fit.time_s == pytest.approx(0.01, rel=0.03)
    assert fit.share == pytest.approx(1, abs=0.02)
    assert [report.fitted(size) for size in (7, 2049)] == [None, None]


def test_too_few_sizes_have_points_and_no_fit() -> None:
    report = reported(swept([8, 16]))
    assert report.found.status == "too_few_points"
    assert (report.points.height, report.sizes.height, report.curve.height) == (4, 2, 0)
    assert (report.best_tokens_per_s, report.residual, report.fitted(8)) == (None, None, None)
    assert report.sizes["share"].to_list() == [None, None]


@pytest.mark.parametrize("forwards", [[], [forward(0, 0, 5)]])
def test_a_trace_without_prefill_has_nothing(forwards: list[dict[str, Any]]) -> None:
    report = saturation_report(MemoryTrace({"forwards": forwards}))
    assert (report.points.height, report.others.height, report.sizes.height) == (0, 0, 0)
    assert answer(report) == "No saturation point: no forward here computes one prompt without a prefix."
    assert sweep_command(report, "M") == "chunkscope sweep --model M -o sweep.chunkscope"
    assert basis(report) == [("layout", "one prompt a forward, no prefix")]


def test_other_forwards_with_prompt_tokens_are_kept_apart() -> None:
    pure = swept([8]).tables["forwards"]
    others = [
        forward(10, 0, 9, ForwardMode.MIXED, num_extend_seqs=1, extend_tokens=5, decode_tokens=2),
        forward(11, 0, 9, ForwardMode.EXTEND, num_extend_seqs=2, extend_tokens=7, prefix_tokens=0),
        forward(12, 0, 9, ForwardMode.EXTEND, num_extend_seqs=1, extend_tokens=7, prefix_tokens=64),
        forward(13, 0, 9, ForwardMode.DECODE, num_extend_seqs=0, extend_tokens=0, decode_tokens=3),
        forward(14, 0, None, ForwardMode.EXTEND, num_extend_seqs=2, extend_tokens=7),  # type: ignore[arg-type]
    ]
    report = saturation_report(MemoryTrace({"forwards": [*pure, *others]}))
    assert report.points["forward_id"].to_list() == [0, 1]
    assert report.others["forward_id"].to_list() == [10, 11, 12]
    assert report.others["tokens"].to_list() == [7, 7, 7]
    assert report.points.schema == report.others.schema


def test_the_answer_says_what_a_chunk_below_the_point_gives_up(report: SaturationReport) -> None:
    tokens = report.found.tokens
    assert answer(report) == f"About {tokens} tokens fill one forward. It then takes 1.0 ms."
    said = answer(report, [32, 1024, 4096])
    assert "A chunk of 32 gives up 68 % and takes 1.0 ms." in said
    assert "4,096" not in said
    assert sweep_command(report, "M") is None


def test_a_chunk_that_reaches_the_point_gives_up_nothing(report: SaturationReport) -> None:
    """Also where a larger forward without a prefix has less throughput: the prompt's pairs stay as many."""
    point = report.found.tokens
    assert point is not None
    said = answer(report, [point, 1024])
    assert said == (
        f"About {point} tokens fill one forward. A chunk of {point} takes 1.0 ms. "
        "A chunk of 1,024 is beyond it and takes 10.2 ms."
    )
    falling = falls()
    assert falling.found.tokens is not None
    assert falling.found.tokens < 2048
    assert "A chunk of 2,048 is beyond it and takes 2.7" in answer(falling, [2048])
    assert "gives up" not in answer(falling, [2048])


def test_the_price_names_interval_and_largest_forward(report: SaturationReport) -> None:
    found = report.found
    assert f"{found.tokens} tokens [{found.low}, {found.high}]" in price(report)
    larger = (
        "One forward of 2,048 tokens without a prefix has 4 % more throughput and takes 20.5 ms instead of"
    )
    assert larger in price(report)


def falls() -> SaturationReport:
    """Of sizes whose throughput falls again beyond 256 tokens."""
    rates = [150, 230, 340, 480, 640, 860, 800, 770, 745]
    times = [(size, int(size / rate * 1e9)) for size, rate in zip(SIZES, rates, strict=True)]
    return reported(prefill_trace(times))


def test_a_larger_forward_can_have_less() -> None:
    assert " % less throughput and takes 2.7" in price(falls())


def test_not_saturated_and_too_few_say_what_to_do(rising: SaturationReport) -> None:
    assert answer(rising) == "Up to 2,048 tokens, forwards do not saturate: throughput still rises."
    assert sweep_command(rising, "'a b'") == (
        "chunkscope sweep --model 'a b' --tokens 8:8192 -o sweep.chunkscope"
    )
    few = saturation_report(swept([8, 16]))
    assert answer(few) == "No saturation point: 2 sizes of forwards, 8 are needed."


def test_of_a_simulated_trace_a_simulated_sweep_is_advised(
    report: SaturationReport, rising: SaturationReport
) -> None:
    assert price(rising, simulated=True) == "A simulated sweep of larger forwards would tell."
    assert price(saturation_report(swept([8, 16])), simulated=True) == "A simulated sweep measures them."
    assert price(report, simulated=True) == price(report)
    assert sweep_command(rising, "M", "--executor simulated --gpu 'H200 SXM'") == (
        "chunkscope sweep --model M --executor simulated --gpu 'H200 SXM' --tokens 8:8192 -o sweep.chunkscope"
    )


def test_one_size_is_one() -> None:
    few = saturation_report(swept([2048]))
    assert answer(few) == "No saturation point: 1 size of forwards, 8 are needed."
    assert dict(basis(few))["points"] == "1 size × 2, 2,048 tokens"


def test_the_basis_names_fit_points_and_what_is_not_covered(report: SaturationReport) -> None:
    lines = dict(basis(report))
    assert lines["points"] == "9 sizes × 2, 8 to 2,048 tokens"
    assert lines["fit"].startswith("parametric: ")
    assert "residual" in lines["fit"]
    assert lines["raw"] == "first size at the line 128, last below it 64"
    assert lines["plateau"].startswith("100,")
    assert "dips" not in lines
    assert lines["not covered"] == "more than 2,048 tokens; prefixes; batches"


def test_the_curve_of_a_smoother_is_drawn_too() -> None:
    times = [(size, knee(size) * (2 if size >= 512 else 1)) for size in SIZES]
    report = reported(prefill_trace(times))
    assert report.found.fit_kind == "smoother"
    assert np.all(report.curve["tokens_per_s"].to_numpy() > 0)
    assert "smoother" in dict(basis(report))["fit"]


def test_a_slow_size_is_a_dip_and_keeps_its_residual() -> None:
    """It is among the sizes, told in the basis, and the point stays where it was."""
    times = [
        (size, knee(size) * (5 if size == 1024 else 4) // 4 + 100 * i) for i in range(2) for size in SIZES
    ]
    report, plain = reported(prefill_trace(times)), reported(swept())
    assert report.found.fit_kind == "parametric"
    assert report.found.tokens == pytest.approx(plain.found.tokens, rel=0.02)
    (dip,) = report.found.dips
    assert (dip.first, dip.last, dip.depth) == (1024, 1024, pytest.approx(0.2, abs=0.02))
    assert report.sizes.filter(pl.col("in_dip"))["tokens"].to_list() == [1024]
    residuals = dict(report.sizes.select("tokens", "residual").iter_rows())
    assert residuals[1024] == pytest.approx(-0.2, abs=0.02)
    assert residuals[512] == pytest.approx(0, abs=0.02)
    told = "at 1,024 tokens, by up to 20 %: kept, do not move the point"
    assert dict(basis(report))["dips"] == told


def test_neighbouring_slow_sizes_are_one_dip() -> None:
    sizes = [*SIZES, 700, 800, 900]
    times = [(size, knee(size) * (5 if 700 <= size <= 800 else 4) // 4) for size in sizes]
    (dip,) = reported(prefill_trace(times)).found.dips
    assert (dip.first, dip.last) == (700, 800)


def test_decode_rows_have_a_report_of_their_own() -> None:
    """Up to 32 rows take 1 ms, and each further one 1/32 ms; other contexts are the others."""
    rows = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256]
    table = [
        forward(i, 0, MS * max(n, 32) // 32, decode_tokens=n, kv_tokens=600 * n) for i, n in enumerate(rows)
    ]
    table += [forward(50, 0, MS, decode_tokens=4, kv_tokens=4400)]
    report = decode_report(MemoryTrace({"forwards": table}), resamples=5)
    assert report.found.layout == "decode rows alone, context of 600 tokens"
    assert report.found.status == "ok"
    assert report.found.tokens == pytest.approx(31, abs=2)
    assert report.found == decode_saturation_of(table)
    assert (report.points.height, report.others["forward_id"].to_list()) == (13, [50])
    assert decode_report(MemoryTrace({})).points.is_empty()


def decode_saturation_of(table: list[dict[str, Any]]) -> Saturation:
    return saturation_of(decode_points(MemoryTrace({"forwards": table})), resamples=5)
