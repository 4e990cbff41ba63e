"""Decode batch past saturation."""

from typing import Any

import pytest

from profiler.findings import FindingKind, Thresholds
from profiler.saturation_report import SaturationReport, decode_report
from tests.profiler.findings.hand_made import MS, decode, found, made

KIND = FindingKind.DECODE_BATCH_PAST_SATURATION
ROWS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


def took_ms(rows: int) -> float:
    """Up to 40 rows a forward takes as long as reading the weights."""
    return max(4.0, rows / 10)


def forwards(sizes: list[int]) -> list[dict[str, Any]]:
    made_so_far, now = [], 0.0
    for at, rows in enumerate(sizes):
        made_so_far.append(decode(at, now, now + took_ms(rows), rows, kv_tokens=rows * 300))
        now += took_ms(rows)
    return made_so_far


@pytest.fixture(scope="module")
def swept() -> SaturationReport:
    report = decode_report(made(forwards([*ROWS, *ROWS])))
    assert report.found.status == "ok"
    return report


def test_batches_beyond_the_point_make_each_token_later(swept: SaturationReport) -> None:
    point = swept.found.tokens
    finding = found(made(forwards([16, 16, 128, 128])), KIND, decode_saturation=swept)
    assert finding is not None
    assert finding.numbers["rows"] == 128
    assert finding.numbers["point_rows"] == point
    assert finding.numbers["time_share"] == pytest.approx(25.6 / 33.6)
    assert finding.forward_ids == (2, 3)
    assert finding.at_ns == 8 * MS
    assert finding.option == ("--max-running-requests", str(point))
    assert finding.lost_ns == pytest.approx(2 * 128 * 8.6 * MS, rel=0.05)
    assert (
        finding.sentence.endswith("A token takes 12.8 ms instead of 4.0 ms.")
        or "instead of 4." in finding.sentence
    )


def test_the_run_itself_may_tell_the_point() -> None:
    finding = found(made(forwards([*ROWS, *ROWS])), KIND)
    assert finding is not None
    assert finding.numbers["rows"] == 256


@pytest.mark.parametrize("sizes", [[16, 32, 16], [16] * 20 + [128], []])
def test_batches_below_it_or_rarely_above_are_none(sizes: list[int], swept: SaturationReport) -> None:
    assert found(made(forwards(sizes)), KIND, decode_saturation=swept) is None


def test_without_a_point_nothing_is_claimed() -> None:
    assert found(made(forwards([16, 16, 256, 256])), KIND) is None


def test_the_threshold_can_be_set(swept: SaturationReport) -> None:
    trace = made(forwards([16, 16, 128, 128]))
    assert found(trace, KIND, Thresholds(past_saturation_share=0.9), decode_saturation=swept) is None
