"""How much of the watched forwards' device time the rows of `kernels` cover, and by which operators."""

from dataclasses import dataclass

import polars as pl

from engine.operators import Operator
from profiler.tables import TraceLike, frame

__all__ = ["KernelCoverage", "forward_coverage", "kernel_coverage"]


@dataclass(frozen=True, slots=True)
class KernelCoverage:
    """Watched forwards as a whole. What no kernel covers are launches, gaps and what was not recorded."""

    forwards: int
    device_ns: int  # of these forwards
    covered_ns: int  # by kernels, an instant with several counted once
    operator_ns: dict[str, int]  # durations by name of Operator, most first

    @property
    def uncovered_share(self) -> float | None:
        """Share of the device time in which no recorded kernel ran; None without device time."""
        return 1 - self.covered_ns / self.device_ns if self.device_ns else None


def forward_coverage(trace: TraceLike) -> pl.DataFrame:
    """One row a watched forward, by id: forward_id, kernels, device_ns, covered_ns, uncovered_share.

    Forwards without device time are left out; kernels count as far as they lie in it.
    """
    forwards = frame(trace, "forwards").select("forward_id", begin="start_ns", end="end_ns")
    kernels = (
        frame(trace, "kernels").select("forward_id", "start_ns", "end_ns").join(forwards, on="forward_id")
    )
    latest_end = pl.col("end_ns").cum_max().shift().over("forward_id")
    return (
        kernels.with_columns(
            start_ns=pl.max_horizontal("start_ns", "begin"), end_ns=pl.min_horizontal("end_ns", "end")
        )
        .filter(pl.col("begin") < pl.col("end"))
        .sort("forward_id", "start_ns")
        .with_columns(fresh=pl.col("end_ns") - pl.max_horizontal("start_ns", latest_end))
        .group_by("forward_id")
        .agg(
            kernels=pl.len(),
            device_ns=(pl.col("end") - pl.col("begin")).first(),
            covered_ns=pl.col("fresh").clip(0).sum(),
        )
        .with_columns(uncovered_share=1 - pl.col("covered_ns") / pl.col("device_ns"))
        .sort("forward_id")
    )


def kernel_coverage(trace: TraceLike) -> KernelCoverage | None:
    """Over all watched forwards; None where no kernel was recorded."""
    each = forward_coverage(trace)
    if each.is_empty():
        return None
    by_operator = (
        frame(trace, "kernels")
        .group_by("op")
        .agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
        .sort("ns", "op", descending=[True, False])
    )
    names = {operator.value: operator.name for operator in Operator}
    return KernelCoverage(
        forwards=each.height,
        device_ns=int(each["device_ns"].sum()),
        covered_ns=int(each["covered_ns"].sum()),
        operator_ns={names.get(op, "UNKNOWN"): ns for op, ns in by_operator.iter_rows()},
    )
