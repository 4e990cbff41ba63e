"""The chunk size against the saturation point."""

from dataclasses import asdict
from typing import Any

import pytest

from engine.batch import StopReason
from engine.config import CHUNKING_OFF
from profiler.cost_table import cost_table
from profiler.findings import Finding, FindingKind, Severity, Thresholds
from profiler.findings.size_point import point_of_cost
from profiler.saturation_report import SaturationReport, saturation_report
from tests.profiler.findings.hand_made import MS, decode, found, made, prefill
from tests.support.fitted_runs import HARDWARE
from tests.support.shapes import LLAMA_8B
from tests.support.traces import MemoryTrace, prefill_trace, request

KIND = FindingKind.CHUNK_SIZE
SIZES = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)


@pytest.fixture(scope="module")
def swept() -> SaturationReport:
    """Forwards that take 1 ms up to 100 tokens and 10 µs a token from there on."""
    return saturation_report(prefill_trace([(size, max(MS, 10_000 * size)) for size in SIZES]))


@pytest.fixture
def point(swept: SaturationReport) -> int:
    assert swept.found.tokens is not None
    return swept.found.tokens


def cut(chunk: int, *, decodes: int = 2) -> MemoryTrace:
    """A prompt of three chunks beside so many decodes."""
    forwards = [
        prefill(i, 10 * i, 10 * i + 5, chunk, absent_decode_reqs=decodes, chunked_rid=7 if i < 2 else None)
        for i in range(3)
    ]
    return made([*forwards, decode(3, 30, 31)], {"engine": {"chunked_prefill_size": chunk}})


def of(chunk: int, report: SaturationReport, limits: Thresholds | None = None, **more: Any) -> Finding | None:
    return found(cut(chunk, **more), KIND, limits, saturation=report)


def test_a_chunk_that_reaches_the_plateau_is_fine(swept: SaturationReport, point: int) -> None:
    finding = of(128, swept)
    assert finding is not None
    assert finding.severity is Severity.FINE
    assert finding.title == "Chunk size is near its best"
    assert (
        finding.sentence
        == f"Chunks of 128 tokens reach 100 % of the plateau; the saturation point is {point}."
    )
    assert f"interval [{swept.found.low}, {swept.found.high}] tokens" in finding.evidence
    assert "one prompt a forward, no prefix" in finding.evidence
    assert finding.mend is None
    assert finding.lost_ns is None


def test_a_chunk_far_below_gives_throughput_up(swept: SaturationReport, point: int) -> None:
    finding = of(50, swept)
    assert finding is not None
    assert finding.severity is Severity.WATCH
    assert finding.title == "Chunk size far below saturation"
    share = finding.numbers["plateau_share"]
    assert share == pytest.approx(0.5, abs=0.02)
    assert finding.lost_ns == pytest.approx((1 - 0.5) * 2 * 15 * MS, rel=0.05)
    assert finding.option == ("--chunked-prefill-size", str(point), "--enable-mixed-chunk")


def test_a_chunk_far_above_makes_decodes_wait_for_nothing(swept: SaturationReport, point: int) -> None:
    finding = of(1024, swept)
    assert finding is not None
    assert finding.title == "Chunk size far above saturation"
    assert finding.sentence.startswith(
        f"Prefill forwards take up to 1,024 tokens and 5.0 ms; {point} reach 95 %"
    )
    assert finding.threshold == ("chunk_excess", 8.0)
    assert finding.mend is not None
    assert "alone does not shorten" in finding.mend


def test_above_is_fine_where_no_decode_is_beside(swept: SaturationReport) -> None:
    finding = of(1024, swept, decodes=0)
    assert finding is not None
    assert finding.severity is Severity.FINE


@pytest.mark.parametrize(
    ("chunk", "limits"), [(50, Thresholds(chunk_share=0.4)), (1024, Thresholds(chunk_excess=20))]
)
def test_thresholds_can_be_set(chunk: int, limits: Thresholds, swept: SaturationReport) -> None:
    finding = of(chunk, swept, limits)
    assert finding is not None
    assert finding.severity is Severity.FINE


def test_a_chunk_that_cut_nothing_is_not_judged(swept: SaturationReport) -> None:
    forwards = [prefill(0, 0, 5, 30), decode(1, 5, 6)]
    trace = made(forwards, {"engine": {"chunked_prefill_size": 50}})
    assert found(trace, KIND, saturation=swept) is None


def test_a_budget_that_stopped_admission_is_judged(swept: SaturationReport) -> None:
    forwards = [prefill(0, 0, 5, 50, stop_reason=StopReason.CHUNK.value), decode(1, 5, 6)]
    trace = made(forwards, {"engine": {"chunked_prefill_size": 50}})
    assert found(trace, KIND, saturation=swept) is not None


def test_whole_prompts_are_judged_by_the_largest_forward(swept: SaturationReport) -> None:
    forwards = [prefill(0, 0, 5, 5000), decode(1, 5, 6)]
    whole = {"engine": {"chunked_prefill_size": CHUNKING_OFF}}
    finding = found(made(forwards, whole), KIND, saturation=swept)
    assert finding is not None
    assert finding.title == "Prefill forwards far above saturation"
    assert found(made([prefill(0, 0, 5, 200), decode(1, 5, 6)], whole), KIND, saturation=swept) is None


def test_below_all_measured_sizes_nothing_is_claimed(swept: SaturationReport) -> None:
    assert of(8, swept) is None


def test_without_a_point_nothing_is_claimed() -> None:
    assert found(cut(50), KIND) is None
    rising = saturation_report(prefill_trace([(size, MS) for size in SIZES]))
    assert rising.found.status == "not_saturated"
    assert of(50, rising) is None


def test_the_options_of_an_unnamed_engine_are_not_guessed(swept: SaturationReport) -> None:
    trace = made(cut(50).tables["forwards"], {})
    assert found(trace, KIND, saturation=swept) is None


def simulated(**change: Any) -> MemoryTrace:
    meta = {
        "provenance": "simulated",
        "model": {**asdict(LLAMA_8B), "dtype": "bfloat16"},
        "hardware": HARDWARE,
        "cost_model": {"kind": "roofline", **cost_table(), "gemm_profile": None},
        "engine": {"chunked_prefill_size": 2048},
        **change,
    }
    return made(cut(2048).tables["forwards"], meta, requests=[request(7, prompt_tokens=6144)])


def test_a_simulated_run_is_judged_by_its_own_cost_model() -> None:
    finding = found(simulated(), KIND)
    assert finding is not None
    assert "by the run's cost model" in finding.evidence
    assert finding.severity is Severity.FINE
    point = point_of_cost(simulated())
    assert point is not None
    assert 300 < point.tokens < 600
    assert point.share(point.tokens) == pytest.approx(0.95, abs=0.01)
    assert point.share(6144) == 1.0


@pytest.mark.parametrize(
    "change",
    [{"provenance": "measured"}, {"cost_model": None}, {"cost_model": {"kind": "roofline"}}, {"model": None}],
)
def test_no_cost_model_is_made_up(change: dict[str, Any]) -> None:
    assert point_of_cost(simulated(**change)) is None
