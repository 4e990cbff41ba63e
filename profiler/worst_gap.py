"""The longest gap of a trace: whose prefill ran in it, and which forward took the most of it."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from engine.batch import ForwardMode, Role
from profiler.culprits import Culprit, culprits
from profiler.forward_table import UNKNOWN, forward_table
from profiler.latency import gaps
from profiler.mixed_extra import DECODE_MEDIAN, mixed_extras
from profiler.tables import TraceLike, frame, request_names

__all__ = ["WorstGap", "worst_gap"]


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


def worst_gap(trace: TraceLike) -> WorstGap | None:
    """The longest gap, the earliest of equals; None when no request gave two tokens.

    A forward's device time in the gap is shared among its extend rows by their tokens. When the own forward
    is MIXED its extend rows are culprits too, of the mixed extra, or of all its device time where that is
    unknown, as far as it lies in the gap.
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
        extra_ns = _extra_of(gap["own_forward_id"], mine, trace)
        in_gap_ns = max(
            0, min(own["end_ns"] or 0, gap["end_ns"]) - max(own["start_ns"] or 0, gap["start_ns"])
        )
        charges[gap["own_forward_id"]] = in_gap_ns if extra_ns is None else min(extra_ns, in_gap_ns)
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


def _extra_of(forward_id: int, mine: pl.DataFrame, trace: TraceLike) -> int | None:
    """The mixed extra of a forward in which the request has a decode row."""
    if not ((mine["forward_id"] == forward_id) & (mine["role"] == Role.DECODE.value)).any():
        return None
    forwards = forward_table(trace)
    at = np.flatnonzero(forwards.forward_id == forward_id)
    extra = int(mixed_extras(forwards)[at[0]]) if len(at) else UNKNOWN
    return None if extra == UNKNOWN else extra
