"""Forwards under the roof of their machine: work against traffic, and how much of either ceiling is reached.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model", 2009. Work and traffic
are the closed forms of `engine.arithmetic`: traffic is the least that a forward must move, so intensity is
the most it can have. A point may stand above the roof, where a cache holds what is counted as traffic.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import polars as pl

from engine.batch import ForwardMode
from profiler.ceilings import Ceilings
from profiler.sampling import evenly
from profiler.tables import TraceLike, frame

__all__ = [
    "Roof",
    "mode_name",
    "mode_summary",
    "roof_for",
    "roofline_points",
    "sample_by",
    "sample_by_mode",
    "simulated_roof",
    "with_rates",
]

_BEYOND = 1e300  # no rate, and JSON may hold infinity
_FLOPS = ("flops_linear", "flops_attention_extend", "flops_attention_decode", "flops_head")
_BYTES = ("bytes_weights", "bytes_kv_read", "bytes_kv_write", "bytes_activation")
_IN_PLOT_ORDER = ("intensity", "flops_per_s", "forward_id")


@dataclass(frozen=True, slots=True)
class Roof:
    """The most that forwards of one dtype can reach on one machine."""

    dtype: str
    flops_per_s: float
    bytes_per_s: float
    traffic: str = "copy"  # what `bytes_per_s` is the rate of: a measured copy, or memory by its data sheet

    @property
    def ridge(self) -> float:
        """FLOP/byte at which the two ceilings meet."""
        return self.flops_per_s / self.bytes_per_s

    def at(self, intensity: float) -> float:
        """FLOP/s that a forward of so many FLOP/byte can reach."""
        return min(self.flops_per_s, self.bytes_per_s * intensity)


def roof_for(ceilings: Ceilings | None, dtype: object) -> Roof | None:
    """The roof for a trace's dtype; None if it is not known or was not measured."""
    rate = ceilings.flops_per_s(dtype) if ceilings is not None and isinstance(dtype, str) else None
    if ceilings is None or rate is None or not isinstance(dtype, str):
        return None
    return Roof(dtype, rate, ceilings.copy_bytes_per_s)


def simulated_roof(meta: Mapping[str, Any]) -> Roof | None:
    """The peaks under which a trace was simulated; None for another trace."""
    hardware = meta.get("hardware")
    peaks = hardware.get("peaks") if isinstance(hardware, Mapping) else None
    if meta.get("provenance") != "simulated" or not isinstance(peaks, Mapping):
        return None
    dtype, flops, moved = peaks.get("dtype"), peaks.get("flops_per_s"), peaks.get("bytes_per_s")
    if not isinstance(dtype, str) or not _is_rate(flops) or not _is_rate(moved):
        return None
    return Roof(dtype, flops, moved, "memory")


def _is_rate(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < _BEYOND


def roofline_points(trace: TraceLike, roof: Roof | None = None) -> pl.DataFrame:
    """One row a forward, in order of forward_id; null is unknown.

    - forward_id; mode (EXTEND, DECODE, MIXED); tokens, of all rows; flops, bytes; time_ns on the device;
      error_ns, of that time by the clocks;
    - what `with_rates` adds.
    """
    points = frame(trace, "forwards").select(
        "forward_id",
        mode=mode_name(),
        tokens=pl.col("extend_tokens").cast(pl.Int64) + pl.col("decode_tokens"),
        flops=_sum(_FLOPS),
        bytes=_sum(_BYTES),
        time_ns=pl.col("end_ns") - pl.col("start_ns"),
        error_ns=pl.col("clock_error_ns"),
    )
    return with_rates(points.sort("forward_id"), roof)


def mode_name() -> pl.Expr:
    """The trace's `mode` by its name; null where it is unknown."""
    modes = {mode.value: mode.name for mode in ForwardMode}
    return pl.col("mode").replace_strict(modes, default=None, return_dtype=pl.String)


def with_rates(points: pl.DataFrame, roof: Roof | None) -> pl.DataFrame:
    """Points with flops, bytes and time_ns, and their place under the roof; null is unknown.

    - intensity: flops / bytes; flops_per_s: flops / time;
    - roof_share: flops_per_s / roof.at(intensity); above_roof: whether that is more than 1.
    """
    points = points.with_columns(
        intensity=_ratio("flops", "bytes"), flops_per_s=_ratio("flops", "time_ns") * 1e9
    )
    if roof is None:
        unknown = pl.lit(None, pl.Float64).alias("roof_share"), pl.lit(None, pl.Boolean).alias("above_roof")
        return points.with_columns(unknown)
    reachable = (pl.col("intensity") * roof.bytes_per_s).clip(upper_bound=roof.flops_per_s)
    return points.with_columns(roof_share=pl.col("flops_per_s") / reachable).with_columns(
        above_roof=pl.col("roof_share") > 1
    )


def sample_by_mode(points: pl.DataFrame, limit: int) -> pl.DataFrame:
    """At most `limit` points of each mode that have a place in the plot, evenly by rank of intensity.

    Up to a quarter of them are points above the roof, which would else be lost among the others.
    """
    return sample_by(points, "mode", (*(mode.name for mode in ForwardMode), None), limit)


def sample_by(points: pl.DataFrame, column: str, values: Iterable[str | None], limit: int) -> pl.DataFrame:
    """As `sample_by_mode`, for each of the values of a column, in their order."""
    placed = points.filter(pl.col("intensity").is_not_null() & pl.col("flops_per_s").is_not_null())
    parts = [placed.clear()]
    for value in values:
        of_value = placed.filter(pl.col(column).eq_missing(value))
        above = pl.col("above_roof").fill_null(False)
        high = of_value.filter(above)
        if of_value.height > limit:
            high = evenly(high, _IN_PLOT_ORDER, limit // 4)
        low = evenly(of_value.filter(~above), _IN_PLOT_ORDER, limit - high.height)
        parts += [low, high]
    return pl.concat(parts)


def mode_summary(points: pl.DataFrame) -> pl.DataFrame:
    """One row a mode that has forwards, in the order of `ForwardMode`, unknown last.

    mode, forwards, placed (those with intensity and FLOP/s), intensity and flops_per_s (medians),
    best_flops_per_s, roof_share (median) and above_roof (forwards above it, null without a roof).
    """
    order = {mode.name: mode.value for mode in ForwardMode}
    placed = pl.col("intensity").is_not_null() & pl.col("flops_per_s").is_not_null()
    above = pl.col("above_roof")
    return (
        points.group_by("mode")
        .agg(
            forwards=pl.len(),
            placed=placed.sum(),
            intensity=pl.col("intensity").median(),
            flops_per_s=pl.col("flops_per_s").median(),
            best_flops_per_s=pl.col("flops_per_s").max(),
            roof_share=pl.col("roof_share").median(),
            above_roof=pl.when(above.is_not_null().any()).then(above.sum()),
        )
        .sort(pl.col("mode").replace_strict(order, default=len(order), return_dtype=pl.Int64))
    )


def _sum(columns: tuple[str, ...]) -> pl.Expr:
    """Their sum, null if any is."""
    return pl.sum_horizontal([pl.col(name).cast(pl.Int64) for name in columns], ignore_nulls=False)


def _ratio(above: str, below: str) -> pl.Expr:
    """Their ratio, null where one is unknown or not positive: such a forward has no place in a log plot."""
    return pl.when((pl.col(above) > 0) & (pl.col(below) > 0)).then(pl.col(above) / pl.col(below))
