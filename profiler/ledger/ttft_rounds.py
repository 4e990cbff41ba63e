"""The planning rounds of a rank, and what each says to a request that it did not admit."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode, StopReason
from profiler.forward_positions import ForwardPositions
from profiler.forward_table import ForwardTable
from profiler.ledger.ttft_parts import TtftKind
from profiler.tables import TraceLike, frame

__all__ = ["NO_REASON", "Rounds", "rounds_by_rank"]

Ints = NDArray[np.int64]

NO_REASON = 255
_NOBODY = -1


@dataclass(frozen=True, slots=True)
class Rounds:
    """(rounds,) columns in order of `start_ns`. A round lasts until the next begins; the last has no length.

    Empty where a forward of the rank lacks its `plan_start_ns`: `told` is False then.
    """

    told: bool
    position: Ints  # of its forward in the `ForwardTable`
    start_ns: Ints
    length_ns: Ints
    kind: Ints  # TtftKind: BLOCKED, DEFERRED or UNTOLD
    reason: Ints  # StopReason, or NO_REASON
    blocked_rid: Ints  # the request that admission stopped at; -1 is nobody
    seen: Ints  # (rounds + 1,) the first round from each on that has a queue, at most the number of rounds
    number: Ints  # (forwards,) the round of each forward; -1 where it has none

    def __len__(self) -> int:
        return len(self.position)

    @property
    def says_why(self) -> NDArray[np.bool_]:
        """(rounds,) whether each said what ended admission; where it did not, the rank may have been idle."""
        says: NDArray[np.bool_] = self.reason != NO_REASON
        return says


def rounds_by_rank(trace: TraceLike, forwards: ForwardTable) -> dict[int, Rounds]:
    """The rounds of each rank."""
    columns = ("rank", "forward_id", "plan_start_ns", "stop_reason", "blocked_rid")
    table = frame(trace, "forwards", columns).with_columns(pl.col("rank").fill_null(0))
    untold = set(table.filter(pl.col("plan_start_ns").is_null())["rank"].unique())
    table = table.filter(pl.col("forward_id").is_not_null())
    at = ForwardPositions(forwards.forward_id).of(table["forward_id"].to_numpy())
    reason = _by_position(at, table["stop_reason"], NO_REASON, len(forwards))
    blocked = _by_position(at, table["blocked_rid"], _NOBODY, len(forwards))
    return {
        int(rank): _rounds(forwards, int(rank), reason, blocked, told=rank not in untold)
        for rank in np.unique(forwards.rank)
    }


def _by_position(at: NDArray[np.int32], column: pl.Series, unknown: int, length: int) -> Ints:
    """(forwards,) a column of the table `forwards` in order of the `ForwardTable`."""
    found = np.full(length, unknown, dtype=np.int64)
    found[at[at >= 0]] = column.cast(pl.Int64).fill_null(unknown).to_numpy()[at >= 0]
    return found


def _rounds(forwards: ForwardTable, rank: int, reason: Ints, blocked: Ints, *, told: bool) -> Rounds:
    position = np.flatnonzero(forwards.rank == rank) if told else np.zeros(0, dtype=np.int64)
    position = position[np.argsort(forwards.plan_start_ns[position], kind="stable")]
    start_ns, reason, blocked = forwards.plan_start_ns[position], reason[position], blocked[position]
    has_queue = reason != StopReason.QUEUE_EMPTY.value
    following = np.where(has_queue, np.arange(len(position)), len(position))
    number = np.full(len(forwards), -1, dtype=np.int64)
    number[position] = np.arange(len(position))
    return Rounds(
        told=told,
        position=position,
        start_ns=start_ns,
        length_ns=np.diff(start_ns, append=start_ns[-1:]),
        kind=_kinds(reason, forwards.mode[position]),
        reason=reason,
        blocked_rid=blocked,
        seen=np.append(np.minimum.accumulate(following[::-1])[::-1], len(position)),
        number=number,
    )


def _kinds(reason: Ints, mode: NDArray[np.uint8]) -> Ints:
    """What waiting in each round is. A round that admitted nobody need not say why, others do."""
    kinds = np.full(len(reason), TtftKind.BLOCKED.value, dtype=np.int64)
    kinds[reason == StopReason.INTERVAL.value] = TtftKind.DEFERRED.value
    silent = (reason == NO_REASON) & (mode != ForwardMode.DECODE.value)
    if (reason == NO_REASON).all():  # no round of the rank tells
        silent[:] = True
    kinds[silent | (reason == StopReason.QUEUE_EMPTY.value)] = TtftKind.UNTOLD.value
    return kinds
