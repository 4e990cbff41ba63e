"""Ends and new starts: what a result may still change, and which rows it comes too late for."""

import polars as pl

from engine.batch import Outcome
from engine.observer import EventKind
from engine.request import FinishReason
from profiler.invariants.expressions import (
    ATTEMPT,
    FORWARD,
    PLACE,
    REQUEST,
    emitted,
    is_decode,
    is_middle,
    outcome,
)
from profiler.invariants.neighbours import neighbours
from profiler.invariants.rule import Finding, Rule, Tables, ended_cleanly

__all__ = ["ENDING_RULES"]

GIVEN_BACK = (EventKind.RETRACT.value, EventKind.PREEMPT.value)
LATE = (Outcome.FINISHED_DROPPED.value, Outcome.ABORTED.value, Outcome.RETRACTED.value)
UNKNOWN_BEFORE = (FinishReason.EOS.value, FinishReason.STOP.value)  # ends that only the sample tells

is_aborted = pl.col("finish_reason") == FinishReason.ABORT.value


def _explained(tables: Tables) -> Finding:
    """A result that comes after its request ended, was aborted or started again changes nothing.

    What happened in the very nanosecond of the result may have been before or after it. Of a recording cut
    short the ends and new starts may be missing.
    """
    rows = _with_ends(tables).join(_given_back(tables.events), on=ATTEMPT, how="left", maintain_order="left")
    result = pl.col("result_start_ns")
    again, abort = pl.col("given_back_ns"), pl.when(is_aborted).then(pl.col("finish_ns"))
    expected = (
        pl.when(again < result)
        .then(Outcome.RETRACTED.value)
        .when(pl.col("forward_id") > pl.col("last_token_id"))
        .then(Outcome.FINISHED_DROPPED.value)
        .when(abort < result)
        .then(Outcome.ABORTED.value)
        .when(is_middle)
        .then(Outcome.MIDDLE_DROPPED.value)
        .otherwise(Outcome.EMITTED.value)
    )
    at_once = pl.any_horizontal(again == result, abort == result).fill_null(False)
    untold = outcome.is_in(LATE) & pl.lit(not ended_cleanly(tables.meta))
    rows = rows.with_columns(expected_outcome=expected).filter(~at_once & ~untold)
    broken = rows.filter(outcome != pl.col("expected_outcome"))
    return Finding(
        len(rows), broken.select(*PLACE, "role", "outcome", "expected_outcome", result, "finish_ns", again)
    )


def _at_once(tables: Tables) -> Finding:
    """Only a sample that ends its request unforeseen may find a row of it in the next forward."""
    rows = _with_ends(tables).filter(pl.col("finish_ns").is_not_null())
    rows = rows.join(neighbours(tables).drop("overlapped"), on=FORWARD, how="left", maintain_order="left")
    unforeseen = (
        pl.col("overlapped")
        & is_decode
        & (pl.col("previous_id") == pl.col("last_token_id"))
        & pl.col("finish_reason").is_in(UNKNOWN_BEFORE)
    )
    beyond = (pl.col("forward_id") > pl.col("last_token_id")) & ~unforeseen
    planned_after = pl.col("plan_start_ns") > pl.col("finish_ns")
    broken = rows.filter(beyond.fill_null(False) | planned_after)
    return Finding(
        len(rows),
        broken.select(*PLACE, "role", "finish_reason", "last_token_id", "finish_ns", "plan_start_ns"),
    )


def _with_ends(tables: Tables) -> pl.DataFrame:
    """Rows with their forward's times, their request's end, and the forward of its last token.

    That is null unless the request ended otherwise than by abort.
    """
    last = tables.rows.filter(emitted).group_by(REQUEST).agg(last_token_id=pl.col("forward_id").max())
    ends = tables.requests.select("rid", "finish_ns", "finish_reason")
    times = tables.forwards.select(*FORWARD, "overlapped", "plan_start_ns", "result_start_ns")
    ended = pl.col("finish_ns").is_not_null() & ~is_aborted
    return (
        tables.rows.join(times, on=FORWARD, how="inner", maintain_order="left")
        .join(ends, on="rid", how="left", maintain_order="left")
        .join(last, on=REQUEST, how="left", maintain_order="left")
        .with_columns(last_token_id=pl.when(ended).then("last_token_id"))
    )


def _given_back(events: pl.DataFrame) -> pl.DataFrame:
    """When an attempt gave its KV back."""
    found = events.filter(pl.col("kind").is_in(GIVEN_BACK))
    return found.group_by(ATTEMPT).agg(given_back_ns=pl.col("t_ns").max())


def _retractions(tables: Tables) -> Finding:
    """Attempts are numbered 0, 1, ..., and each but the last ends by giving its KV back."""
    back = tables.events.filter(pl.col("kind").is_in(GIVEN_BACK)).with_columns(
        expected_attempt=pl.int_range(pl.len(), dtype=pl.Int64).over(REQUEST)
    )
    told = back.group_by("rid").agg(
        told=pl.len().cast(pl.Int64),
        in_order=(pl.col("attempt") == pl.col("expected_attempt")).all(),
    )
    newest = tables.rows.group_by("rid").agg(newest_attempt=pl.col("attempt").max())
    ended = tables.requests.filter(pl.col("finish_ns").is_not_null())
    both = ended.join(told, on="rid", how="left", maintain_order="left")
    both = both.join(newest, on="rid", how="left", maintain_order="left")
    both = both.with_columns(pl.col("told").fill_null(0), pl.col("in_order").fill_null(True))
    wrong = (
        (pl.col("told") != pl.col("retractions"))
        | ~pl.col("in_order")
        | (pl.col("newest_attempt") > pl.col("told"))
    )
    return Finding(len(both), both.filter(wrong).select("rid", "retractions", "told", "newest_attempt"))


ENDING_RULES = (
    Rule(
        "outcomes_explained",
        "a result counts unless its request had ended, been aborted or started again before it",
        (
            *("rows.role", "rows.outcome", "events.kind", "forwards.result_start_ns"),
            *("requests.finish_ns", "requests.finish_reason"),
        ),
        _explained,
    ),
    Rule(
        "ends_at_once",
        "an ended request has no more rows, but for one in the next forward if only the sample told its end",
        (
            *("rows.role", "rows.outcome", "forwards.overlapped", "forwards.plan_start_ns"),
            *("requests.finish_ns", "requests.finish_reason"),
        ),
        _at_once,
    ),
    Rule(
        "retractions_counted",
        "a request counts as many retractions, preemptions included, as attempts of it gave their KV back",
        ("rows.attempt", "events.kind", "requests.retractions"),
        _retractions,
    ),
)
