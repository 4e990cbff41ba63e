"""Output tokens: emitted once, in order, by the right rows, and counted by the request."""

from itertools import pairwise

import polars as pl

from engine.batch import Outcome
from profiler.invariants.expressions import PLACE, REQUEST, emitted, is_middle
from profiler.invariants.rule import Finding, Rule, Tables

__all__ = ["TOKEN_RULES"]


def _middle(tables: Tables) -> Finding:
    middle = tables.rows.filter(is_middle)
    broken = middle.filter(emitted | pl.col("token_index").is_not_null())
    return Finding(len(middle), broken.select(*PLACE, "role", "outcome", "token_index"))


def _outcomes(tables: Tables) -> Finding:
    """EMITTED rows have a token index and no others do; only middle chunks are MIDDLE_DROPPED."""
    dropped = pl.col("outcome") == Outcome.MIDDLE_DROPPED.value
    wrong = (pl.col("token_index").is_not_null() != emitted) | (dropped & ~is_middle)
    return Finding(
        len(tables.rows), tables.rows.filter(wrong).select(*PLACE, "role", "outcome", "token_index")
    )


def _sequence(tables: Tables) -> Finding:
    tokens = tables.rows.filter(emitted).with_columns(
        expected_index=pl.int_range(pl.len(), dtype=pl.Int64).over(REQUEST)
    )
    broken = tokens.filter(pl.col("token_index") != pl.col("expected_index"))
    return Finding(len(tokens), broken.select(*PLACE, "token_index", "expected_index"))


def _older_attempts(tables: Tables) -> Finding:
    rows = tables.rows.with_columns(newest_attempt=pl.col("attempt").cum_max().over(REQUEST))
    broken = rows.filter(emitted & (pl.col("attempt") < pl.col("newest_attempt")))
    return Finding(len(rows), broken.select(*PLACE, "newest_attempt", "token_index"))


def _counted(tables: Tables) -> Finding:
    """Of a request that has not ended, `output_tokens` is as of its last version."""
    tokens = (
        tables.rows.filter(emitted)
        .group_by("rid")
        .agg(pl.col("forward_id").last(), emitted_tokens=pl.len().cast(pl.Int64))
    )
    both = tables.requests.join(tokens, on="rid", how="left", maintain_order="left")
    both = both.with_columns(pl.col("emitted_tokens").fill_null(0))
    found, told = pl.col("emitted_tokens"), pl.col("output_tokens")
    wrong = (found < told) | (pl.col("finish_ns").is_not_null() & (found != told))
    broken = both.filter(wrong)
    return Finding(len(both), broken.select("forward_id", "rid", "emitted_tokens", "output_tokens"))


def _limit(tables: Tables) -> Finding:
    """A prefill always yields a token, so one is allowed even where none was asked for."""
    most = pl.max_horizontal("max_new_tokens", pl.lit(1))
    broken = tables.requests.filter(pl.col("output_tokens") > most)
    return Finding(len(tables.requests), broken.select("rid", "output_tokens", "max_new_tokens"))


def _reasons(tables: Tables) -> Finding:
    ended = pl.col("finish_ns").is_not_null()
    broken = tables.requests.filter(ended != pl.col("finish_reason").is_not_null())
    return Finding(len(tables.requests), broken.select("rid", "finish_ns", "finish_reason"))


def _request_times(tables: Tables) -> Finding:
    times = ("arrival_ns", "first_scheduled_ns", "first_token_ns", "finish_ns")
    falls = pl.any_horizontal(pl.col(b) < pl.col(a) for a, b in pairwise(times))
    return Finding(len(tables.requests), tables.requests.filter(falls).select("rid", *times))


TOKEN_RULES = (
    Rule(
        "middle_never_emits",
        "the sample of a middle chunk is dropped",
        ("rows.role", "rows.outcome"),
        _middle,
    ),
    Rule(
        "outcomes",
        "a row has a token index if and only if it emitted, and only middle chunks are dropped as such",
        ("rows.role", "rows.outcome", "rows.token_index"),
        _outcomes,
    ),
    Rule(
        "token_sequence",
        "a request's tokens are numbered 0, 1, 2, ... in the order of their forwards",
        ("rows.outcome", "rows.token_index"),
        _sequence,
    ),
    Rule(
        "older_attempts_emit_nothing",
        "once a request has started again, results of earlier attempts change nothing",
        ("rows.attempt", "rows.outcome"),
        _older_attempts,
    ),
    Rule(
        "output_counted",
        "a request's output is as long as its rows emitted tokens",
        ("rows.outcome", "requests.output_tokens"),
        _counted,
    ),
    Rule(
        "output_within_limit",
        "a request has no more output than it asked for, but for one token where it asked for none",
        ("requests.output_tokens", "requests.max_new_tokens"),
        _limit,
    ),
    Rule(
        "ended_for_a_reason",
        "a request that ended has a reason, and no other has one",
        ("requests.finish_ns", "requests.finish_reason"),
        _reasons,
    ),
    Rule(
        "request_times_ordered",
        "a request arrives, is scheduled, gets its first token and ends, in this order",
        ("requests.arrival_ns",),
        _request_times,
        of_scheduler=False,
    ),
)
