"""What a timeline needs of every forward and row, computed once a trace."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.forward_table import UNKNOWN, UNKNOWN_TIME, ForwardTable, forward_table
from profiler.mixed_extra import mixed_extra_ns
from profiler.pyramid import Pyramid
from profiler.request_rows import RequestRows, request_rows
from profiler.stalls import stalls_of
from profiler.tables import TraceLike
from profiler.timeline.kpis import Kpis, kpis
from profiler.timeline.requests import Requests, requests_of
from profiler.timeline.strip import forward_pyramid
from profiler.token_gaps import emitted_rows, token_gaps

__all__ = ["Index", "build_index"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Index:
    """Columns and answers that do not depend on the window."""

    start_ns: int
    end_ns: int
    forwards: ForwardTable
    rows: RequestRows
    pyramid: Pyramid  # of forwards, its times from `start_ns`
    emitted: Ints  # (forwards,) tokens given
    mixed_extra_ns: Ints  # (forwards,) UNKNOWN where there is none
    stalls: pl.DataFrame
    worst: tuple[int, int] | None  # rid and token_index of the longest gap
    kpis: Kpis


def build_index(trace: TraceLike) -> Index:
    """Compute everything; takes seconds for millions of rows."""
    forwards = forward_table(trace)
    rows = request_rows(trace, forwards)
    requests = requests_of(trace)
    start_ns, end_ns = _span(forwards, requests)
    at, _ = emitted_rows(rows, forwards)
    return Index(
        start_ns=start_ns,
        end_ns=end_ns,
        forwards=forwards,
        rows=rows,
        pyramid=forward_pyramid(forwards, start_ns),
        emitted=np.bincount(rows.forward[at], minlength=len(forwards)),
        mixed_extra_ns=_mixed_extras(forwards),
        stalls=stalls_of(trace, forwards, rows),
        worst=_worst(forwards, rows),
        kpis=kpis(trace, forwards, rows, requests),
    )


def _span(forwards: ForwardTable, requests: Requests) -> tuple[int, int]:
    arrivals = requests.arrival_ns[requests.arrival_ns != UNKNOWN]
    results = forwards.result_end_ns[forwards.result_end_ns != UNKNOWN_TIME]
    starts = np.concatenate((arrivals, forwards.plan_end_ns, forwards.start_ns))
    ends = np.concatenate((results, forwards.end_ns))
    if not len(starts):
        return 0, 0
    return int(starts.min()), int(ends.max() if len(ends) else starts.max()) + 1


def _mixed_extras(forwards: ForwardTable) -> Ints:
    length_ns = np.where(forwards.on_device, forwards.end_ns - forwards.start_ns, UNKNOWN)
    mixed = forwards.mode == ForwardMode.MIXED.value
    decode = forwards.mode == ForwardMode.DECODE.value
    extras = np.full(len(forwards), UNKNOWN, dtype=np.int64)
    extras[mixed] = mixed_extra_ns(
        *(column[mixed] for column in (forwards.decode_tokens, forwards.pairs_decode, length_ns)),
        *(column[decode] for column in (forwards.decode_tokens, forwards.kv_tokens, length_ns)),
    )
    return extras


def _worst(forwards: ForwardTable, rows: RequestRows) -> tuple[int, int] | None:
    """The longest gap; of equals the earliest, then that of the lowest rid."""
    gaps = token_gaps(rows, forwards)
    lengths = gaps.end_ns - gaps.start_ns
    if not len(lengths):
        return None
    longest = np.flatnonzero(lengths == lengths.max())
    at = longest[gaps.start_ns[longest].argmin()]
    return int(rows.rids[gaps.request[at]]), int(rows.token_index[gaps.row[at]])
