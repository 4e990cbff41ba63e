"""Gaps, stalls and their culprits: how long a decode was silent, and whose prefill ran meanwhile.

The one implementation of the definitions in docs/metrics.md; whatever draws or lists a stall asks here.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode, Role
from engine.observer import EventKind
from profiler.culprits import Culprit, culprits
from profiler.device_time import device_intervals, in_spans
from profiler.forward_table import UNKNOWN_MODE, UNKNOWN_TIME, ForwardTable, forward_table
from profiler.latency import gaps
from profiler.mixed_extra import DECODE_MEDIAN, mixed_extras
from profiler.request_rows import RequestRows, request_rows
from profiler.tables import TraceLike, frame, request_names
from profiler.token_gaps import DeviceTime, Gaps, gap_frame, token_gaps

__all__ = ["WorstGap", "stalls", "stalls_of", "worst_gap"]

_KEYS = ("rank", "rid")
_DELAYS = {
    "sit_outs": EventKind.SIT_OUT,
    "retractions": EventKind.RETRACT,
    "deferrals": EventKind.DEFER,
}


@dataclass(frozen=True, slots=True)
class WorstGap:
    """The longest gap of a trace, and what ran in it."""

    rid: int
    name: str
    token_index: int  # of the token that came late
    start_ns: int
    end_ns: int
    own_forward_id: int
    own_mode: ForwardMode | None
    forward_ids: tuple[int, ...]  # others' forwards with device time in the gap, in time order
    modes: tuple[ForwardMode, ...]  # of those
    culprits: tuple[Culprit, ...]  # most device time first
    culprit_forward_id: int | None  # the forward that took the most of the gap, its own only when MIXED
    mixed_extra_ns: int | None
    mixed_extra_estimator: str | None

    @property
    def gap_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.start_ns


def stalls(trace: TraceLike, min_ratio: float = 2.0) -> pl.DataFrame:
    """Stalls of at least `min_ratio` times their request's median gap, longest first.

    - rid, name, rank, token_index, start_ns, end_ns, gap_ns; median_gap_ns of the request, and their ratio;
    - own_forward_id, own_mode, own_start_ns: a stall is drawn from start_ns to own_start_ns;
    - others_ns, other_forwards: device time and number of others' forwards in the gap, null when the trace
      lacks a forward's device interval;
    - sit_outs, retractions, deferrals: how often the request itself was held back in the gap;
    - mixed_extra_ns, mixed_extra_estimator: null unless the own forward is MIXED, the request one of its
      decode rows, and the extra could be estimated.
    """
    forwards = forward_table(trace)
    return stalls_of(trace, forwards, request_rows(trace, forwards), min_ratio)


def stalls_of(
    trace: TraceLike, forwards: ForwardTable, rows: RequestRows, min_ratio: float = 2.0
) -> pl.DataFrame:
    """`stalls` for a caller that has the trace's forwards and rows as columns already."""
    between = token_gaps(rows, forwards)
    median = _medians(between)
    others = _others(between, trace, forwards, rows)
    counts = _delays(between, trace, forwards, rows)
    mixed = forwards.mode[rows.forward[between.row]] == ForwardMode.MIXED.value
    held = np.logical_or.reduce([count > 0 for count in counts.values()])
    is_stall = mixed | held if others is None else mixed | held | (others[0] > 0)
    chosen = is_stall & (between.end_ns - between.start_ns >= min_ratio * median)
    unknown = pl.lit(None, pl.Int64)
    own = rows.forward[between.row[chosen]]
    named = pl.DataFrame(
        list(request_names(trace).items()), {"rid": pl.UInt32, "name": pl.String}, orient="row"
    )
    listed = (
        gap_frame(between.of(chosen), rows, forwards)
        .with_columns(
            median_gap_ns=median[chosen],
            others_ns=unknown if others is None else others[0][chosen],
            other_forwards=unknown if others is None else others[1][chosen],
            own_mode=forwards.mode[own],
            own_start_ns=np.where(forwards.on_device[own], forwards.start_ns[own], UNKNOWN_TIME),
            role=rows.role[between.row[chosen]],
            **{name: count[chosen] for name, count in counts.items()},
        )
        .with_columns(
            ratio=pl.when(pl.col("median_gap_ns") > 0).then(pl.col("gap_ns") / pl.col("median_gap_ns")),
            own_mode=pl.when(pl.col("own_mode") != UNKNOWN_MODE).then("own_mode"),
            own_start_ns=pl.when(pl.col("own_start_ns") != UNKNOWN_TIME).then(
                pl.col("own_start_ns").clip(pl.col("start_ns"), pl.col("end_ns"))
            ),
        )
        .join(named, on="rid", how="left")
        .sort("gap_ns", "start_ns", "rid", descending=[True, False, False])
    )
    return _with_extras(listed, trace).select(
        "rid", "name", "rank", "token_index", "start_ns", "end_ns", "gap_ns", "median_gap_ns", "ratio",
        "own_forward_id", "own_mode", "own_start_ns", "others_ns", "other_forwards", *_DELAYS,
        "mixed_extra_ns", "mixed_extra_estimator",
    )  # fmt: skip


