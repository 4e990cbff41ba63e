"""Points above the roof: errors of counting or of clocks, each with its likely reason, none hidden.

No work is faster than the device, so such a point says that its FLOPs or bytes were not what was computed
and moved, that its time was shorter than the clock tells, or that the ceiling is not one.
"""

from enum import StrEnum

import polars as pl

from profiler.roofline_choice import SourcedRoof

__all__ = ["WHY_ABOVE", "AboveReason", "points_above"]


class AboveReason(StrEnum):
    """Why a point may lie above the roof."""

    CLOCK = "clock"
    CACHE = "cache"
    COPY = "copy ceiling"
    SHAPE = "matrix shapes"
    COUNT = "count"


WHY_ABOVE = {
    AboveReason.CLOCK: "its time is so short that the clocks' error explains it",
    AboveReason.CACHE: "a cache held a part of what is counted as moved",
    AboveReason.COPY: "it mostly reads, which is faster than a copy, or a cache held a part of it",
    AboveReason.SHAPE: "its matrices have a shape that runs faster than the square ones of the ceiling",
    AboveReason.COUNT: "more FLOPs are counted than the device can do: count, clock or peak is wrong",
}
"""What a reason says, as a sentence's end."""


def points_above(points: pl.DataFrame, sourced: SourcedRoof | None) -> pl.DataFrame:
    """The points above the roof, those furthest above first, with `reason`, a value of `AboveReason`.

    `points` have the columns of `profiler.roofline.with_rates` under that roof, and error_ns, of their time.
    The first that holds: with the clock's error added to its time the point is under the roof (CLOCK); it
    computes more than the compute ceiling (SHAPE where that was measured, else COUNT); its bytes fit the
    cache, or the slope is no copy's (CACHE); COPY.
    """
    above = points.filter(pl.col("above_roof").fill_null(False))
    if sourced is None:
        return above.with_columns(reason=pl.lit(None, pl.String))
    late_ns = pl.col("time_ns") + pl.col("error_ns").fill_null(0)
    in_cache = pl.lit(sourced.roof.traffic != "copy") | (
        pl.col("bytes") <= pl.lit(sourced.cache_bytes, pl.Int64)
    ).fill_null(False)
    compute = AboveReason.SHAPE if sourced.source == "measured" else AboveReason.COUNT
    reason = (
        pl.when(pl.col("roof_share") * pl.col("time_ns") <= late_ns)
        .then(pl.lit(AboveReason.CLOCK.value))
        .when(pl.col("flops_per_s") > sourced.roof.flops_per_s)
        .then(pl.lit(compute.value))
        .when(in_cache)
        .then(pl.lit(AboveReason.CACHE.value))
        .otherwise(pl.lit(AboveReason.COPY.value))
    )
    return above.with_columns(reason=reason).sort("roof_share", descending=True, maintain_order=True)
