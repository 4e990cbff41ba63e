"""Who waited for a first token, from when to when, and where the queue ends and prefill begins."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN, UNKNOWN_TIME, ForwardTable
from profiler.ledger.ttft_rounds import Rounds
from profiler.ledger.ttft_rows import TtftRows
from profiler.tables import TraceLike, frame

__all__ = ["OwnRows", "Waits"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Rows until soon after the first token, in order of rid, then of forwards; of a forward only one."""

    rid: Ints
    forward: Ints  # position in the `ForwardTable`
    is_chunk: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: TtftRows) -> "OwnRows":
        """Those that a trace's rows tell."""
        rid = np.concatenate([rows.special.rid, rows.early.rid])
        forward = np.concatenate([rows.special.forward, rows.early.forward])
        is_chunk = np.concatenate([rows.special.is_chunk, np.zeros(len(rows.early.rid), dtype=np.bool_)])
        order = np.lexsort((~is_chunk, forward, rid))
        rid, forward, is_chunk = rid[order], forward[order], is_chunk[order]
        first = (np.diff(rid, prepend=-1) != 0) | (np.diff(forward, prepend=-1) != 0)
        return cls(rid[first], forward[first], is_chunk[first])

    def of_request(self, rid: int) -> slice:
        """Where a request's rows lie."""
        return slice(*np.searchsorted(self.rid, [rid, rid + 1]).tolist())


@dataclass(frozen=True, slots=True)
class Waits:
    """(requests,) columns in order of rid, of requests with an arrival and a later first token.

    From `queue_end_ns` on a request is prefilled. It was in the queue for the rounds `first_round` to
    `last_round`, the latter excluded; before them, from its arrival on, for the rest of a round that began
    without it. Where that is not known both are -1.
    """

    rid: Ints
    rank: Ints  # of the first token; -1 where no row tells
    arrival_ns: Ints
    first_token_ns: Ints
    queue_end_ns: Ints
    first_round: Ints
    last_round: Ints

    @classmethod
    def of(
        cls,
        trace: TraceLike,
        forwards: ForwardTable,
        rows: TtftRows,
        own: OwnRows,
        rounds: dict[int, Rounds],
    ) -> "Waits":
        """Those of a trace."""
        rid, arrival_ns, first_ns, forward = _first_tokens(trace, forwards, rows)
        rank = np.where(forward == UNKNOWN, UNKNOWN, forwards.rank[forward] if len(forwards) else UNKNOWN)
        queue_end, begin, end = first_ns.copy(), np.full_like(rid, -1), np.full_like(rid, -1)
        for number, of_rank in rounds.items():
            there = np.flatnonzero(rank == number)
            if len(there):
                first = _first_rows(forwards, own, of_rank, number, rid[there])
                starts = forwards.plan_start_ns if of_rank.told else forwards.start_ns
                queue_end[there] = starts[first].clip(arrival_ns[there], first_ns[there])
                late = starts[first] > first_ns[there]  # contradictory times tell nothing of a queue
                told = there[~late] if of_rank.told else there[:0]
                begin[told] = np.searchsorted(of_rank.start_ns, arrival_ns[told], side="left")
                end[told] = of_rank.number[first[~late]] if of_rank.told else -1
                begin[told] = np.minimum(of_rank.seen[begin[told]], end[told])
        return cls(rid, rank, arrival_ns, first_ns, queue_end, begin, end)

    def __len__(self) -> int:
        return len(self.rid)

    def index(self, rids: Ints) -> Ints:
        """Where each of some requests stands; -1 where it does not."""
        at = np.searchsorted(self.rid, rids)
        there = at < len(self.rid)
        there[there] = self.rid[at[there]] == rids[there]
        return np.where(there, at, -1)


def _first_tokens(trace: TraceLike, forwards: ForwardTable, rows: TtftRows) -> tuple[Ints, Ints, Ints, Ints]:
    """rid, arrival, time of the first token and its forward, -1 where only the request tells the time."""
    early = rows.early
    gave = (early.token_index == 0) & (forwards.result_end_ns[early.forward] != UNKNOWN_TIME)
    rid, forward = early.rid[gave], early.forward[gave]
    order = np.lexsort((forward, forwards.rank[forward], rid))  # one that several ranks recorded counts once
    rid, forward = rid[order], forward[order]
    first = np.diff(rid, prepend=-1) != 0
    by_row = pl.DataFrame(
        {"rid": rid[first], "forward": forward[first]}, {"rid": pl.Int64, "forward": pl.Int64}
    )
    by_row = by_row.with_columns(row_ns=forwards.result_end_ns[forward[first]])
    told = (
        frame(trace, "requests", ("rid", "arrival_ns", "first_token_ns"))
        .with_columns(pl.col("rid").cast(pl.Int64))
        .join(by_row, on="rid", how="left")
        .select(
            "rid", "arrival_ns", pl.coalesce("row_ns", "first_token_ns"), pl.col("forward").fill_null(UNKNOWN)
        )
        .filter((pl.col("row_ns") >= pl.col("arrival_ns")) & pl.col("rid").is_not_null())
        .sort("rid")
    )
    rid, arrival, first_ns, forward = (told[name].to_numpy() for name in told.columns)
    return rid, arrival, first_ns, forward


def _first_rows(forwards: ForwardTable, own: OwnRows, rounds: Rounds, rank: int, rids: Ints) -> Ints:
    """(requests,) the forward of each one's first row on a rank: first planned, else first to start."""
    order = rounds.number if rounds.told else np.arange(len(forwards))
    here = np.flatnonzero(forwards.rank[own.forward] == rank)
    rid, number = own.rid[here], order[own.forward[here]]
    least = np.lexsort((number, rid))
    rid, number = rid[least], number[least]
    first = number[np.searchsorted(rid, rids)]
    return rounds.position[first] if rounds.told else first
