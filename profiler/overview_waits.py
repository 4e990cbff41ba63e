"""Whose waits a run's longest TTFT and queue time are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN
from profiler.timeline.kpis import Kpis
from profiler.timeline.requests import Requests, known

__all__ = ["LongWait", "longest_waits"]

Ints = NDArray[np.int64]


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
