"""Decode batch past saturation: more rows a forward than throughput gains from."""

import polars as pl

from engine.batch import ForwardMode
from profiler.findings.build import build, median, total
from profiler.findings.finding import Finding, FindingKind, Severity
from profiler.findings.run import Run
from profiler.findings.words import percent
from profiler.ledger.why import Mend
from profiler.wording import count, duration

__all__ = ["decode_batch"]

_SHOWN = 3


def decode_batch(run: Run) -> Finding | None:
    """The finding, largest batches first; None where the point is not known, or rarely passed."""
    limit = run.thresholds.past_saturation_share
    decodes = run.forwards.filter(
        pl.col("mode") == ForwardMode.DECODE.value, pl.col("device_ns") > 0, pl.col("decode_tokens") > 0
    )
    point = None if decodes.is_empty() else run.decode_point
    if point is None:
        return None
    past = decodes.filter(pl.col("decode_tokens") > point.high)
    share = total(past["device_ns"]) / total(decodes["device_ns"])
    took_ns = median(past["device_ns"])
    if took_ns is None or share < limit:
        return None
    at_point_ns = round(point.seconds(point.tokens) * 1e9)
    largest = past.sort("decode_tokens", "device_ns", descending=True, maintain_order=True).head(_SHOWN)
    rows = int(largest["decode_tokens"][0])
    took, at_point = duration(took_ns / 1e9), duration(at_point_ns / 1e9)
    return build(
        FindingKind.DECODE_BATCH_PAST_SATURATION,
        Severity.WATCH,
        "Decode batch past saturation",
        f"Decode forwards have up to {count(rows)} rows; {count(point.tokens)} reach {percent(point.q)} of "
        f"the best throughput. A token takes {took} instead of {at_point}.",
        evidence=(
            f"{percent(share)} of the time of decode forwards above {count(point.high)} rows",
            f"threshold {percent(limit)}",
            f"interval [{count(point.low)}, {count(point.high)}] rows",
            f"by {point.by}",
        ),
        numbers={
            "rows": rows,
            "point_rows": point.tokens,
            "point_low_rows": point.low,
            "point_high_rows": point.high,
            "time_share": share,
            "median_ns": took_ns,
            "at_point_ns": at_point_ns,
        },
        threshold=("past_saturation_share", limit),
        forward_ids=largest["forward_id"],
        mend=Mend(
            f"--max-running-requests {point.tokens} keeps decode forwards at the point; the others queue.",
            ("--max-running-requests", str(point.tokens)),
        ),
        at_ns=largest["start_ns"][0],
        lost_ns=total((past["device_ns"] - at_point_ns).clip(lower_bound=0) * past["decode_tokens"]),
    )
