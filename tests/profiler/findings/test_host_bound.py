"""Host-bound decode."""

from typing import Any

import pytest

from profiler.findings import FindingKind, Thresholds
from profiler.ledger.stall_report import stall_report
from tests.profiler.findings.hand_made import MS, decode, found, made, prefill
from tests.support.traces import decode_row
from traces.schema import enum_code

KIND = FindingKind.HOST_BOUND_DECODE
ON_GPU = {"hardware": {"device": "cuda"}, "engine": {"disable_overlap_schedule": False}}


def paced(pause_ms: float, number: int = 9, rows: int = 2, **more: Any) -> list[dict[str, Any]]:
    """Decode forwards of 3 ms with a pause before each."""
    step = 3 + pause_ms
    return [decode(i, i * step, i * step + 3, rows, **more) for i in range(number)]


def test_a_device_that_waits_a_quarter_of_the_time_is_found() -> None:
    finding = found(made(paced(1)), KIND)
    assert finding is not None
    assert finding.numbers["share"] == 0.25
    assert finding.numbers["pairs"] == 8
    assert finding.lost_ns == 8 * 2 * MS
    assert finding.at_ns == 3 * MS
    assert finding.forward_ids == (1, 2, 3)
    assert (
        finding.sentence
        == "Between decode forwards the device waits for the host: 1.0 ms of 4.0 ms a forward."
    )
    assert finding.mend is None  # nothing is known to be off


@pytest.mark.parametrize(
    "forwards",
    [
        pytest.param(paced(0.5), id="a seventh"),
        pytest.param(paced(0), id="no pause"),
        pytest.param(paced(1, number=8), id="few"),
        pytest.param(paced(1, start_ns=None, end_ns=None), id="not timed"),
        pytest.param(
            [{**row, "rank": row["forward_id"] % 2} for row in paced(1, number=9)], id="other ranks"
        ),
        pytest.param([], id="nothing ran"),
    ],
)
def test_anything_less_is_none(forwards: list[dict[str, Any]]) -> None:
    assert found(made(forwards), KIND) is None


def test_a_pause_around_prefill_is_not_between_decodes() -> None:
    forwards = [decode(2 * i, 10 * i, 10 * i + 3) for i in range(12)]
    forwards += [prefill(2 * i + 1, 10 * i + 5, 10 * i + 6, 50) for i in range(12)]
    assert found(made(forwards), KIND) is None


def test_overlapping_forwards_make_no_negative_pause() -> None:
    assert found(made(paced(-0.5)), KIND) is None


def test_the_threshold_can_be_set() -> None:
    assert found(made(paced(1)), KIND, Thresholds(host_share=0.3)) is None


def test_overlap_that_is_off_is_to_be_put_on() -> None:
    finding = found(made(paced(1), {"engine": {"disable_overlap_schedule": True}}), KIND)
    assert finding is not None
    assert finding.mend is not None
    assert "--disable-overlap-schedule" in finding.mend
    assert finding.option is None


@pytest.mark.parametrize(("graph", "told"), [("NONE", True), ("FULL", False), (None, False)])
def test_graphs_that_are_off_on_a_gpu_are_to_be_put_on(graph: str | None, told: bool) -> None:
    code = None if graph is None else enum_code("forwards", "graph", graph)
    finding = found(made(paced(1, graph=code), ON_GPU), KIND)
    assert finding is not None
    assert (finding.mend is not None and "--disable-cuda-graph" in finding.mend) is told


def test_the_ledger_says_what_the_host_does() -> None:
    forwards = [
        {
            **row,
            "plan_start_ns": row["start_ns"] - MS,
            "plan_end_ns": row["start_ns"] - MS // 4,
            "launch_start_ns": row["start_ns"] - MS // 4,
            "launch_end_ns": row["start_ns"],
            "result_start_ns": row["end_ns"],
        }
        for row in paced(1)
    ]
    trace = made(forwards, rows=[decode_row(i, 0, i) for i in range(9)])
    finding = found(trace, KIND, stalls=stall_report(trace))
    assert finding is not None
    assert "of all waiting 19 % planning, 6 % launching" in finding.evidence
