"""Fragmented tiny prefills that break decodes."""

from typing import Any

import pytest

from profiler.findings import FindingKind, Severity, Thresholds
from tests.profiler.findings.hand_made import META, MS, decode, found, made, prefill

KIND = FindingKind.FRAGMENTED_PREFILLS


def broken(
    times: int = 8, tokens: int = 40, *, decodes: int = 2, took_ms: float = 1, **more: Any
) -> list[Any]:
    """Decode forwards of 2 ms with a tiny prefill between each two."""
    told = {"chunk_budget_start_tokens": 512, "absent_decode_reqs": 3, **more}
    forwards, now, made_so_far = [], 0.0, 0
    for _ in range(times):
        for _ in range(decodes):
            forwards.append(decode(made_so_far, now, now + 2))
            now, made_so_far = now + 2, made_so_far + 1
        forwards.append(prefill(made_so_far, now, now + took_ms, tokens, **told))
        now, made_so_far = now + took_ms, made_so_far + 1
    return [*forwards, decode(made_so_far, now, now + 2)]


def test_many_tiny_prefills_between_decodes_are_found() -> None:
    finding = found(made(broken()), KIND)
    assert finding is not None
    assert finding.severity is Severity.WATCH
    assert finding.numbers["forwards"] == 8
    assert finding.numbers["median_tokens"] == 40
    assert finding.numbers["time_share"] == pytest.approx(8 / (8 + 34))
    assert finding.lost_ns == 3 * 8 * MS
    assert finding.forward_ids[0] == 2
    assert finding.at_ns == 4 * MS
    assert finding.option == ("--enable-mixed-chunk",)
    assert finding.mend is not None
    assert "--prefill-decode-interval" not in finding.mend  # the trace does not tell that it is off
    assert "each below 25 % of its chunk budget" in finding.evidence


def test_an_interval_that_is_off_is_offered() -> None:
    meta = {"engine": {"chunked_prefill_size": 512, "prefill_decode_interval": 0}}
    finding = found(made(broken(), meta), KIND)
    assert finding is not None
    assert finding.mend is not None
    assert "--prefill-decode-interval" in finding.mend


@pytest.mark.parametrize(
    "forwards",
    [
        pytest.param(broken(7), id="few"),
        pytest.param(broken(tokens=128), id="a quarter of the budget is no fragment"),
        pytest.param(broken(decodes=10), id="little of the time"),
        pytest.param(broken(absent_decode_reqs=0), id="nobody waits"),
        pytest.param(broken(absent_decode_reqs=None), id="who waits is unknown"),
        pytest.param(broken(chunk_budget_start_tokens=None), id="what fills a forward is unknown"),
        pytest.param(broken(start_ns=None, end_ns=None), id="not timed"),
        pytest.param(broken()[:2], id="short"),
        pytest.param(
            [prefill(i, i, i + 1, 40, chunk_budget_start_tokens=512) for i in range(20)], id="no decode"
        ),
    ],
)
def test_anything_less_is_none(forwards: list[dict[str, Any]]) -> None:
    assert found(made(forwards), KIND) is None


def test_a_burst_of_two_is_not_between_decodes() -> None:
    doubled = []
    for row in broken():
        doubled.append({**row, "forward_id": 2 * row["forward_id"]})
        if row["extend_tokens"]:
            doubled.append({**row, "forward_id": 2 * row["forward_id"] + 1})
    assert found(made(doubled), KIND) is None


@pytest.mark.parametrize(
    "limits",
    [Thresholds(fragment_forwards=9), Thresholds(fragment_share=0.05), Thresholds(fragment_time_share=0.5)],
)
def test_thresholds_can_be_set(limits: Thresholds) -> None:
    assert found(made(broken(), META), KIND, limits) is None
