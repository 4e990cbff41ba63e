"""The queues of many requests at once: sums by kind and budget, and what they waited behind."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.ledger.ttft_charges import OwnParts, Spans, charge, cover, device_costs
from profiler.ledger.ttft_parts import TtftKind
from profiler.ledger.ttft_source import TtftSource, rest_kind

__all__ = ["QueueSums", "blocked_behind", "queue_sums"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class QueueSums:
    """Of the requests of one rank whose queue is told."""

    by_kind: Ints  # (requests, kinds)
    blocked_ns: Ints  # (rounds,) what each round is to one that is BLOCKED in it
    waiting: Ints  # (rounds,) how many were not admitted in it
    budget_ns: Ints  # (chunks,) what each cost for the budget that it took
    running_ns: Ints  # (chunks,) and for the device, before any round


def queue_sums(source: TtftSource, rank: int, waits: Ints) -> QueueSums:
    """Those of some requests, by their places in `Waits`."""
    rounds, time, chunks = source.rounds[rank], source.ledger.times[rank], source.ledger.chunks
    arrival_ns, queue_end_ns = source.waits.arrival_ns[waits], source.waits.queue_end_ns[waits]
    first, last = source.waits.first_round[waits], source.waits.last_round[waits]
    waiting = cover(first, last, len(rounds))
    by_round, rest_ns = _by_round(source, rank, waiting)
    by_kind = np.zeros((len(waits), len(TtftKind)), dtype=np.int64)
    for kind, ns in by_round.items():
        until_ns = np.append(0, np.cumsum(ns))
        by_kind[:, kind] += until_ns[last] - until_ns[first]
    none = first == last
    queued_ns = np.where(none, queue_end_ns, rounds.start_ns[np.where(none, 0, first)])
    spans = Spans(arrival_ns, queued_ns)
    idle_ns = time.rest_until(queued_ns) - time.rest_until(arrival_ns)
    by_kind[:, TtftKind.QUEUED] += queued_ns - arrival_ns - idle_ns
    by_kind[:, rest_kind(time)] += idle_ns
    budget_ns = np.zeros(len(chunks), dtype=np.int64)
    told = rounds.kind != TtftKind.UNTOLD
    held_ns = np.where(told, rounds.length_ns - rest_ns, 0)
    charge(budget_ns, chunks, source.ledger.split, rounds.position, held_ns, np.where(told, waiting, 0))
    return QueueSums(
        by_kind=by_kind,
        blocked_ns=by_round[TtftKind.BLOCKED],
        waiting=waiting,
        budget_ns=budget_ns,
        running_ns=device_costs(time, chunks, source.ledger.split, spans, OwnParts.none()),
    )


def _by_round(source: TtftSource, rank: int, waiting: Ints) -> tuple[dict[TtftKind, Ints], Ints]:
    """By kind, (rounds,) what each round is to one that waits in it; and what of each nobody holds."""
    rounds, time = source.rounds[rank], source.ledger.times[rank]
    asked = ~rounds.says_why & (rounds.kind != TtftKind.UNTOLD) & (waiting > 0)
    edges = np.flatnonzero(asked | np.append(False, asked)[: len(asked)])  # none waits in the last round
    until_ns = np.zeros(len(rounds), dtype=np.int64)
    until_ns[edges] = time.rest_until(rounds.start_ns[edges])
    rest_ns = np.where(asked, np.append(until_ns[1:], 0) - until_ns, 0)
    by_round = {
        kind: np.where(rounds.kind == kind, rounds.length_ns - rest_ns, 0)
        for kind in (TtftKind.BLOCKED, TtftKind.DEFERRED, TtftKind.UNTOLD)
    }
    rest = by_round.get(rest_kind(time), np.zeros(len(rounds), dtype=np.int64))
    return {**by_round, rest_kind(time): rest + rest_ns}, rest_ns


def blocked_behind(source: TtftSource, rank: int, sums: QueueSums) -> tuple[Ints, Ints]:
    """Requests that admission on a rank stopped at, and how long others were BLOCKED in those rounds."""
    rounds = source.rounds[rank]
    at = np.flatnonzero((rounds.blocked_rid >= 0) & (sums.blocked_ns > 0))
    rid = rounds.blocked_rid[at]
    itself = _waits_in(source, rank, rid, at)
    blocked_ns = sums.blocked_ns[at] * (sums.waiting[at] - itself)
    who, of = np.unique(rid, return_inverse=True)
    total_ns = np.zeros(len(who), dtype=np.int64)
    np.add.at(total_ns, of, blocked_ns)
    return who, total_ns


def _waits_in(source: TtftSource, rank: int, rid: Ints, number: Ints) -> Ints:
    """(pairs,) 1 where a request waits in a round, else 0."""
    waits = source.waits
    at = waits.index(rid)
    inside = np.zeros(len(at), dtype=np.int64)
    known = np.flatnonzero(at >= 0)
    at, number = at[known], number[known]
    there = (waits.rank[at] == rank) & (waits.first_round[at] <= number) & (number < waits.last_round[at])
    inside[known] = there
    return inside
