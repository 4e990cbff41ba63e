"""Counts and peaks of a run: requests, forwards, KV pages, memory. None where the trace cannot tell."""

from dataclasses import dataclass

import polars as pl

from engine.batch import ForwardMode
from engine.observer import EventKind
from engine.request import FinishReason
from profiler.tables import TraceLike, frame

__all__ = ["RunCounts", "count_run"]


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How much of what a run had."""

    requests: int
    requests_by_finish: dict[str, int]  # names of FinishReason, and UNFINISHED
    forwards: int
    forwards_by_mode: dict[str, int]  # names of ForwardMode
    largest_forward_tokens: int | None
    memory_peak_bytes: int | None
    activation_peak_bytes: int | None
    kv_pages_total: int | None
    kv_pages_peak: int | None
    inflight_middle_chunks_max: int | None
    retractions: int | None


def count_run(trace: TraceLike) -> RunCounts:
    """Counts and peaks of a trace."""
    requests = frame(trace, "requests")
    forwards = frame(trace, "forwards")
    used = pl.col("pages_total") - pl.col("pages_free") - pl.col("pages_evictable")
    return RunCounts(
        requests=requests.height,
        requests_by_finish=_by_name(
            requests["finish_reason"], {reason.value: reason.name for reason in FinishReason}, "UNFINISHED"
        ),
        forwards=forwards.height,
        forwards_by_mode=_by_name(
            forwards["mode"], {mode.value: mode.name for mode in ForwardMode}, "UNKNOWN"
        ),
        largest_forward_tokens=_largest(forwards, pl.col("extend_tokens") + pl.col("decode_tokens")),
        memory_peak_bytes=_largest(forwards, pl.col("memory_peak_bytes")),
        activation_peak_bytes=_largest(
            forwards, pl.col("memory_peak_bytes") - pl.col("memory_allocated_bytes")
        ),
        kv_pages_total=_largest(forwards, pl.col("pages_total")),
        kv_pages_peak=_largest(forwards, used),
        inflight_middle_chunks_max=_largest(frame(trace, "rows"), pl.col("inflight_after_plan")),
        retractions=_retractions(trace, forwards),
    )


def _largest(table: pl.DataFrame, value: pl.Expr) -> int | None:
    largest = table.select(value.max()).item()
    return None if largest is None else int(largest)


def _by_name(codes: pl.Series, names: dict[int, str], unknown: str) -> dict[str, int]:
    """Rows by the name of their code, in order of codes; names without rows are left out."""
    counts = {code: int((codes == code).sum()) for code in names}
    named = {names[code]: count for code, count in counts.items() if count}
    rest = len(codes) - sum(named.values())
    return named | {unknown: rest} if rest else named


def _retractions(trace: TraceLike, forwards: pl.DataFrame) -> int | None:
    """From the events where there are any: a round may retract and then plan no forward."""
    events = frame(trace, "events")
    if not events.is_empty():
        return int((events["kind"] == EventKind.RETRACT.value).sum())
    known = forwards["retracted_reqs"].drop_nulls()
    return None if known.is_empty() else int(known.sum())
