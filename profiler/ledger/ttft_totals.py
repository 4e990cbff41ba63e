"""The ledgers of all first tokens of a trace, summed without taking any apart."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from engine.batch import StopReason
from profiler.ledger.ttft_parts import BlockedBehind, TtftCost, TtftKind, TtftSum, TtftTotals
from profiler.ledger.ttft_prefill import prefill_sums
from profiler.ledger.ttft_queue import QueueSums, blocked_behind, queue_sums
from profiler.ledger.ttft_rounds import NO_REASON, Rounds
from profiler.ledger.ttft_source import TtftSource
from profiler.ledger.ttft_spells import with_spells
from profiler.tables import TraceLike

__all__ = ["sum_ttft", "ttft_totals"]

Ints = NDArray[np.int64]


def ttft_totals(trace: TraceLike, top: int | None = 10) -> TtftTotals:
    """The sums over `ttft_ledger` of every request, exactly, with the `top` of each list, or all of them."""
    return sum_ttft(TtftSource.of(trace), top)


def sum_ttft(source: TtftSource, top: int | None = 10) -> TtftTotals:
    """`ttft_totals` for a caller who asks for more."""
    waits, chunks = source.waits, source.ledger.chunks
    by_kind = np.zeros((len(waits), len(TtftKind)), dtype=np.int64)
    budget_ns, running_ns = np.zeros((2, len(chunks)), dtype=np.int64)
    by_reason = np.zeros(NO_REASON + 1, dtype=np.int64)
    behind: dict[int, int] = {}
    queues: dict[int, QueueSums] = {}
    piecewise = with_spells(source)
    untold = waits.first_round < 0
    by_kind[untold, TtftKind.UNTOLD] = (waits.queue_end_ns - waits.arrival_ns)[untold]
    for rank in source.rounds:
        here = np.flatnonzero(waits.rank == rank)
        prefill = prefill_sums(source, rank, here, piecewise)
        by_kind[here] += prefill.by_kind
        running_ns += prefill.running_ns
        told = here[waits.first_round[here] >= 0]
        if len(told):
            queue = queues[rank] = queue_sums(source, rank, told)
            by_kind[told] += queue.by_kind
            budget_ns += queue.budget_ns
            running_ns += queue.running_ns
            np.add.at(by_reason, source.rounds[rank].reason, queue.blocked_ns * queue.waiting)
            for rid, ns in zip(*map(np.ndarray.tolist, blocked_behind(source, rank, queue)), strict=True):
                behind[rid] = behind.get(rid, 0) + ns
    return TtftTotals(
        requests=len(waits),
        waiting_ns=int((waits.first_token_ns - waits.arrival_ns).sum()),
        by_kind=_kinds(by_kind.sum(axis=0)),
        by_budget=_budgets(by_reason),
        culprits=_culprits(source, budget_ns, running_ns, top),
        behind=_behind(source, behind, top),
        worst=_worst(source, by_kind, queues, top),
        split=source.ledger.split.name,
    )


def _behind(source: TtftSource, behind: Mapping[int, int], top: int | None) -> tuple[BlockedBehind, ...]:
    ranked = sorted(((rid, ns) for rid, ns in behind.items() if ns), key=lambda item: (-item[1], item[0]))
    return tuple(BlockedBehind(rid, source.name_of(rid), ns) for rid, ns in ranked[:top])


def _culprits(source: TtftSource, budget_ns: Ints, running_ns: Ints, top: int | None) -> tuple[TtftCost, ...]:
    who, of = np.unique(source.ledger.chunks.rid, return_inverse=True)
    sums = np.zeros((2, len(who)), dtype=np.int64)
    np.add.at(sums[0], of, budget_ns)
    np.add.at(sums[1], of, running_ns)
    cost_ns = sums.sum(axis=0)
    order = np.lexsort((who, -cost_ns))
    order = order[cost_ns[order] > 0][:top]
    columns = (who[order], cost_ns[order], sums[0][order])
    return tuple(
        TtftCost(rid, source.name_of(rid), cost, budget)
        for rid, cost, budget in zip(*(column.tolist() for column in columns), strict=True)
    )


def _worst(
    source: TtftSource, by_kind: Ints, queues: Mapping[int, QueueSums], top: int | None
) -> tuple[TtftSum, ...]:
    """The requests that waited longest, the earliest of equals first."""
    waits = source.waits
    ttft_ns = waits.first_token_ns - waits.arrival_ns
    order = np.lexsort((waits.rid, waits.arrival_ns, -ttft_ns))[:top]
    return tuple(
        TtftSum(
            rid=int(waits.rid[at]),
            name=source.name_of(int(waits.rid[at])),
            arrival_ns=int(waits.arrival_ns[at]),
            first_token_ns=int(waits.first_token_ns[at]),
            by_kind=_kinds(by_kind[at]),
            by_budget=_budgets(_reasons(source, at, queues)),
        )
        for at in order.tolist()
    )


def _reasons(source: TtftSource, wait: int, queues: Mapping[int, QueueSums]) -> Ints:
    """BLOCKED time of one request by reason."""
    by_reason = np.zeros(NO_REASON + 1, dtype=np.int64)
    queue = queues.get(int(source.waits.rank[wait]))
    if queue is not None and source.waits.first_round[wait] >= 0:
        rounds: Rounds = source.rounds[int(source.waits.rank[wait])]
        mine = slice(int(source.waits.first_round[wait]), int(source.waits.last_round[wait]))
        np.add.at(by_reason, rounds.reason[mine], queue.blocked_ns[mine])
    return by_reason


def _kinds(sums: Ints) -> dict[TtftKind, int]:
    return dict(zip(TtftKind, sums.tolist(), strict=True))


def _budgets(by_reason: Ints) -> dict[StopReason | None, int]:
    """Those that blocked anybody, in order of `StopReason`, then what no round told."""
    codes: dict[StopReason | None, int] = {reason: reason.value for reason in StopReason}
    codes[None] = NO_REASON
    return {reason: int(by_reason[code]) for reason, code in codes.items() if by_reason[code]}
