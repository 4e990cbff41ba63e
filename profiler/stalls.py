"""Gaps that were stalls: how long a decode was silent, and what held it up.

The one implementation of the definitions in docs/metrics.md; whatever draws or lists a stall asks here.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode, Role
from engine.observer import EventKind
from profiler.device_time import device_intervals, in_spans
from profiler.forward_table import UNKNOWN, UNKNOWN_MODE, UNKNOWN_TIME, ForwardTable, forward_table
from profiler.mixed_extra import extra_estimators, mixed_extras
from profiler.request_rows import RequestRows, request_rows
from profiler.tables import TraceLike, frame, request_names
from profiler.token_gaps import DeviceTime, Gaps, gap_frame, token_gaps

__all__ = ["stalls", "stalls_among"]

Ints = NDArray[np.int64]

_KEYS = ("rank", "rid")
_DELAYS = {
    "sit_outs": EventKind.SIT_OUT,
    "retractions": EventKind.RETRACT,
    "preemptions": EventKind.PREEMPT,
    "deferrals": EventKind.DEFER,
}


def stalls(trace: TraceLike, min_ratio: float = 2.0) -> pl.DataFrame:
    """Stalls of at least `min_ratio` times their request's median gap, longest first.

    - rid, name, rank, token_index, start_ns, end_ns, gap_ns; median_gap_ns of the request, and their ratio;
    - own_forward_id, own_mode, own_start_ns: a stall is drawn from start_ns to own_start_ns;
    - others_ns, other_forwards: device time and number of others' forwards in the gap, null when the trace
      lacks a forward's device interval;
    - sit_outs, retractions, preemptions, deferrals: how often the request itself was held back in the gap;
    - mixed_extra_ns, mixed_extra_estimator: null unless the own forward is MIXED, the request one of its
      decode rows, and the extra could be estimated.
    """
    forwards = forward_table(trace)
    rows = request_rows(trace, forwards)
    return stalls_among(token_gaps(rows, forwards), trace, forwards, rows, mixed_extras(forwards), min_ratio)


def stalls_among(
    between: Gaps,
    trace: TraceLike,
    forwards: ForwardTable,
    rows: RequestRows,
    extras: Ints,
    min_ratio: float = 2.0,
) -> pl.DataFrame:
    """`stalls` for a caller that has a trace's columns, gaps and mixed extras already."""
    median = _medians(between)
    others = _others(between, trace, forwards, rows)
    delays = _delays(between, trace, forwards, rows)
    is_stall = forwards.mode[rows.forward[between.row]] == ForwardMode.MIXED.value
    for count in (*delays.values(), *([] if others is None else [others[0]])):
        is_stall |= count > 0
    chosen = is_stall & (between.end_ns - between.start_ns >= min_ratio * median)
    own = rows.forward[between.row[chosen]]
    unknown = pl.lit(None, pl.Int64)
    found = gap_frame(between.of(chosen), rows, forwards).with_columns(
        median_gap_ns=median[chosen],
        others_ns=unknown if others is None else others[0][chosen],
        other_forwards=unknown if others is None else others[1][chosen],
        own_mode=forwards.mode[own],
        own_start_ns=np.where(forwards.on_device[own], forwards.start_ns[own], UNKNOWN_TIME),
        mixed_extra_ns=np.where(rows.role[between.row[chosen]] == Role.DECODE.value, extras[own], UNKNOWN),
        mixed_extra_estimator=pl.Series(extra_estimators(forwards, extras, own), dtype=pl.String),
        **{name: count[chosen] for name, count in delays.items()},
    )
    return _as_listed(found, request_names(trace))


def _as_listed(found: pl.DataFrame, names: Mapping[int, str]) -> pl.DataFrame:
    """With names, nulls for what is unknown, and in order."""
    named = pl.DataFrame(list(names.items()), {"rid": pl.UInt32, "name": pl.String}, orient="row")
    own_start = pl.col("own_start_ns").clip(pl.col("start_ns"), pl.col("end_ns"))
    return (
        found.with_columns(
            ratio=pl.when(pl.col("median_gap_ns") > 0).then(pl.col("gap_ns") / pl.col("median_gap_ns")),
            own_mode=pl.when(pl.col("own_mode") != UNKNOWN_MODE).then("own_mode"),
            own_start_ns=pl.when(pl.col("own_start_ns") != UNKNOWN_TIME).then(own_start),
            mixed_extra_ns=pl.when(pl.col("mixed_extra_ns") != UNKNOWN).then("mixed_extra_ns"),
        )
        .with_columns(
            mixed_extra_estimator=pl.when(pl.col("mixed_extra_ns").is_not_null()).then("mixed_extra_estimator")
        )
        .join(named, on="rid", how="left")
        .sort("gap_ns", "start_ns", "rid", descending=[True, False, False])
        .select(
            "rid", "name", "rank", "token_index", "start_ns", "end_ns", "gap_ns", "median_gap_ns", "ratio",
            "own_forward_id", "own_mode", "own_start_ns", "others_ns", "other_forwards", *_DELAYS,
            "mixed_extra_ns", "mixed_extra_estimator",
        )
    )  # fmt: skip


def _medians(between: Gaps) -> NDArray[np.float64]:
    """(gaps,) median gap of each one's request."""
    lengths = pl.DataFrame({"request": between.request, "gap_ns": between.end_ns - between.start_ns})
    medians = lengths.group_by("request").agg(pl.col("gap_ns").median(), pl.len()).sort("request")
    return np.repeat(medians["gap_ns"].to_numpy(), medians["len"].to_numpy())


def _others(
    between: Gaps, trace: TraceLike, forwards: ForwardTable, rows: RequestRows
) -> tuple[Ints, Ints] | None:
    """Others' device time and forwards in each gap; None when a device interval is not known."""
    device_time = DeviceTime.of_forwards(forwards)
    if device_time is not None:
        return device_time.of_others(between, rows)
    table = frame(trace, "forwards")
    if table.select((pl.col("start_ns").is_null() | pl.col("end_ns").is_null()).any()).item():
        return None
    spans, intervals = gap_frame(between, rows, forwards), device_intervals(table)
    own_rows = frame(trace, "rows").select("forward_id", "rid").unique()
    by_all = in_spans(spans, intervals, ["rank"])
    by_own = in_spans(spans, intervals.join(own_rows, on="forward_id"), _KEYS)
    difference = by_all.select(pl.col(name) - by_own[name] for name in ("busy_ns", "touching"))
    return difference["busy_ns"].to_numpy(), difference["touching"].to_numpy()


def _delays(between: Gaps, trace: TraceLike, forwards: ForwardTable, rows: RequestRows) -> dict[str, Ints]:
    """How many events of each kind that delays the request lie in (start_ns, end_ns] of each gap."""
    events = frame(trace, "events").filter(pl.col("rid").is_not_null())
    return {
        name: _events_in(between, events.filter(pl.col("kind") == kind.value), forwards, rows)
        for name, kind in _DELAYS.items()
    }


def _events_in(between: Gaps, events: pl.DataFrame, forwards: ForwardTable, rows: RequestRows) -> Ints:
    counts = np.zeros(len(between.row), dtype=np.int64)
    concerned = np.isin(rows.rids, events["rid"].unique().to_numpy())[between.request]
    if concerned.any():
        instants = events.select(*_KEYS, start_ns="t_ns", end_ns="t_ns")
        spans = gap_frame(between.of(concerned), rows, forwards)
        counts[concerned] = in_spans(spans, instants, _KEYS)["ended"].to_numpy()
    return counts
