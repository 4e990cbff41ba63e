"""What the host adds to forwards: its work for each, and the time a device stands idle between two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from profiler.tables import TraceLike, frame
from profiler.watched import slowed

__all__ = ["HostTime", "host_time"]


@dataclass(frozen=True, slots=True)
class HostTime:
    """Medians, in nanoseconds; None is unknown.

    `overhead_ns` is what the host does for a forward, as `SimulatedExecutor` takes it: it stands between
    forwards in the plain loop and hides behind the forward before under overlap. `launch_gap_ns` is what
    overlap does not hide: idle time of the device before a forward that was queued in time.
    """

    overhead_ns: int | None = None
    launch_gap_ns: int | None = None


def host_time(traces: Sequence[TraceLike]) -> HostTime:
    """From the forwards of traces of one machine, overlapped or not.

    A forward counts if it has decode rows: then there was work before it, and the device did not wait for
    arrivals.
    """
    gaps = pl.concat([_gaps(trace) for trace in traces])
    in_time = gaps.filter(pl.col("overlapped") & (pl.col("launch_end_ns") <= pl.col("before_ns")))
    launch_gap = _median(in_time["gap_ns"])
    between = _median(gaps.filter(~pl.col("overlapped"))["gap_ns"])
    work = _median(gaps.filter(pl.col("overlapped"))["work_ns"])
    overhead = work if between is None else max(0, between - (launch_gap or 0))
    return HostTime(overhead, launch_gap)


def _gaps(trace: TraceLike) -> pl.DataFrame:
    """Forwards with decode rows: gap_ns since the one before ended (at before_ns), work_ns of the host."""
    forwards = frame(trace, "forwards")
    spans = [pl.col(f"{part}_end_ns") - pl.col(f"{part}_start_ns") for part in ("plan", "launch", "result")]
    engine = trace.meta.get("engine")
    plain = bool(engine.get("disable_overlap_schedule")) if isinstance(engine, Mapping) else None
    return (
        forwards.with_columns(slowed=slowed(trace, forwards))
        .sort("rank", "start_ns")
        .with_columns(before_ns=pl.col("end_ns").shift(1).over("rank"))
        .filter(~pl.col("slowed"))
        .select(
            "before_ns",
            "launch_end_ns",
            "decode_tokens",
            gap_ns=pl.col("start_ns") - pl.col("before_ns"),
            work_ns=pl.sum_horizontal(spans, ignore_nulls=False),
            overlapped=pl.lit(not plain) if plain is not None else pl.col("overlapped"),
        )
        .filter((pl.col("decode_tokens") > 0) & (pl.col("gap_ns") >= 0))
        .drop("decode_tokens")
    )


def _median(values: pl.Series) -> int | None:
    middle = values.drop_nulls().median()
    return round(middle) if isinstance(middle, (int, float)) else None