def worst_gap(trace: TraceLike) -> WorstGap | None:
    """The longest gap, the earliest of equals; None when no request gave two tokens.

    A forward's device time in the gap is shared among its extend rows by their tokens. When the own forward
    is MIXED its extend rows are culprits too, of the mixed extra, or of its whole device time where that is
    unknown.
    """
    every = gaps(trace)
    if every.is_empty():
        return None
    gap = every.sort("gap_ns", "start_ns", "rid", descending=[True, False, False]).row(0, named=True)
    forwards = frame(trace, "forwards")
    rows = frame(trace, "rows")
    mine = rows.filter((pl.col("rid") == gap["rid"]) & (pl.col("rank") == gap["rank"]))
    others = _others_in_gap(forwards, gap["rank"], gap["start_ns"], gap["end_ns"], mine)
    own = forwards.filter(pl.col("forward_id") == gap["own_forward_id"]).row(0, named=True)
    own_mode = None if own["mode"] is None else ForwardMode(own["mode"])
    charges = dict(others.select("forward_id", "in_gap_ns").iter_rows())
    extra_ns = None
    if own_mode is ForwardMode.MIXED:
        extra_ns = _extra_of(gap["own_forward_id"], mine, forwards)
        whole_ns = (own["end_ns"] or 0) - (own["start_ns"] or 0)
        charges[gap["own_forward_id"]] = whole_ns if extra_ns is None else extra_ns
    names = request_names(trace)
    return WorstGap(
        rid=gap["rid"],
        name=names.get(gap["rid"], str(gap["rid"])),
        token_index=gap["token_index"],
        start_ns=gap["start_ns"],
        end_ns=gap["end_ns"],
        own_forward_id=gap["own_forward_id"],
        own_mode=own_mode,
        forward_ids=tuple(others["forward_id"]),
        modes=tuple(ForwardMode(mode) for mode in others["mode"]),
        culprits=culprits(charges, rows.filter(pl.col("rid") != gap["rid"]), names),
        culprit_forward_id=max(charges, key=lambda i: (charges[i], -i), default=None),
        mixed_extra_ns=extra_ns,
        mixed_extra_estimator=None if extra_ns is None else DECODE_MEDIAN,
    )


def _medians(between: Gaps) -> NDArray[np.float64]:
    """(gaps,) median gap of each one's request."""
    lengths = pl.DataFrame({"request": between.request, "gap_ns": between.end_ns - between.start_ns})
    medians = lengths.group_by("request").agg(pl.col("gap_ns").median(), pl.len()).sort("request")
    return np.repeat(medians["gap_ns"].to_numpy(), medians["len"].to_numpy())


def _others(
    between: Gaps, trace: TraceLike, forwards: ForwardTable, rows: RequestRows
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
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


def _delays(
    between: Gaps, trace: TraceLike, forwards: ForwardTable, rows: RequestRows
) -> dict[str, NDArray[np.int64]]:
    """How many events of each kind that delays the request lie in (start_ns, end_ns] of each gap."""
    events = frame(trace, "events").filter(pl.col("rid").is_not_null())
    return {
        name: _events_in(between, events.filter(pl.col("kind") == kind.value), forwards, rows)
        for name, kind in _DELAYS.items()
    }


def _events_in(
    between: Gaps, events: pl.DataFrame, forwards: ForwardTable, rows: RequestRows
) -> NDArray[np.int64]:
    counts = np.zeros(len(between.row), dtype=np.int64)
    concerned = np.isin(rows.rids, events["rid"].unique().to_numpy())[between.request]
    if concerned.any():
        instants = events.select(*_KEYS, start_ns="t_ns", end_ns="t_ns")
        spans = gap_frame(between.of(concerned), rows, forwards)
        counts[concerned] = in_spans(spans, instants, _KEYS)["ended"].to_numpy()
    return counts


def _with_extras(listed: pl.DataFrame, trace: TraceLike) -> pl.DataFrame:
    """Adds the mixed extra where the own forward is MIXED and the request is one of its decode rows."""
    extras = mixed_extras(frame(trace, "forwards"), listed["own_forward_id"].unique())
    table = pl.DataFrame(
        {"own_forward_id": list(extras), "extra_ns": list(extras.values())},
        {"own_forward_id": listed.schema["own_forward_id"], "extra_ns": pl.Int64},
    )
    known = pl.col("mixed_extra_ns").is_not_null()
    return (
        listed.join(table, on="own_forward_id", how="left")
        .with_columns(mixed_extra_ns=pl.when(pl.col("role") == Role.DECODE.value).then("extra_ns"))
        .with_columns(mixed_extra_estimator=pl.when(known).then(pl.lit(DECODE_MEDIAN)))
    )


def _others_in_gap(
    forwards: pl.DataFrame, rank: int, start_ns: int, end_ns: int, mine: pl.DataFrame
) -> pl.DataFrame:
    """Forwards without a row of the request and their device time in the gap, in time order."""
    return (
        forwards.filter(
            (pl.col("rank") == rank)
            & (pl.col("start_ns") < end_ns)
            & (pl.col("end_ns") > start_ns)
            & (pl.col("end_ns") > pl.col("start_ns"))
        )
        .join(mine.select("forward_id"), on="forward_id", how="anti")
        .with_columns(
            in_gap_ns=pl.min_horizontal("end_ns", pl.lit(end_ns))
            - pl.max_horizontal("start_ns", pl.lit(start_ns))
        )
        .sort("start_ns", "forward_id")
    )


def _extra_of(forward_id: int, mine: pl.DataFrame, forwards: pl.DataFrame) -> int | None:
    decoding = (mine["forward_id"] == forward_id) & (mine["role"] == Role.DECODE.value)
    return mixed_extras(forwards, [forward_id]).get(forward_id) if decoding.any() else None
