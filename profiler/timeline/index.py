"""What a timeline needs of every forward and row, computed once a trace."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN, UNKNOWN_TIME, ForwardTable, forward_table
from profiler.mixed_extra import mixed_extras
from profiler.pyramid import Pyramid
from profiler.request_rows import RequestRows, request_rows
from profiler.stalls import stalls_among
from profiler.tables import TraceLike
from profiler.timeline.delays import Delays, delays
from profiler.timeline.kpis import Kpis, kpis
from profiler.timeline.lifecycle import Lifecycle, lifecycle
from profiler.timeline.requests import Requests, requests_of
from profiler.timeline.strip import forward_pyramid
from profiler.token_gaps import Gaps, emitted_rows, longest_gap, token_gaps

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
    lifecycle: Lifecycle
    delays: Delays
    stalls: pl.DataFrame
    worst: tuple[int, int] | None  # rid and token_index of the longest gap
    kpis: Kpis


def build_index(trace: TraceLike) -> Index:
    """Compute everything; takes seconds for millions of rows."""
    forwards = forward_table(trace)
    rows = request_rows(trace, forwards)
    requests = requests_of(trace)
    start_ns, end_ns = _span(forwards, requests)
    tokens = emitted_rows(rows, forwards)
    between = token_gaps(rows, forwards, tokens)
    extras = mixed_extras(forwards)
    return Index(
        start_ns=start_ns,
        end_ns=end_ns,
        forwards=forwards,
        rows=rows,
        pyramid=forward_pyramid(forwards, start_ns),
        emitted=np.bincount(rows.forward[tokens[0]], minlength=len(forwards)),
        mixed_extra_ns=extras,
        lifecycle=lifecycle(trace, forwards, rows),
        delays=delays(trace),
        stalls=stalls_among(between, trace, forwards, rows, extras),
        worst=_worst(between, rows),
        kpis=kpis(trace, forwards, rows, requests, tokens, between),
    )


def _span(forwards: ForwardTable, requests: Requests) -> tuple[int, int]:
    arrivals = requests.arrival_ns[requests.arrival_ns != UNKNOWN]
    results = forwards.result_end_ns[forwards.result_end_ns != UNKNOWN_TIME]
    starts = np.concatenate((arrivals, forwards.plan_end_ns, forwards.start_ns))
    ends = np.concatenate((results, forwards.end_ns))
    if not len(starts):
        return 0, 0
    return int(starts.min()), int(ends.max() if len(ends) else starts.max()) + 1


def _worst(between: Gaps, rows: RequestRows) -> tuple[int, int] | None:
    """Request and token of the longest gap."""
    at = longest_gap(between)
    if at is None:
        return None
    return int(rows.rids[between.request[at]]), int(rows.token_index[between.row[at]])
