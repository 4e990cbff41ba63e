"""Operators under the roof: one point an operator and forward, from recorded kernels or from a cost model.

FLOPs and bytes of kernels are those of `engine.operator_costs`. A cost model's are its own: it moves the
residual between operators, not in O and DOWN, and reads back keys and values that a chunk has just written.
"""

from typing import Any, Literal, NamedTuple

import polars as pl

from engine.arithmetic import ForwardSums
from engine.operators import Operator
from engine.shapes import ModelShape
from profiler.cost import OPERATORS
from profiler.operator_model import OperatorModel, operator_model
from profiler.roofline import Roof, mode_name, roofline_points, sample_by, sample_by_mode, with_rates
from profiler.tables import TraceLike, frame

__all__ = ["OperatorPoints", "operator_points", "operator_summary", "sample_by_operator"]

MODELLED_PER_MODE = 400
"""Forwards of a mode whose operators a cost model is asked for: no more are ever drawn."""

_KERNEL_ERROR_NS = 1_000
"""Two profilers' clocks meet in a kernel's time; kernels that touch are cut where they would overlap."""

_SUMS = tuple(ForwardSums.__dataclass_fields__)
_PARTS = {
    Operator.QKV: ("QKV",),
    Operator.ATTENTION_EXTEND: ("ATTENTION_PREFIX", "ATTENTION_CAUSAL"),
    Operator.ATTENTION_DECODE: ("ATTENTION_DECODE",),
    Operator.O: ("O",),
    Operator.GATE_UP: ("GATE_UP",),
    Operator.DOWN: ("DOWN",),
    Operator.HEAD: ("HEAD",),
}
"""The cost model's parts that are an operator with FLOPs."""
_SCHEMA = {
    **{"forward_id": pl.UInt32, "mode": pl.String, "operator": pl.String, "tokens": pl.Int64},
    **{"flops": pl.Int64, "bytes": pl.Int64, "time_ns": pl.Float64, "error_ns": pl.Int64},
}


class OperatorPoints(NamedTuple):
    """Points, one row an operator and forward, and where their times come from."""

    points: pl.DataFrame
    source: Literal["kernels", "cost model"] | None
    forwards: int  # that the points are of


def operator_points(trace: TraceLike, roof: Roof | None = None) -> OperatorPoints:
    """Where kernels were recorded, of all watched forwards; of a simulated trace, of up to 400 of each mode.

    Columns: forward_id, mode, operator (a name of `Operator`), tokens, flops, bytes, time_ns (its kernels'
    together), error_ns, and what `with_rates` adds; null is unknown. Empty for other traces.
    """
    kernels = frame(trace, "kernels")
    if not kernels.is_empty():
        points = _of_kernels(kernels, frame(trace, "forwards"))
        source: Literal["kernels", "cost model"] | None = "kernels"
    else:
        model = operator_model(trace.meta)
        points = pl.DataFrame(schema=_SCHEMA) if model is None else _of_model(trace, model)
        source = None if points.is_empty() else "cost model"
    return OperatorPoints(with_rates(points, roof), source, points["forward_id"].n_unique())


def sample_by_operator(points: pl.DataFrame, limit: int) -> pl.DataFrame:
    """At most `limit` points of each operator that have a place in the plot; see `sample_by_mode`."""
    return sample_by(points, "operator", [operator.name for operator in Operator], limit)


def operator_summary(points: pl.DataFrame) -> pl.DataFrame:
    """One row an operator, most time first.

    operator, forwards, placed (points with intensity and FLOP/s), time_ns and time_share (of all operators'
    times), intensity, flops_per_s and roof_share (medians), above_roof (points above it, null without one).
    """
    placed = pl.col("intensity").is_not_null() & pl.col("flops_per_s").is_not_null()
    above = pl.col("above_roof")
    return (
        points.group_by("operator")
        .agg(
            forwards=pl.len(),
            placed=placed.sum(),
            time_ns=pl.col("time_ns").sum(),
            intensity=pl.col("intensity").median(),
            flops_per_s=pl.col("flops_per_s").median(),
            roof_share=pl.col("roof_share").median(),
            above_roof=pl.when(above.is_not_null().any()).then(above.sum()),
        )
        .with_columns(time_share=pl.col("time_ns") / pl.col("time_ns").sum())
        .sort("time_ns", "operator", descending=[True, False])
    )


