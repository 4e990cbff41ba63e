"""Middle chunks in flight: planned, and their results not yet processed."""

from collections.abc import Mapping

import polars as pl

from engine.batch import Outcome
from profiler.invariants.expressions import ATTEMPT, FORWARD, PLACE, REQUEST, is_middle
from profiler.invariants.neighbours import middle_beside, neighbours
from profiler.invariants.rule import Finding, Rule, Tables, ended_cleanly

__all__ = ["IN_FLIGHT_RULES"]

IN_FLIGHT_PLAIN, IN_FLIGHT_OVERLAPPED = 1, 2


def _bounds(tables: Tables) -> Finding:
    """A result takes one away, so after it at most one is left, and none in the plain loop.

    The first forward of a run is planned while nothing is outstanding; of a run that was cut short right
    after it the options tell which loop it was.
    """
    engine = tables.meta.get("engine")
    asked = isinstance(engine, Mapping) and engine.get("disable_overlap_schedule") is False
    overlapped = asked or bool(tables.forwards["overlapped"].any())
    most = IN_FLIGHT_OVERLAPPED if overlapped else IN_FLIGHT_PLAIN
    plan, result = pl.col("inflight_after_plan"), pl.col("inflight_after_result")
    broken = tables.rows.filter(~plan.is_between(0, most) | ~result.is_between(0, most - 1))
    return Finding(
        len(tables.rows), broken.select(*PLACE, plan, result, at_most=pl.lit(most, dtype=pl.Int64))
    )


def _counted(tables: Tables) -> Finding:
    """After planning: this chunk and that of the forward whose result is outstanding. After the result: the
    next forward's, if that was planned by then. Of a recording cut short the last result is left out.
    """
    rows = tables.rows.join(neighbours(tables), on=FORWARD, how="inner", maintain_order="left")
    before = middle_beside(rows, tables, "previous_id", ATTEMPT)
    rows = before.with_columns(
        after_plan=is_middle.cast(pl.Int64) + (pl.col("middle_beside") & pl.col("overlapped"))
    ).drop("middle_beside")
    after = middle_beside(rows, tables, "next_id", REQUEST)
    rows = after.with_columns(
        after_result=(pl.col("middle_beside") & pl.col("next_overlapped")).cast(pl.Int64)
    )
    known = pl.col("next_id").is_not_null() | pl.lit(ended_cleanly(tables.meta))
    wrong = (pl.col("inflight_after_plan") != pl.col("after_plan")) | (
        known & (pl.col("inflight_after_result") != pl.col("after_result"))
    )
    broken = rows.filter(wrong)
    return Finding(
        len(rows),
        broken.select(*PLACE, "inflight_after_plan", "after_plan", "inflight_after_result", "after_result"),
    )


def _summed(tables: Tables) -> Finding:
    """Over the rows, and over requests without a row whose chunk in the forward before is outstanding.

    A retraction while planning takes such a chunk out of the count.
    """
    over_rows = tables.rows.group_by(FORWARD).agg(over_rows=pl.col("inflight_after_plan").sum())
    both = tables.forwards.join(over_rows, on=FORWARD, how="inner", maintain_order="left")
    both = both.join(_without_row(tables), on=FORWARD, how="left", maintain_order="left")
    both = both.with_columns(pl.col("without_row").fill_null(0))
    stored = pl.col("inflight_middle_chunks")
    broken = both.filter(stored != pl.col("over_rows") + pl.col("without_row"))
    return Finding(len(both), broken.select("forward_id", stored, "over_rows", "without_row"))


def _without_row(tables: Tables) -> pl.DataFrame:
    """Per forward, requests without a row in it whose chunk in the forward before is outstanding."""
    return (
        tables.rows.filter(is_middle & (pl.col("outcome") != Outcome.RETRACTED.value))
        .join(neighbours(tables).filter("next_overlapped"), on=FORWARD, how="inner")
        .join(tables.rows.select(*REQUEST, next_id="forward_id"), on=(*REQUEST, "next_id"), how="anti")
        .group_by("rank", forward_id="next_id")
        .agg(without_row=pl.len().cast(pl.Int64))
    )


def _requests(tables: Tables) -> Finding:
    """Under overlap the one whose last middle chunk is outstanding, and the one that was begun after it."""
    in_flight = tables.rows.group_by(FORWARD).agg(
        after_plan=(pl.col("inflight_after_plan") > 0).sum().cast(pl.Int64),
        after_result=(pl.col("inflight_after_result") > 0).sum().cast(pl.Int64),
    )
    forwards = tables.forwards.join(in_flight, on=FORWARD, how="inner", maintain_order="left")
    forwards = forwards.join(_without_row(tables), on=FORWARD, how="left", maintain_order="left")
    most = pl.when("overlapped").then(2).otherwise(1)
    forwards = forwards.with_columns(
        after_plan=pl.col("after_plan") + pl.col("without_row").fill_null(0), at_most=most.cast(pl.Int64)
    )
    broken = forwards.filter((pl.col("after_plan") > pl.col("at_most")) | (pl.col("after_result") > 1))
    return Finding(
        len(forwards), broken.select("forward_id", "overlapped", "after_plan", "at_most", "after_result")
    )


IN_FLIGHT_RULES = (
    Rule(
        "inflight_bounds",
        "a request has at most one middle chunk in flight, two under overlap, and never less than none",
        ("forwards.overlapped", "rows.inflight_after_plan", "rows.inflight_after_result"),
        _bounds,
    ),
    Rule(
        "inflight_counted",
        "a request's middle chunks in flight are those planned whose results are outstanding",
        ("forwards.overlapped", "rows.role", "rows.inflight_after_plan", "rows.inflight_after_result"),
        _counted,
    ),
    Rule(
        "inflight_sum",
        "the middle chunks in flight after planning are those of all requests, with a row or without",
        (
            "forwards.overlapped",
            "forwards.inflight_middle_chunks",
            "rows.inflight_after_plan",
            "rows.outcome",
        ),
        _summed,
    ),
    Rule(
        "inflight_requests",
        "one request has middle chunks in flight, two between planning and result under overlap",
        (
            *("forwards.overlapped", "rows.role", "rows.outcome"),
            *("rows.inflight_after_plan", "rows.inflight_after_result"),
        ),
        _requests,
    ),
)
