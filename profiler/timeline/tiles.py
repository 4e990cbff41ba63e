"""What a view gets of a window: columns of things to draw, already reduced to about one a pixel.

Arrays of one tile have one length and are in order of `start_ns`. Times are int64 nanoseconds of the trace.
A count that the trace does not know is `UNKNOWN`, which is no value of a count.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN

__all__ = [
    "UNKNOWN",
    "Counters",
    "Lane",
    "LaneKind",
    "LaneRef",
    "Strip",
    "Sums",
]

Ints = NDArray[np.int64]
Codes = NDArray[np.uint8]


class LaneKind(IntEnum):
    """What an item of a request's lane shows."""

    QUEUED = 0  # from arrival, or from a retraction, to the next forward of the request
    CHUNK = 1  # device interval of a forward that computed some of its prompt
    TOKEN = 2  # an instant at which one of its tokens came
    STALL_PREFILL = 3  # a stall filled by others' forwards: earlier token to own forward's start
    STALL_MIXED = 4  # the mixed extra at the end of a MIXED own forward, as far as it lies in the gap
    STALL_HELD = (
        5  # a stall in which it was held back itself: no KV for its next token, or it gave its KV back
    )
    STALL_DEFERRED = 6  # a stall in which its decode was deferred by the prefill-decode interval
    STALL_UNKNOWN = 7  # a MIXED own forward whose mixed extra is not known: all of it in the gap


@dataclass(frozen=True, slots=True)
class Strip:
    """Forwards of a window, each one by itself, or buckets of them where there are more than columns.

    A bucket's mode, tokens, budget and forward are those of its longest forward; `count` and `busy_ns` are
    sums over all forwards that start in it. `busy_ns` of a single forward is its whole length.
    """

    start_ns: Ints
    end_ns: Ints
    forward_id: Ints  # of the longest
    mode: Codes  # of `engine.batch.ForwardMode`; 255 is unknown
    extend_tokens: Ints
    decode_tokens: Ints
    budget_tokens: Ints  # chunk budget at the start of planning
    count: Ints
    busy_ns: Ints


@dataclass(frozen=True, slots=True)
class LaneRef:
    """A request that has something to draw in a window."""

    rid: int
    name: str
    arrival_ns: int | None
    prompt_tokens: int | None
    first_token_ns: int | None
    finish_ns: int | None
    chunks: int  # of its last attempt so far
    long: bool  # its prompt was computed in more than one chunk, or is much longer than the usual one


@dataclass(frozen=True, slots=True)
class Lane:
    """Items of one request in a window, or buckets of them where there are more than columns.

    Items of different kinds may overlap: draw QUEUED first, then stalls, chunks, tokens. A bucket holds items
    of one kind and shows its longest; `count` and `busy_ns` are sums over its items.
    """

    rid: int
    kind: Codes  # of LaneKind
    start_ns: Ints
    end_ns: Ints
    forward_id: Ints  # chunk: its forward; token, stall: the own forward; queue: UNKNOWN
    number: Ints  # chunk: k of k/n, from 1; token, stall: token_index of the (later) token; queue: 0
    of: Ints  # chunk: n of k/n, UNKNOWN until the last chunk is planned; else UNKNOWN
    tokens: Ints  # chunk: tokens computed; else 0
    count: Ints
    busy_ns: Ints


@dataclass(frozen=True, slots=True)
class Counters:
    """Step lines over a window: each value holds from its time to the next one. First and last included.

    Reduced per column to the forwards with the most and the least KV in use, so peaks stay.
    """

    t_ns: Ints
    pages_total: Ints
    pages_free: Ints
    pages_evictable: Ints
    pages_protected: Ints  # shown as "locked"
    pages_private: Ints
    inflight_middle_chunks: Ints
    waiting_reqs: Ints
    running_reqs: Ints


@dataclass(frozen=True, slots=True)
class Sums:
    """Exact sums over [start_ns, end_ns). A forward belongs to the window in which it starts."""

    start_ns: int
    end_ns: int
    forwards: int
    forwards_by_mode: dict[str, int]
    extend_tokens: int | None
    decode_tokens: int | None
    flops: int | None
    busy_ns: int | None  # device time inside the window, of all forwards that reach into it
    output_tokens: int | None  # tokens whose time lies in the window
    stalls: int  # listed stalls that reach into the window
