"""The forwards of a trace as numpy columns in time order, for analyses that go through millions of them."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from profiler.tables import TraceLike, frame
from profiler.watched import slowed

__all__ = ["FORWARD_COLUMNS", "UNKNOWN", "UNKNOWN_MODE", "UNKNOWN_TIME", "ForwardTable", "forward_table"]

UNKNOWN = -1
UNKNOWN_MODE = 255
UNKNOWN_TIME = int(np.iinfo(np.int64).min)

_COUNTS = (
    *("extend_tokens", "decode_tokens", "pairs_decode", "kv_tokens", "chunk_budget_start_tokens"),
    *("pages_total", "pages_free", "pages_evictable", "pages_protected", "pages_private"),
    *("inflight_middle_chunks", "waiting_reqs", "running_reqs"),
)
_FLOPS = ("flops_linear", "flops_attention_extend", "flops_attention_decode", "flops_head")
# Where the device interval is unknown a forward is drawn over the host's; the first known of each counts.
_STARTS = ("start_ns", "launch_start_ns", "plan_end_ns", "plan_start_ns", "result_start_ns", "result_end_ns")
_ENDS = ("end_ns", "result_start_ns", "launch_end_ns", "result_end_ns")
FORWARD_COLUMNS = list(dict.fromkeys(("forward_id", "rank", "mode", *_STARTS, *_ENDS, *_COUNTS, *_FLOPS)))


@dataclass(frozen=True, slots=True)
class ForwardTable:
    """(forwards,) columns in order of `start_ns`. A count the trace lacks is UNKNOWN, a mode UNKNOWN_MODE.

    `start_ns` to `end_ns` is the device interval, or the host's where `on_device` is false. Forwards without
    any time, or without an id, are left out; `untimed` says how many.
    """

    forward_id: NDArray[np.int64]
    rank: NDArray[np.int64]
    mode: NDArray[np.uint8]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    on_device: NDArray[np.bool_]
    slowed: NDArray[np.bool_]  # by a profiler that watched: see profiler.watched
    plan_start_ns: NDArray[np.int64]
    plan_end_ns: NDArray[np.int64]
    result_end_ns: NDArray[np.int64]  # UNKNOWN_TIME where the trace lacks it
    extend_tokens: NDArray[np.int64]
    decode_tokens: NDArray[np.int64]
    pairs_decode: NDArray[np.int64]
    kv_tokens: NDArray[np.int64]
    chunk_budget_start_tokens: NDArray[np.int64]
    pages_total: NDArray[np.int64]
    pages_free: NDArray[np.int64]
    pages_evictable: NDArray[np.int64]
    pages_protected: NDArray[np.int64]
    pages_private: NDArray[np.int64]
    inflight_middle_chunks: NDArray[np.int64]
    waiting_reqs: NDArray[np.int64]
    running_reqs: NDArray[np.int64]
    flops: NDArray[np.int64]
    untimed: int

    def __len__(self) -> int:
        return len(self.forward_id)


def forward_table(trace: TraceLike) -> ForwardTable:
    """The columns of a trace's forwards."""
    forwards = frame(trace, "forwards", FORWARD_COLUMNS).with_row_index("row")
    timed = (
        forwards.select(
            "row",
            "forward_id",
            pl.col("rank").fill_null(0),  # a trace that names none has one
            pl.col("mode").fill_null(UNKNOWN_MODE),
            start_ns=pl.coalesce(*_STARTS),
            end_ns=pl.coalesce(*_ENDS),
            on_device=pl.col("start_ns").is_not_null() & pl.col("end_ns").is_not_null(),
            slowed=slowed(trace, forwards),
            plan_start_ns=pl.coalesce("plan_start_ns", *_STARTS),
            plan_end_ns=pl.coalesce("plan_end_ns", *_STARTS),
            result_end_ns=pl.col("result_end_ns").fill_null(UNKNOWN_TIME),
            flops=pl.sum_horizontal(*_FLOPS, ignore_nulls=False).fill_null(UNKNOWN),
        )
        .hstack(forwards.select(pl.col(name).fill_null(UNKNOWN) for name in _COUNTS))
        .filter(pl.col("start_ns").is_not_null() & pl.col("forward_id").is_not_null())
        .with_columns(end_ns=pl.max_horizontal("start_ns", "end_ns"))
    )
    if not timed["start_ns"].is_sorted():
        timed = timed.sort("start_ns", "row")
    columns = {
        name: np.ascontiguousarray(timed[name].to_numpy())
        for name in ForwardTable.__dataclass_fields__
        if name != "untimed"
    }
    for name in ("forward_id", "rank"):
        columns[name] = columns[name].astype(np.int64)
    return ForwardTable(**columns, untimed=forwards.height - timed.height)
