"""What a request says of itself, against the forwards, rows and events that made it so."""

import polars as pl

from engine.observer import EventKind
from engine.request import FinishReason
from profiler.invariants.expressions import (
    FORWARD,
    PLACE,
    REQUEST,
    emitted,
    is_decode,
    prefix,
    starts_attempt,
)
from profiler.invariants.rule import Finding, Rule, Tables, ended_cleanly

__all__ = ["REQUEST_RULES"]

aborted = pl.col("finish_reason") == FinishReason.ABORT.value
ended = pl.col("finish_ns").is_not_null()


def _token_times(tables: Tables) -> Finding:
    """A token's time is that at which the result of its forward has been processed."""
    times = tables.forwards.select(*FORWARD, token_ns="result_end_ns")
    tokens = tables.rows.filter(emitted).join(times, on=FORWARD, how="inner", maintain_order="left")
    tokens = tokens.sort(*REQUEST, "token_index", maintain_order=True)
    tokens = tokens.with_columns(earlier_ns=pl.col("token_ns").shift(1).over(REQUEST))
    broken = tokens.filter(pl.col("token_ns") <= pl.col("earlier_ns"))
    return Finding(len(tables.rows), broken.select(*PLACE, "token_index", "token_ns", "earlier_ns"))


def _times(tables: Tables) -> Finding:
    """First scheduled when the forward with its first row was planned.

    First token, and end unless aborted: when the result with its first, or last, token was processed.
    """
    times = tables.forwards.select(*FORWARD, "plan_end_ns", "result_end_ns")
    rows = tables.rows.join(times, on=FORWARD, how="inner", maintain_order="left")
    planned = rows.filter(~is_decode).group_by(REQUEST).agg(
        forward_id=pl.col("forward_id").first(), expected_scheduled_ns=pl.col("plan_end_ns").first()
    )  # fmt: skip
    tokens = rows.filter(emitted).group_by(REQUEST).agg(
        expected_first_ns=pl.col("result_end_ns").first(), expected_finish_ns=pl.col("result_end_ns").last()
    )  # fmt: skip
    both = tables.requests.join(planned, on=REQUEST, how="left", maintain_order="left")
    both = both.join(tokens, on=REQUEST, how="left", maintain_order="left")
    both = both.with_columns(
        expected_finish_ns=pl.when(aborted).then(pl.col("finish_ns")).otherwise(pl.col("expected_finish_ns"))
    )
    pairs = (
        ("first_scheduled_ns", "expected_scheduled_ns"),
        ("first_token_ns", "expected_first_ns"),
        ("finish_ns", "expected_finish_ns"),
    )
    wrong = pl.any_horizontal(
        pl.col(told).is_not_null() & pl.col(told).ne_missing(pl.col(expected)) for told, expected in pairs
    )
    shown = [name for pair in pairs for name in pair]
    return Finding(len(both), both.filter(wrong).select("forward_id", "rid", *shown))


def _at_length(tables: Tables) -> Finding:
    """The length is asked first: a stop token that comes as the last allowed one ends by length."""
    most, output = pl.max_horizontal("max_new_tokens", pl.lit(1)), pl.col("output_tokens")
    by_length = pl.col("finish_reason") == FinishReason.LENGTH.value
    wrong = pl.when(by_length).then(output != most).otherwise(ended & ~aborted & (output >= most))
    broken = tables.requests.filter(wrong.fill_null(False))
    return Finding(
        len(tables.requests), broken.select("rid", "finish_reason", "output_tokens", "max_new_tokens")
    )


def _cached(tables: Tables) -> Finding:
    """Only the first row of an attempt is credited, with no more than its prefix."""
    credit = pl.col("cached_tokens")
    wrong = (credit > pl.when(starts_attempt).then(prefix).otherwise(0)) | (credit < 0)
    rows = tables.rows.filter(wrong).select(*PLACE, "cached_tokens", "prefix_len")
    credited = tables.rows.group_by(REQUEST).agg(credited_tokens=credit.sum())
    both = tables.requests.join(credited, on=REQUEST, how="left", maintain_order="left")
    both = both.with_columns(pl.col("credited_tokens").fill_null(0))
    told, found = pl.col("cached_tokens"), pl.col("credited_tokens")
    broken = both.filter((found < told) | (ended & (found != told)))
    return Finding(
        len(tables.rows),
        pl.concat([rows, broken.select("rid", "cached_tokens", "credited_tokens")], how="diagonal"),
    )


def _ended_once(tables: Tables) -> Finding | str:
    """By FINISH, with the tokens that were given and the forward of the last of them, or by ABORT."""
    if not ended_cleanly(tables.meta):
        return "the recording did not end cleanly, and of its end events may be missing"
    kind = pl.col("kind")
    finish = kind == EventKind.FINISH.value
    told = tables.events.group_by(REQUEST).agg(
        arrivals=(kind == EventKind.ARRIVE.value).sum().cast(pl.Int64),
        finishes=finish.sum().cast(pl.Int64),
        aborts=(kind == EventKind.ABORT.value).sum().cast(pl.Int64),
        told_tokens=pl.col("tokens").filter(finish).first(),
        told_id=pl.col("forward_id").filter(finish).first(),
    )
    last = tables.rows.filter(emitted).group_by(REQUEST).agg(last_token_id=pl.col("forward_id").last())
    both = tables.requests.join(told, on=REQUEST, how="left", maintain_order="left")
    both = both.join(last, on=REQUEST, how="left", maintain_order="left")
    both = both.with_columns(
        pl.col("arrivals", "finishes", "aborts").fill_null(0),
        expected_finishes=(ended & ~aborted).fill_null(False).cast(pl.Int64),
        expected_aborts=(ended & aborted).fill_null(False).cast(pl.Int64),
    )
    wrong = (
        (pl.col("arrivals") != 1)
        | (pl.col("finishes") != pl.col("expected_finishes"))
        | (pl.col("aborts") != pl.col("expected_aborts"))
        | (pl.col("told_tokens") != pl.col("output_tokens"))
        | (pl.col("told_id") != pl.col("last_token_id"))
    )
    shown = (
        "arrivals",
        "finishes",
        "aborts",
        "finish_reason",
        "told_tokens",
        "output_tokens",
        "last_token_id",
    )
    return Finding(
        len(both), both.filter(wrong.fill_null(False)).select("rid", *shown, forward_id=pl.col("told_id"))
    )


REQUEST_RULES = (
    Rule(
        "token_times_rise",
        "each token of a request comes later than the one before it",
        ("rows.outcome", "rows.token_index", "forwards.result_end_ns"),
        _token_times,
        of_scheduler=False,
    ),
    Rule(
        "request_times_of_forwards",
        "a request's times are those of the forwards with its first row, its first and its last token",
        (
            *("rows.outcome", "forwards.plan_end_ns", "forwards.result_end_ns"),
            *("requests.first_scheduled_ns", "requests.first_token_ns"),
        ),
        _times,
    ),
    Rule(
        "length_ends_at_limit",
        "a request ends by length with as many tokens as it may have, and otherwise before",
        ("requests.finish_reason", "requests.output_tokens", "requests.max_new_tokens"),
        _at_length,
    ),
    Rule(
        "cached_counted",
        "a request's cached tokens are those that the first rows of its attempts were credited with",
        ("rows.role", "rows.cached_tokens", "rows.prefix_len", "requests.cached_tokens"),
        _cached,
    ),
    Rule(
        "ends_told_once",
        "a request arrives once and ends once, with all its tokens",
        ("rows.outcome", "events.kind", "events.tokens", "requests.finish_reason"),
        _ended_once,
    ),
)
