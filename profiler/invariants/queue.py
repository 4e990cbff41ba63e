"""The queue: how many requests wait, and how many prompt tokens."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.observer import EventKind
from profiler.invariants.cursor import prefill_targets
from profiler.invariants.expressions import ATTEMPT, FORWARD, is_middle, seq, starts_attempt
from profiler.invariants.rule import Finding, Rule, Tables

__all__ = ["QUEUE_RULES"]

Ids = NDArray[np.int64]

EVER, NEVER = -1, 2**62  # forward ids before the first and after the last


def _waiting(tables: Tables) -> Finding:
    """Arrived or queued again, and neither admitted nor aborted.

    An arrival or an abort happens between two rounds. Which they are is told by the events around it; where
    these leave it open both are allowed.
    """
    parts = [
        _waiting_of_rank(tables, forwards)
        for forwards in tables.decided.drop_nulls(FORWARD).partition_by("rank", maintain_order=True)
    ]
    if not parts:
        return Finding(0, tables.forwards)
    both = pl.concat(parts)
    waiting = pl.col("waiting_reqs")
    broken = both.filter(~waiting.is_between(pl.col("least"), pl.col("most")))
    return Finding(len(both), broken.select("forward_id", waiting, "least", "most"))


def _waiting_of_rank(tables: Tables, forwards: pl.DataFrame) -> pl.DataFrame:
    rank = forwards["rank"][0]
    ids = forwards["forward_id"].to_numpy()
    overlap = bool(forwards["overlapped"].any()) or tables.option("disable_overlap_schedule") is False
    events = _between_admissions(tables.events.filter(pl.col("rank") == rank), rounds=2 if overlap else 1)
    kind = pl.col("kind")
    arrivals = events.filter(kind == EventKind.ARRIVE.value)
    admitted = events.filter(kind == EventKind.ADMIT.value)
    aborts = events.filter(kind == EventKind.ABORT.value).join(admitted, on=ATTEMPT, how="anti")
    again = events.filter(kind == EventKind.REQUEUE.value)
    new = tables.rows.filter((pl.col("rank") == rank) & starts_attempt)
    settled = _up_to(again["forward_id"], ids) - _up_to(new["forward_id"], ids)
    return forwards.select("forward_id", "waiting_reqs").with_columns(
        least=_up_to(arrivals["surely_from"], ids) + settled - _up_to(aborts["maybe_from"], ids),
        most=_up_to(arrivals["maybe_from"], ids) + settled - _up_to(aborts["surely_from"], ids),
    )


def _between_admissions(events: pl.DataFrame, rounds: int) -> pl.DataFrame:
    """Events with the first forward before whose planning they may, and must, have happened.

    An event between rounds names the forward that was planned or processed last. Another is planned after it:
    the next, or under overlap the one after that, whose plan comes before this one's result. The time of an
    arrival is the request's own: it may have been queued only after an admission that is told behind it.
    """
    admitted = pl.when(pl.col("kind") == EventKind.ADMIT.value).then(pl.col("forward_id"))
    before, after = admitted.forward_fill(), admitted.backward_fill()
    told = pl.col("forward_id")
    latest = (told + rounds).fill_null(NEVER)
    arrives = (pl.col("kind") == EventKind.ARRIVE.value) & told.is_not_null()
    return events.with_columns(
        maybe_from=pl.max_horizontal(told.fill_null(EVER), (before + 1).fill_null(EVER)),
        surely_from=pl.when(arrives)
        .then(latest)
        .otherwise(pl.min_horizontal(latest, after.fill_null(NEVER))),
    )


def _up_to(from_: pl.Series, ids: Ids) -> Ids:
    """(ids,) how many of `from_` are at or before each forward."""
    counts: Ids = np.searchsorted(np.sort(from_.to_numpy()), ids, side="right")
    return counts


def _pending(tables: Tables) -> Finding:
    """Where nobody waits they are the rest of the half-done prompt; everybody who waits adds one or more."""
    targets = prefill_targets(tables).select(*ATTEMPT, "target")
    half_done = (
        tables.rows.filter(is_middle)
        .join(targets, on=ATTEMPT, maintain_order="left")
        .select(*FORWARD, chunked_rid="rid", rest=pl.col("target") - seq)
    )
    forwards = tables.forwards.join(
        half_done, on=(*FORWARD, "chunked_rid"), how="left", maintain_order="left"
    )
    known = pl.col("chunked_rid").is_null() | pl.col("rest").is_not_null()
    checked = forwards.filter(known).with_columns(pl.col("rest").fill_null(0))
    pending, waiting, rest = pl.col("pending_tokens"), pl.col("waiting_reqs"), pl.col("rest")
    wrong = pl.when(waiting == 0).then(pending != rest).otherwise(pending < rest + waiting)
    return Finding(
        len(checked), checked.filter(wrong).select("forward_id", "pending_tokens", "waiting_reqs", "rest")
    )


QUEUE_RULES = (
    Rule(
        "waiting_counted",
        "requests wait that arrived or were queued again and were neither admitted nor aborted",
        ("forwards.waiting_reqs", "forwards.overlapped", "rows.role", "events.kind", "events.forward_id"),
        _waiting,
    ),
    Rule(
        "pending_counted",
        "prompt tokens are pending of the half-done request and of each that waits, and of nobody else",
        (
            *("forwards.pending_tokens", "forwards.waiting_reqs"),
            *("rows.role", "rows.seq_len", "requests.prompt_tokens"),
        ),
        _pending,
    ),
)