def _of_kernels(kernels: pl.DataFrame, forwards: pl.DataFrame) -> pl.DataFrame:
    """Kernels of an operator's call are summed first: one of their rows holds the call's FLOPs and bytes."""
    names = {operator.value: operator.name for operator in Operator}
    calls = (
        kernels.with_columns(operator=pl.col("op").replace_strict(names, default="UNKNOWN"))
        .group_by("forward_id", "operator", "layer")
        .agg(
            tokens=pl.col("tokens").max().cast(pl.Int64),
            flops=_sum_of_known("flops"),
            bytes=_sum_of_known("bytes"),
            time_ns=(pl.col("end_ns") - pl.col("start_ns")).sum().cast(pl.Float64),
            error_ns=pl.len().cast(pl.Int64) * _KERNEL_ERROR_NS,
        )
    )
    modes = forwards.select("forward_id", mode=mode_name())
    return (
        calls.group_by("forward_id", "operator")
        .agg(
            pl.col("tokens").max(),
            _sum_if_known("flops"),
            _sum_if_known("bytes"),
            pl.col("time_ns", "error_ns").sum(),
        )
        .join(modes, on="forward_id", how="left")
        .select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())
        .sort("forward_id", "operator")
    )


def _sum_of_known(column: str) -> pl.Expr:
    """The sum, null if no part is known."""
    return pl.when(pl.col(column).is_not_null().any()).then(pl.col(column).sum()).cast(pl.Int64)


def _sum_if_known(column: str) -> pl.Expr:
    """The sum, null if any part is."""
    return pl.when(pl.col(column).is_not_null().all()).then(pl.col(column).sum()).alias(column)


def _of_model(trace: TraceLike, model: OperatorModel) -> pl.DataFrame:
    """What the cost model says of the operators; nothing where its times are not the trace's."""
    records: list[tuple[Any, ...]] = []
    for row in _forwards_to_model(trace, model.shape).iter_rows(named=True):
        sums = ForwardSums(**{name: row[name] for name in _SUMS})
        seconds = dict(zip(OPERATORS, model.cost.operator_seconds(sums), strict=True))
        work = dict(zip(OPERATORS, model.cost.operator_work(sums), strict=False))
        if round(sum(seconds.values()) * 1e9) != row["time_ns"]:
            return pl.DataFrame(schema=_SCHEMA)
        for operator, parts in _PARTS.items():
            flops, moved = (sum(work[part][i] for part in parts) for i in (0, 1))
            time_ns = sum(seconds[part] for part in parts) * 1e9
            if flops:
                tokens = _tokens(operator, sums)
                records.append(
                    (row["forward_id"], row["mode"], operator.name, tokens, flops, moved, time_ns, None)
                )
    return pl.DataFrame(records, schema=_SCHEMA, orient="row").sort("forward_id", "operator")


def _forwards_to_model(trace: TraceLike, shape: ModelShape) -> pl.DataFrame:
    """Forwards whose sums are all known, evenly by intensity; rows with logits by the head's FLOPs."""
    sums = frame(trace, "forwards").select(
        "forward_id",
        *(pl.col(name).cast(pl.Int64) for name in _SUMS if name != "rows_with_logits"),
        rows_with_logits=pl.col("flops_head").cast(pl.Int64) // (2 * shape.head_params),
    )
    points = roofline_points(trace).select(
        "forward_id", "mode", "time_ns", "intensity", "flops_per_s", "above_roof"
    )
    return sample_by_mode(points.join(sums.drop_nulls(), on="forward_id"), MODELLED_PER_MODE)


def _tokens(operator: Operator, sums: ForwardSums) -> int:
    """New tokens that an operator works on, as `engine.operator_costs` counts them."""
    told = {
        Operator.ATTENTION_EXTEND: sums.extend_tokens,
        Operator.ATTENTION_DECODE: sums.decode_tokens,
        Operator.HEAD: sums.rows_with_logits,
    }
    return told.get(operator, sums.tokens)
