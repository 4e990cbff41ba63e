"""The few numbers that stand above a picture of a run."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.forward_table import UNKNOWN, ForwardTable
from profiler.latency import Spread
from profiler.request_rows import RequestRows
from profiler.tables import TraceLike, frame
from profiler.timeline.requests import Requests
from profiler.token_gaps import Gaps

__all__ = ["Kpis", "kpis", "largest"]

Ints = NDArray[np.int64]

LATE_NS = 200_000_000


@dataclass(frozen=True, slots=True)
class Kpis:
    """None is unknown; docs/metrics.md defines each."""

    ttft_s: Spread
    itl_s: Spread
    itl_over_200ms: int
    gaps: int
    output_tokens: int
    output_tokens_per_s: float | None
    kv_pages_peak: int | None
    kv_pages_total: int | None
    largest_forward_tokens: int | None
    queue_longest_s: float | None
    budget_fill: float | None  # share of the chunk budget that prefill forwards used
    activation_peak_bytes: int | None


def kpis(
    trace: TraceLike,
    forwards: ForwardTable,
    rows: RequestRows,
    requests: Requests,
    tokens: tuple[Ints, Ints],
    between: Gaps,
) -> Kpis:
    """The numbers of a whole run; `tokens` and `between` are its `emitted_rows` and `token_gaps`."""
    lengths = between.end_ns - between.start_ns
    at, request = tokens
    times = forwards.result_end_ns[rows.forward[at]]
    first = rows.token_index[at] == 0
    return Kpis(
        ttft_s=Spread.of_ns(_ttft(requests, rows.rids[request[first]], times[first])),
        itl_s=Spread.of_ns(pl.Series(lengths)),
        itl_over_200ms=int((lengths > LATE_NS).sum()),
        gaps=len(lengths),
        output_tokens=len(at),
        output_tokens_per_s=_rate(times, requests, forwards),
        kv_pages_peak=_peak_pages(forwards),
        kv_pages_total=largest(forwards.pages_total),
        largest_forward_tokens=largest(
            np.where(
                (forwards.extend_tokens != UNKNOWN) & (forwards.decode_tokens != UNKNOWN),
                forwards.extend_tokens + forwards.decode_tokens,
                UNKNOWN,
            )
        ),
        queue_longest_s=_queue(requests),
        budget_fill=_budget_fill(forwards),
        activation_peak_bytes=_activation(trace),
    )


def _ttft(requests: Requests, rids: Ints, times: Ints) -> pl.Series:
    arrivals = dict(zip(requests.rid.tolist(), requests.arrival_ns.tolist(), strict=True))
    known = [
        t - arrivals[rid]
        for rid, t in zip(rids.tolist(), times.tolist(), strict=True)
        if arrivals.get(rid, UNKNOWN) != UNKNOWN
    ]
    return pl.Series(known, dtype=pl.Int64)


def _rate(times: Ints, requests: Requests, forwards: ForwardTable) -> float | None:
    """Tokens over the span from the first arrival, or else the first plan, to the last token."""
    arrivals = requests.arrival_ns[requests.arrival_ns != UNKNOWN]
    starts = arrivals if len(arrivals) else forwards.plan_end_ns
    if not len(times) or not len(starts) or times.max() <= starts.min():
        return None
    return float(len(times) / (int(times.max()) - int(starts.min())) * 1e9)


def largest(values: Ints) -> int | None:
    """The largest known value of a column of counts."""
    found = int(values.max(initial=UNKNOWN))
    return None if found == UNKNOWN else found


def _peak_pages(forwards: ForwardTable) -> int | None:
    kinds = (forwards.pages_total, forwards.pages_free, forwards.pages_evictable)
    known = np.logical_and.reduce([kind != UNKNOWN for kind in kinds])
    return largest((kinds[0] - kinds[1] - kinds[2])[known])


def _queue(requests: Requests) -> float | None:
    known = (requests.arrival_ns != UNKNOWN) & (requests.first_scheduled_ns != UNKNOWN)
    waits = (requests.first_scheduled_ns - requests.arrival_ns)[known]
    return float(waits.max() / 1e9) if len(waits) else None


def _budget_fill(forwards: ForwardTable) -> float | None:
    budget = forwards.chunk_budget_start_tokens
    prefill = (budget > 0) & (forwards.extend_tokens >= 0) & (forwards.mode != ForwardMode.DECODE.value)
    if not prefill.any():
        return None
    return float(forwards.extend_tokens[prefill].sum() / budget[prefill].sum())


def _activation(trace: TraceLike) -> int | None:
    added = pl.col("memory_peak_bytes") - pl.col("memory_allocated_bytes")
    largest = frame(trace, "forwards").select(added.max()).item()
    return None if largest is None else int(largest)
