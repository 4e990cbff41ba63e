"""When tokens came: time to first token, gaps between tokens, output rate. docs/metrics.md defines each."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from profiler.forward_table import forward_table
from profiler.request_rows import request_rows
from profiler.tables import TraceLike, frame
from profiler.token_gaps import emitted_rows, gap_frame, token_gaps

__all__ = ["Latency", "Spread", "first_token_times", "gaps", "latency", "token_times"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of a duration, in seconds, linearly interpolated; None when there is nothing to rank."""

    p50: float | None
    p99: float | None
    max: float | None

    @classmethod
    def of_ns(cls, durations_ns: pl.Series) -> "Spread":
        """The spread of durations in nanoseconds; nulls are left out."""
        known = durations_ns.drop_nulls()
        if known.is_empty():
            return cls(None, None, None)
        values = (known.quantile(q, interpolation="linear") for q in (0.5, 0.99, 1.0))
        return cls(*(None if v is None else v / 1e9 for v in values))


@dataclass(frozen=True, slots=True)
class Latency:
    """What the users of a run felt, all requests together."""

    ttft: Spread
    itl: Spread
    waiting_s: float | None  # the sum of all gaps between tokens
    output_tokens: int
    output_tokens_per_s: float | None


def token_times(trace: TraceLike) -> pl.DataFrame:
    """Every emitted token: rank, rid, token_index, forward_id and t_ns, in order of rid and index.

    A token's time is the `result_end_ns` of the forward that emitted it. A token that several ranks recorded
    counts once, on the lowest rank.
    """
    forwards = forward_table(trace)
    rows = request_rows(trace, forwards)
    at, request = emitted_rows(rows, forwards)
    forward = rows.forward[at]
    return pl.DataFrame(
        {
            "rank": forwards.rank[forward].astype(np.uint32),
            "rid": rows.rids[request].astype(np.uint32),
            "token_index": rows.token_index[at].astype(np.int64),
            "forward_id": forwards.forward_id[forward].astype(np.uint32),
            "t_ns": forwards.result_end_ns[forward],
        }
    )


def gaps(trace: TraceLike) -> pl.DataFrame:
    """Every gap between consecutive tokens of a request, in order of rid and token_index.

    Columns rank, rid, token_index (of the later token), start_ns, end_ns, gap_ns, own_forward_id.
    """
    forwards = forward_table(trace)
    rows = request_rows(trace, forwards)
    return gap_frame(token_gaps(rows, forwards), rows, forwards)


def first_token_times(trace: TraceLike) -> pl.DataFrame:
    """Requests that gave a first token: rid, arrival_ns, first_token_ns, ttft_ns.

    The first token's time comes from the rows, or from the request itself where the trace has no rows of it.
    """
    first = token_times(trace).filter(pl.col("token_index") == 0).select("rid", row_ns="t_ns")
    return (
        frame(trace, "requests")
        .select("rid", "arrival_ns", "first_token_ns")
        .join(first, on="rid", how="left")
        .select("rid", "arrival_ns", first_token_ns=pl.coalesce("row_ns", "first_token_ns"))
        .with_columns(ttft_ns=pl.col("first_token_ns") - pl.col("arrival_ns"))
        .filter(pl.col("ttft_ns").is_not_null())
        .sort("rid")
    )


def latency(trace: TraceLike) -> Latency:
    """TTFT, ITL and output rate of a trace."""
    tokens = token_times(trace)
    between = gaps(trace)["gap_ns"]
    return Latency(
        ttft=Spread.of_ns(first_token_times(trace)["ttft_ns"]),
        itl=Spread.of_ns(between),
        waiting_s=int(between.sum()) / 1e9 if len(between) else None,
        output_tokens=tokens.height,
        output_tokens_per_s=_output_rate(trace, tokens["t_ns"]),
    )


def _output_rate(trace: TraceLike, times_ns: pl.Series) -> float | None:
    """Tokens over the span from the first arrival, or else the first plan, to the last token."""
    if times_ns.is_empty():
        return None
    starts = (frame(trace, "requests")["arrival_ns"].min(), frame(trace, "forwards")["plan_start_ns"].min())
    start_ns = next((s for s in starts if isinstance(s, int)), None)
    end_ns = times_ns.max()
    if start_ns is None or not isinstance(end_ns, int) or end_ns <= start_ns:
        return None
    return len(times_ns) / (end_ns - start_ns) * 1e9
