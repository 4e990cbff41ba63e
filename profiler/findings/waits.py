"""The longest gap between two tokens, and how many come near it."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from profiler.latency import Spread, gaps
from profiler.ledger.parts import PartKind
from profiler.ledger.report import StallReport
from profiler.tables import TraceLike

__all__ = ["Waits", "waits_by_gaps", "waits_by_ledger"]


@dataclass(frozen=True, slots=True)
class Waits:
    """Gaps of a run. None is unknown."""

    gaps: int
    p99_ns: float
    longest_ns: int
    start_ns: int  # of the longest
    own_forward_id: int
    rids: tuple[int, ...]  # who waited then and for as long
    cause: PartKind | None  # the ledger's
    wall_gaps: int | None  # gaps that are as many times p99 as the threshold says


def waits_by_ledger(stalls: StallReport, itl: Spread) -> Waits | None:
    """From what is known already; None without gaps."""
    longest = stalls.longest
    if longest is None or itl.p99 is None:
        return None
    return Waits(
        gaps=stalls.gaps,
        p99_ns=itl.p99 * 1e9,
        longest_ns=longest.gap_ns,
        start_ns=longest.start_ns,
        own_forward_id=longest.own_forward_id,
        rids=longest.rids,
        cause=longest.cause,
        wall_gaps=None,
    )


def waits_by_gaps(trace: TraceLike, stalls: StallReport | None, ratio: float) -> Waits | None:
    """From every gap of the trace; None without gaps."""
    found = gaps(trace)
    if found.is_empty():
        return None
    lengths = found["gap_ns"].to_numpy()
    p99 = float(np.percentile(lengths, 99))
    longest = found.filter(pl.col("gap_ns") == lengths.max()).sort("start_ns", "rid")
    with_it = longest.filter(
        pl.col("start_ns") == longest["start_ns"][0],
        pl.col("own_forward_id") == longest["own_forward_id"][0],
    )
    known = None if stalls is None else stalls.longest
    return Waits(
        gaps=len(lengths),
        p99_ns=p99,
        longest_ns=int(lengths.max()),
        start_ns=int(longest["start_ns"][0]),
        own_forward_id=int(longest["own_forward_id"][0]),
        rids=tuple(with_it["rid"].to_list()),
        cause=None if known is None else known.cause,
        wall_gaps=int((lengths >= ratio * p99).sum()),
    )
