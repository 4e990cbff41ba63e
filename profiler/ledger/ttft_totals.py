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
    behind: list[tuple[Ints, Ints]] = [(np.zeros(0, dtype=np.int64),) * 2]  # requests, time
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
            behind.append(blocked_behind(source, rank, queue))
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


def _behind(
    source: TtftSource, behind: list[tuple[Ints, Ints]], top: int | None
) -> tuple[BlockedBehind, ...]:
    who, (blocked_ns,) = _by_request(*(np.concatenate(side) for side in zip(*behind, strict=True)))
    return tuple(
        BlockedBehind(int(who[at]), source.name_of(int(who[at])), int(blocked_ns[at]))
        for at in _largest(who, blocked_ns, top)
    )


def _culprits(source: TtftSource, budget_ns: Ints, running_ns: Ints, top: int | None) -> tuple[TtftCost, ...]:
    who, (cost_ns, for_budget_ns) = _by_request(source.ledger.chunks.rid, budget_ns + running_ns, budget_ns)
    return tuple(
        TtftCost(int(who[at]), source.name_of(int(who[at])), int(cost_ns[at]), int(for_budget_ns[at]))
        for at in _largest(who, cost_ns, top)
    )


def _by_request(rid: Ints, *columns: Ints) -> tuple[Ints, list[Ints]]:
    """Each request once, ascending, and its sum of each column."""
    who, of = np.unique(rid, return_inverse=True)
    sums = [np.zeros(len(who), dtype=np.int64) for _ in columns]
    for total, column in zip(sums, columns, strict=True):
        np.add.at(total, of, column)
    return who, sums


def _largest(who: Ints, ns: Ints, top: int | None) -> list[int]:
    """Places of the largest sums above 0, the lower rid first of equals."""
    order = np.lexsort((who, -ns))
    places: list[int] = order[ns[order] > 0][:top].tolist()
    return places


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
