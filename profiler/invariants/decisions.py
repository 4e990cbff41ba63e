"""What the scheduler decided in a round: who runs, who is left out, and whom an interval keeps waiting."""

import polars as pl

from engine.batch import ForwardMode, StopReason
from engine.observer import EventKind
from engine.request import FinishReason
from profiler.invariants.expressions import FORWARD, REQUEST, emitted
from profiler.invariants.neighbours import neighbours
from profiler.invariants.rule import Finding, Rule, Tables, ended_cleanly

__all__ = ["DECISION_RULES"]

running, absent = pl.col("running_reqs"), pl.col("absent_decode_reqs")
decoding, ending = pl.col("num_decode_seqs"), pl.col("ending")
mode = pl.col("mode")


def _running(tables: Tables) -> Finding | str:
    """Who ends by length with the outstanding result is dropped when decode rows are chosen: before they are
    counted in a DECODE forward, after it in a MIXED one.
    """
    if not ended_cleanly(tables.meta):
        return "the recording did not end cleanly, and requests are written last"
    forwards = tables.forwards.join(_ending(tables), on=FORWARD, how="left", maintain_order="left")
    forwards = forwards.with_columns(pl.col("ending").fill_null(0))
    wrong = (
        pl.when(mode == ForwardMode.DECODE.value)
        .then((running != decoding) | (absent != 0))
        .when(mode == ForwardMode.MIXED.value)
        .then((running != decoding + ending) | (absent != 0))
        .otherwise(~running.is_between(absent, absent + ending))
    )
    broken = forwards.filter(wrong)
    return Finding(len(forwards), broken.select("forward_id", "mode", running, decoding, absent, ending))


def _ending(tables: Tables) -> pl.DataFrame:
    """Per forward, requests that the outstanding result brings to their length."""
    by_length = tables.requests.filter(pl.col("finish_reason") == FinishReason.LENGTH.value).select("rid")
    last = tables.rows.filter(emitted).group_by(REQUEST).agg(pl.col("forward_id").max())
    return (
        last.join(by_length, on="rid", how="semi")
        .join(neighbours(tables).filter("next_overlapped"), on=FORWARD, how="inner")
        .group_by("rank", forward_id="next_id")
        .agg(ending=pl.len().cast(pl.Int64))
    )


def _deferred(tables: Tables) -> Finding:
    """A deferral told of a forward is that forward's stop reason, and no prefill is in it.

    A deferral of a round without a forward names none. Of a recording cut short the last ones may be missing.
    """
    told = tables.events.filter(pl.col("kind") == EventKind.DEFER.value).select(*FORWARD, held="rid")
    told = told.drop_nulls("forward_id").unique(FORWARD, keep="first")
    forwards = tables.forwards.join(told, on=FORWARD, how="left", maintain_order="left")
    said = (pl.col("stop_reason") == StopReason.INTERVAL.value).fill_null(False)
    held, decodes = pl.col("held").is_not_null(), mode == ForwardMode.DECODE.value
    wrong = ~said | ~held | ~decodes | pl.col("blocked_rid").ne_missing(pl.col("held"))
    concerned = said | held if ended_cleanly(tables.meta) else held
    broken = forwards.filter(concerned & wrong)
    return Finding(len(forwards), broken.select("forward_id", "mode", "stop_reason", "blocked_rid", "held"))


DECISION_RULES = (
    Rule(
        "running_counted",
        "running requests have a decode row or are absent, but for those that the outstanding result ends",
        (
            *("forwards.running_reqs", "forwards.absent_decode_reqs", "forwards.num_decode_seqs"),
            *("forwards.mode", "forwards.overlapped", "rows.outcome", "requests.finish_reason"),
        ),
        _running,
    ),
    Rule(
        "interval_defers",
        "a forward that the prefill-decode interval kept from prefilling only decodes, and names who waits",
        ("forwards.mode", "forwards.plan_end_ns", "events.kind"),
        _deferred,
    ),
)
