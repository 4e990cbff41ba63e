"""Who is silent where a trace ends: requests whose next token is late and not recorded."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from profiler.forward_table import ForwardTable, forward_table
from profiler.request_rows import RequestRows, request_rows
from profiler.tables import TraceLike, frame, request_names
from profiler.timeline.lifecycle import Lifecycle, Phase, lifecycle
from profiler.token_gaps import emitted_rows

__all__ = ["OpenSilences", "open_silences", "open_silences_among"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OpenSilences:
    """Requests that decode at the end, silent for longer than in any gap they had."""

    requests: int
    name: str  # of the one that is silent for longest
    longest_ns: int
    half_done: str | None  # name of the request that was half-done in the last forward


def open_silences(trace: TraceLike) -> OpenSilences | None:
    """Of a trace; None where nobody is silent, or where the trace does not know who ended."""
    if not _may_be_open(trace):
        return None
    forwards = forward_table(trace)
    rows = request_rows(trace, forwards)
    return open_silences_among(trace, forwards, rows, lifecycle(trace, forwards, rows))


def open_silences_among(
    trace: TraceLike, forwards: ForwardTable, rows: RequestRows, phases: Lifecycle
) -> OpenSilences | None:
    """`open_silences` of columns that are there already."""
    if not len(forwards) or not _may_be_open(trace):
        return None
    end_ns = int(max(forwards.result_end_ns.max(), forwards.end_ns.max()))
    decoding = phases.rid[phases.at(Phase.DECODING, end_ns)]
    silent = {
        int(rid): end_ns - int(times[-1])
        for rid, times in _token_times(decoding, forwards, rows).items()
        if end_ns - times[-1] > np.diff(times).max(initial=0)
    }
    if not silent:
        return None
    longest = max(silent, key=lambda rid: silent[rid])
    names = request_names(trace)
    half_done = _half_done(trace, int(forwards.forward_id[-1]))
    return OpenSilences(
        requests=len(silent),
        name=names.get(longest, str(longest)),
        longest_ns=silent[longest],
        half_done=None if half_done is None else names.get(half_done, str(half_done)),
    )


def _may_be_open(trace: TraceLike) -> bool:
    """Imported traces need not tell how their requests ended."""
    if trace.meta.get("provenance") == "imported":
        return False
    return bool(trace.table("requests").column("finish_reason").null_count)


def _token_times(rids: Ints, forwards: ForwardTable, rows: RequestRows) -> dict[int, Ints]:
    """Of those that gave a token, when they gave each, in time order."""
    times = {}
    for rid in rids:
        mine = rows.only(int(rid))
        given = forwards.result_end_ns[mine.forward[emitted_rows(mine, forwards)[0]]]
        if len(given):
            times[int(rid)] = np.sort(given)
    return times


def _half_done(trace: TraceLike, forward_id: int) -> int | None:
    last = frame(trace, "forwards").filter(pl.col("forward_id") == forward_id)
    rid: int | None = last["chunked_rid"][0]
    return rid
