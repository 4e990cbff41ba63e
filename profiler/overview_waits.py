"""Whose waits a run's longest TTFT and queue time are, and whose prompts that request queued behind."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN
from profiler.ledger.ttft_parts import TtftKind, TtftLedger
from profiler.timeline.kpis import Kpis
from profiler.timeline.requests import Requests, known

__all__ = ["LongWait", "longest_waits", "queued_behind"]

Ints = NDArray[np.int64]

_IN_QUEUE = (TtftKind.QUEUED, TtftKind.BLOCKED, TtftKind.DEFERRED)


@dataclass(frozen=True, slots=True)
class LongWait:
    """The request that waited longest, the one of the lowest rid among equals."""

    rid: int
    name: str
    prompt_tokens: int | None
    wait_ns: int


def longest_waits(requests: Requests, kpis: Kpis) -> tuple[LongWait | None, LongWait | None]:
    """Who waited longest for a first token, and in the queue.

    None where no request has the times, or where their longest is not the run's: then those come from rows
    that say otherwise, and nobody can be named.
    """
    first = _longest(requests, requests.first_token_ns)
    queued = _longest(requests, requests.first_scheduled_ns)
    return _if_equal(first, kpis.ttft_s.max), _if_equal(queued, kpis.queue_longest_s)


def queued_behind(ledger: TtftLedger | None) -> tuple[str, ...]:
    """Names of whom one was in the queue behind, most time first.

    Those whose chunks ran meanwhile, where they fill half of it; else those at whom admission stopped.
    """
    if ledger is None:
        return ()
    waits = [part for part in ledger.parts if part.kind in _IN_QUEUE]
    holders = _by_time((part.chunk.name, part.part_ns) for part in waits if part.chunk is not None)
    if 2 * sum(holders.values()) >= sum(part.part_ns for part in waits):
        return tuple(holders)
    return tuple(_by_time((part.behind_name, part.part_ns) for part in waits if part.behind_name is not None))


def _by_time(spent: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The sum of each name, the largest first."""
    sums: dict[str, int] = {}
    for name, ns in spent:
        sums[name] = sums.get(name, 0) + ns
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def _longest(requests: Requests, until_ns: Ints) -> LongWait | None:
    told = (requests.arrival_ns != UNKNOWN) & (until_ns != UNKNOWN)
    if not told.any():
        return None
    waits = np.where(told, until_ns - requests.arrival_ns, np.iinfo(np.int64).min)
    at = int(np.argmax(waits))
    prompt = known(requests.prompt[at])
    return LongWait(int(requests.rid[at]), requests.names[at], prompt, int(waits[at]))


def _if_equal(found: LongWait | None, longest_s: float | None) -> LongWait | None:
    return found if found is not None and found.wait_ns / 1e9 == longest_s else None
