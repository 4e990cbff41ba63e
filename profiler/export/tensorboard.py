"""A trace's forwards and kernels as steps for TensorBoard, rank by rank."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import polars as pl

from engine.batch import ForwardMode
from engine.operators import Operator
from profiler.tables import TraceLike, frame
from traces.tensorboard import APART_NS, DeviceKernel, OperatorCall, Step

__all__ = ["CPU_DEVICE", "Worker", "workers"]

CPU_DEVICE = "CPU (operator times)"

_ARGUMENTS = (
    *("num_extend_seqs", "num_decode_seqs", "extend_tokens", "decode_tokens", "prefix_tokens", "kv_tokens"),
    *("flops_linear", "flops_attention_extend", "flops_attention_decode", "flops_head"),
    *("bytes_weights", "bytes_kv_read", "bytes_kv_write", "bytes_activation"),
)
_MODES = {mode.value: mode.name for mode in ForwardMode}
_UNKNOWN = "UNKNOWN"
_OPERATORS = {operator.value: operator.name for operator in Operator}


class Worker(NamedTuple):
    """What TensorBoard shows under one name."""

    name: str
    device: str
    steps: Iterator[Step]


def workers(trace: TraceLike, device: str) -> Iterator[Worker]:
    """For each rank its forwards, and, where it has kernels, the forwards that were watched.

    `device` is what the forwards ran on. Forwards without device times are left out.
    """
    for rank in _ranks(trace, "forwards"):
        yield Worker(f"rank-{rank}_forwards", device, _all_forwards(trace, rank))
    on_host = not frame(trace, "kernels")["stream"].count()
    for rank in _ranks(trace, "kernels"):
        steps = _watched_forwards(trace, rank, on_host=on_host)
        yield Worker(f"rank-{rank}_kernels", CPU_DEVICE if on_host else device, steps)


def _ranks(trace: TraceLike, table: str) -> list[int]:
    """Ranks that have rows in a table, ascending; rows that name none are of rank 0."""
    ranks: list[int] = frame(trace, table)["rank"].fill_null(0).unique().sort().to_list()
    return ranks


def _all_forwards(trace: TraceLike, rank: int) -> Iterator[Step]:
    """Each forward of a rank as a step with one kernel, named by its mode.

    The kernel ends before the step does: the plugin's breakdown of step times goes wrong where kernels leave
    nothing of any step.
    """
    for row in _forwards(trace, rank).iter_rows(named=True):
        mode = _mode(row)
        end_ns = max(row["start_ns"], row["end_ns"] - APART_NS - 1)
        whole = DeviceKernel(f"{mode} forward", row["start_ns"], end_ns, args=_known(row, _ARGUMENTS))
        yield _step(row, [OperatorCall(mode, [whole])], row["start_ns"])


def _watched_forwards(trace: TraceLike, rank: int, *, on_host: bool) -> Iterator[Step]:
    """Each forward of a rank that has kernels as a step with these, call by call of its operators.

    The time in which unwatched forwards ran is taken out: the plugin takes all time from the first step to
    the last for steps.
    """
    kernels = _of_rank(trace, "kernels", rank).drop_nulls(["forward_id", "start_ns", "end_ns"])
    by_forward = {
        ids[0]: rows.sort("start_ns", "end_ns").to_dicts()
        for ids, rows in kernels.partition_by("forward_id", as_dict=True).items()
    }
    watched = pl.col("forward_id").is_in(list(by_forward))
    forwards = _forwards(trace, rank).with_columns(follows=watched.shift()).filter(watched)
    gap_ns = pl.when("follows").then(0).otherwise(pl.col("start_ns") - pl.col("end_ns").shift())
    for row in forwards.with_columns(cut_ns=gap_ns.fill_null(0).cum_sum()).iter_rows(named=True):
        moved = [
            {**kernel, **{edge: kernel[edge] - row["cut_ns"] for edge in ("start_ns", "end_ns")}}
            for kernel in by_forward[row["forward_id"]]
        ]
        yield _step(row, list(_calls(moved, on_host=on_host)), row["start_ns"] - row["cut_ns"])


def _forwards(trace: TraceLike, rank: int) -> pl.DataFrame:
    """In order of start, numbered by id; later ones give way where device intervals overlap."""
    forwards = _of_rank(trace, "forwards", rank).drop_nulls(["forward_id", "start_ns", "end_ns"])
    free_ns = pl.col("end_ns").cum_max().shift().fill_null(pl.col("start_ns"))
    return (
        forwards.sort("start_ns", "end_ns")
        .with_columns(start_ns=pl.max_horizontal("start_ns", free_ns))
        .with_columns(end_ns=pl.max_horizontal("start_ns", "end_ns"))
    )


def _of_rank(trace: TraceLike, table: str, rank: int) -> pl.DataFrame:
    return frame(trace, table).filter(pl.col("rank").fill_null(0) == rank)


def _step(row: Mapping[str, Any], calls: Sequence[OperatorCall], start_ns: int) -> Step:
    args = {"mode": _mode(row), "run_start_ns": row["start_ns"], **_known(row, _ARGUMENTS)}
    return Step(row["forward_id"], start_ns, start_ns + row["end_ns"] - row["start_ns"], calls, args)


def _mode(row: Mapping[str, Any]) -> str:
    return _MODES.get(row["mode"], _UNKNOWN)


def _calls(kernels: Iterable[Mapping[str, Any]], *, on_host: bool) -> Iterator[OperatorCall]:
    for (op, layer), group in groupby(kernels, key=lambda row: (row["op"], row["layer"])):
        args = {} if layer is None else {"layer": layer}
        yield OperatorCall(_OPERATORS.get(op, _UNKNOWN), [_kernel(row) for row in group], on_host, args)


def _kernel(row: Mapping[str, Any]) -> DeviceKernel:
    operator = _OPERATORS.get(row["op"], _UNKNOWN)
    args = {"operator": operator, **_known(row, ("layer", "tokens", "flops", "bytes"))}
    if row["correlation"] is not None:
        args["recorded correlation"] = row["correlation"]
    return DeviceKernel(row["name"] or operator, row["start_ns"], row["end_ns"], row["stream"] or 0, args)


def _known(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names if row[name] is not None}
