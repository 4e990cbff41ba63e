"""KV-limited admission: requests wait because the KV pool has no room for them."""

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode, StopReason
from profiler.findings.build import build, median, total
from profiler.findings.finding import Finding, FindingKind, Severity
from profiler.findings.mends import larger_pool
from profiler.findings.run import Run
from profiler.findings.words import forward_words, percent
from profiler.ledger.why import Mend
from profiler.wording import count, duration, plural

__all__ = ["kv_limited"]

_OWN = ("measured", "simulated")  # provenances of this scheduler
_ROOM = 0.1  # of the pool: with so much obtainable it is the reserve that keeps requests out


def kv_limited(run: Run) -> Finding | None:
    """The finding, with the longest stretch as its evidence; None where admission rarely stopped so."""
    table, limit = run.forwards, run.thresholds.kv_limited_share
    if table["stop_reason"].null_count() == table.height:
        return None
    stopped = (pl.col("waiting_reqs") > 0) & (_stated() | _implied(run))
    held = table.select(stopped.fill_null(False)).to_series()
    limited = table.filter(held)
    share = limited.height / table.height
    if limited.is_empty() or share < limit:
        return None
    first, last = _longest(held.to_numpy())
    ids, waiting = table["forward_id"][first : last + 1], int(limited["waiting_reqs"].to_numpy().max())
    queue_ns = (
        None if limited["device_ns"].null_count() else total(limited["device_ns"] * limited["waiting_reqs"])
    )
    obtainable = median((limited["pages_free"] + limited["pages_evictable"]) / limited["pages_total"])
    in_all = "" if queue_ns is None else f", {duration(queue_ns / 1e9)} in all"
    return build(
        FindingKind.KV_LIMITED_ADMISSION,
        Severity.WATCH,
        "KV-limited admission",
        f"Up to {plural(waiting, 'request')} waited for KV{in_all}.",
        evidence=(
            f"{count(limited.height)} of {plural(table.height, 'forward')} ({percent(share)}), "
            f"longest {forward_words(int(ids[0]), int(ids[-1]))}",
            None if obtainable is None else f"{percent(obtainable)} of the pool free or evictable meanwhile",
            f"threshold {percent(limit)}",
        ),
        numbers={
            "forwards": limited.height,
            "share": share,
            "waiting_reqs": waiting,
            "queue_ns": queue_ns,
            "obtainable_share": obtainable,
        },
        threshold=("kv_limited_share", limit),
        forward_ids=ids,
        rids=limited["blocked_rid"].drop_nulls().unique(maintain_order=True),
        mend=_mend(run, obtainable),
        at_ns=table["start_ns"][first],
    )


def _stated() -> pl.Expr:
    return pl.col("stop_reason").is_in([StopReason.TOTAL.value, StopReason.CURRENT.value])


def _implied(run: Run) -> pl.Expr:
    """A decode forward beside a queue, with slots left and no interval: nobody was admitted for lack of KV.

    Once that was so the batch is full until a request leaves it, and nobody is asked. Only of this scheduler.
    """
    slots = run.number("max_running_requests")
    if run.trace.meta.get("provenance") not in _OWN or slots is None:
        return pl.lit(False)
    untold = pl.col("stop_reason").is_null() | (pl.col("stop_reason") == StopReason.BATCH_FULL.value)
    decode = (pl.col("mode") == ForwardMode.DECODE.value) & untold
    return (decode & (pl.col("running_reqs") < min(slots, _riders(run)))).fill_null(False)


def _riders(run: Run) -> float:
    """Decodes that leave room for a prompt in a mixed forward, whose budgets they are taken off first."""
    if not run.flag("enable_mixed_chunk"):
        return math.inf
    budgets = (run.number("chunked_prefill_size"), run.number("max_prefill_tokens"))
    least = max(run.page_size, run.number("truncation_align_size") or 0)
    known = [budget for budget in budgets if budget is not None and budget > 0]
    return min(known, default=math.inf) - least


def _longest(held: NDArray[np.bool_]) -> tuple[int, int]:
    """First and last position of the longest stretch of forwards."""
    edges = np.flatnonzero(np.diff(held.astype(np.int8), prepend=0, append=0))
    begins, ends = edges[::2], edges[1::2]
    at = int(np.argmax(ends - begins))
    return int(begins[at]), int(ends[at]) - 1


def _mend(run: Run, obtainable: float | None) -> Mend:
    """A smaller reserve where that keeps requests out and was not too small already, else a larger pool."""
    now = run.number("schedule_conservativeness")
    retracted = (run.forwards["retracted_reqs"] > 0).any()
    # Requests that ignore EOS reserve all of their output, whatever the option says.
    reserved = not run.requests["ignore_eos"].fill_null(False).all()
    if obtainable is None or obtainable < _ROOM or now is None or retracted or not reserved:
        return larger_pool(run)
    less = f"{now / 2:g}"
    return Mend(
        f"--schedule-conservativeness {less} (now {now:g}) reserves less KV for tokens to come.",
        ("--schedule-conservativeness", less),
    )
