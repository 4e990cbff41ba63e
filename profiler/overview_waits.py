"""Whose waits a run's longest TTFT and queue time are, and whose prompts that request queued behind."""

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
    """Names of the requests whose chunks ran while one was in the queue, most time first."""
    spent: dict[int, int] = {}
    names: dict[int, str] = {}
    for part in () if ledger is None else ledger.parts:
        if part.kind in _IN_QUEUE and part.chunk is not None:
            spent[part.chunk.rid] = spent.get(part.chunk.rid, 0) + part.part_ns
            names[part.chunk.rid] = part.chunk.name
    return tuple(names[rid] for rid in sorted(spent, key=lambda rid: (-spent[rid], rid)))


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
