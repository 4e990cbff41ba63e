"""When each request waited, was in prefill, and decoded, from a trace's events and rows."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import Role
from engine.observer import EventKind
from profiler.forward_table import UNKNOWN_TIME, ForwardTable
from profiler.request_rows import RequestRows
from profiler.tables import TraceLike, frame

__all__ = ["Lifecycle", "Phase", "lifecycle"]

Ints = NDArray[np.int64]

FOREVER = int(np.iinfo(np.int64).max)


class Phase(IntEnum):
    """What a request that has arrived and not ended does."""

    WAITING = 0
    PREFILL = 1
    DECODING = 2


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """(phases,) intervals [from_ns, to_ns) in order of from_ns; an open one lasts to FOREVER."""

    rid: Ints
    phase: NDArray[np.uint8]
    from_ns: Ints
    to_ns: Ints
    since_ns: Ints  # from when a wait counts: the arrival, not when the engine noticed it

    def at(self, phase: Phase, t_ns: int) -> Ints:
        """Positions of the intervals of this phase that hold `t_ns`."""
        return np.flatnonzero((self.phase == phase) & (self.from_ns <= t_ns) & (t_ns < self.to_ns))

    def of(self, rid: int, phase: Phase) -> Ints:
        """Positions of a request's intervals of this phase."""
        return np.flatnonzero((self.rid == rid) & (self.phase == phase))


_MARKS = {
    EventKind.ARRIVE: Phase.WAITING,
    EventKind.REQUEUE: Phase.WAITING,
    EventKind.ADMIT: Phase.PREFILL,
    EventKind.RETRACT: None,
    EventKind.PREEMPT: None,
    EventKind.FINISH: None,
    EventKind.ABORT: None,
}
# What comes first at one instant, as on a virtual clock, where planning takes no time.
_ARRIVED, _ADMITTED, _PREFILLED, _LATER = range(4)
_PLACES = {EventKind.ARRIVE: _ARRIVED, EventKind.ADMIT: _ADMITTED}


def lifecycle(trace: TraceLike, forwards: ForwardTable, rows: RequestRows) -> Lifecycle:
    """From events; a trace without any gets it from its requests' times and its rows."""
    events = frame(trace, "events")
    marks = _from_events(events, forwards) if len(events) else _from_requests(frame(trace, "requests"))
    merged = pl.concat([marks, _prefill_ends(forwards, rows)]).sort(
        "rid", "t_ns", "place", "order", maintain_order=True
    )
    in_prefill = pl.col("phase").shift(1).over("rid").eq_missing(Phase.PREFILL.value)
    spans = (
        merged.filter(in_prefill | (pl.col("phase") != Phase.DECODING.value).fill_null(True))
        .with_columns(to_ns=pl.col("t_ns").shift(-1).over("rid").fill_null(FOREVER))
        .filter(pl.col("phase").is_not_null() & (pl.col("to_ns") > pl.col("t_ns")))
        .sort("t_ns", "place", "order", maintain_order=True)
    )
    return Lifecycle(
        rid=spans["rid"].cast(pl.Int64).to_numpy(),
        phase=spans["phase"].to_numpy(),
        from_ns=spans["t_ns"].to_numpy(),
        to_ns=spans["to_ns"].to_numpy(),
        since_ns=spans["since_ns"].to_numpy(),
    )


_SCHEMA = pl.Schema(
    {
        "rid": pl.Int64(),
        "t_ns": pl.Int64(),
        "since_ns": pl.Int64(),
        "phase": pl.UInt8(),
        "place": pl.UInt8(),
        "order": pl.Int64(),
    }
)


def _from_events(events: pl.DataFrame, forwards: ForwardTable) -> pl.DataFrame:
    """What arrives while a forward is planned is noticed after it."""
    kinds = pl.DataFrame(
        {
            "kind": [k.value for k in _MARKS],
            "phase": [None if p is None else p.value for p in _MARKS.values()],
            "place": [_PLACES.get(k, _LATER) for k in _MARKS],
        },
        {"kind": pl.UInt8, "phase": pl.UInt8, "place": pl.UInt8},
    )
    plans = pl.DataFrame(
        {
            "rank": forwards.rank.astype(np.uint32),
            "plan_start_ns": forwards.plan_start_ns,
            "plan_end_ns": forwards.plan_end_ns,
        }
    )
    arrives = pl.col("kind") == EventKind.ARRIVE.value
    return (
        events.with_row_index("order")
        .filter(pl.col("rid").is_not_null() & pl.col("t_ns").is_not_null())
        .join(kinds, on="kind")
        .with_columns(pl.col("rank").fill_null(0))
        .sort("t_ns", "order")
        .join_asof(
            plans.sort("plan_start_ns"),
            left_on="t_ns",
            right_on="plan_start_ns",
            by="rank",
            allow_exact_matches=False,
            check_sortedness=False,
        )
        .select(
            pl.col("rid").cast(pl.Int64),
            t_ns=pl.when(arrives & (pl.col("t_ns") <= pl.col("plan_end_ns")))
            .then(pl.col("plan_end_ns") + 1)
            .otherwise("t_ns"),
            since_ns="t_ns",
            phase="phase",
            place="place",
            order=pl.col("order").cast(pl.Int64),
        )
        .cast(_SCHEMA)
    )


def _from_requests(requests: pl.DataFrame) -> pl.DataFrame:
    marks = [
        requests.select(
            "rid",
            t_ns=column,
            phase=pl.lit(None if phase is None else phase.value, pl.UInt8),
            place=pl.lit(place, pl.UInt8),
        )
        for column, phase, place in (
            ("arrival_ns", Phase.WAITING, _ARRIVED),
            ("first_scheduled_ns", Phase.PREFILL, _ADMITTED),
            ("finish_ns", None, _LATER),
        )
    ]
    return (
        pl.concat(marks)
        .filter(pl.col("rid").is_not_null() & pl.col("t_ns").is_not_null())
        .with_columns(since_ns=pl.col("t_ns"), order=pl.int_range(pl.len()))
        .select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())
    )


def _prefill_ends(forwards: ForwardTable, rows: RequestRows) -> pl.DataFrame:
    """Where a last chunk's result was known, or the next forward was planned, whichever came first."""
    last = np.flatnonzero((rows.role == Role.WHOLE.value) | (rows.role == Role.LAST.value))
    request = np.searchsorted(rows.bounds, last, side="right") - 1
    forward = rows.forward[last]
    next_plan = np.append(forwards.plan_end_ns, FOREVER)[forward + 1] if len(last) else last
    result = forwards.result_end_ns[forward]
    t_ns = np.where(result == UNKNOWN_TIME, next_plan, np.minimum(result, next_plan))
    return pl.DataFrame(
        {
            "rid": rows.rids[request],
            "t_ns": t_ns,
            "since_ns": t_ns,
            "phase": np.full(len(last), Phase.DECODING.value, dtype=np.uint8),
            "place": np.full(len(last), _PREFILLED),
            "order": np.zeros(len(last), dtype=np.int64),
        },
        _SCHEMA,
    )
