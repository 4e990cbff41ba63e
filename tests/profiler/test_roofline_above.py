"""Points above the roof: all of them are listed, each with the reason that its numbers give."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from profiler.roofline import Roof, with_rates
from profiler.roofline_above import WHY_ABOVE, AboveReason, points_above
from profiler.roofline_choice import SourcedRoof

MEASURED = SourcedRoof(Roof("float32", 1e12, 1e11), "measured", "a machine", date="2026-11-30")  # ridge 10
SHEET = replace(MEASURED, roof=Roof("float32", 1e12, 1e11, "memory"), source="data sheet")


def above(sourced: SourcedRoof | None, **point: Any) -> pl.DataFrame:
    points = pl.DataFrame([{"error_ns": None, **point}], schema_overrides={"error_ns": pl.Int64})
    return points_above(with_rates(points, sourced.roof if sourced else None), sourced)


READS = {"flops": 10**6, "bytes": 10**6, "time_ns": 5_000}  # 200 GB/s of 100, 0.2 of 1 TFLOP/s
COMPUTES = {"flops": 10**8, "bytes": 10**6, "time_ns": 50_000}  # 2 of 1 TFLOP/s


@pytest.mark.parametrize(
    ("sourced", "point", "reason"),
    [
        (MEASURED, READS, AboveReason.COPY),
        (replace(MEASURED, cache_bytes=10**6), READS, AboveReason.CACHE),
        (replace(MEASURED, cache_bytes=10**6 - 1), READS, AboveReason.COPY),
        (SHEET, READS, AboveReason.CACHE),
        (MEASURED, COMPUTES, AboveReason.SHAPE),
        (SHEET, COMPUTES, AboveReason.COUNT),
        (SHEET, COMPUTES | {"error_ns": 50_000}, AboveReason.CLOCK),
        (SHEET, COMPUTES | {"error_ns": 49_999}, AboveReason.COUNT),
    ],
)
def test_the_reason_is_told_by_the_numbers(
    sourced: SourcedRoof, point: dict[str, int], reason: AboveReason
) -> None:
    [found] = above(sourced, **point).to_dicts()
    assert found["reason"] == reason
    assert WHY_ABOVE[AboveReason(found["reason"])]


def test_what_is_under_the_roof_or_has_no_place_is_not_listed() -> None:
    assert above(MEASURED, flops=10**6, bytes=10**6, time_ns=10_000).is_empty()
    assert above(MEASURED, flops=None, bytes=10**6, time_ns=10_000).is_empty()
    assert above(None, **READS).is_empty()


def test_all_are_listed_with_the_highest_first() -> None:
    points = pl.DataFrame(
        {"flops": [10**6] * 3, "bytes": [10**6] * 3, "time_ns": [9_000, 5_000, 11_000], "error_ns": [0, 0, 0]}
    )
    found = points_above(with_rates(points, MEASURED.roof), MEASURED)
    assert found["time_ns"].to_list() == [5_000, 9_000]
