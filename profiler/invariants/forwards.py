"""Forwards: one id each, times in order, at most one half-done request."""

from itertools import pairwise

import polars as pl

from profiler.invariants.expressions import FORWARD, PLACE, is_middle
from profiler.invariants.rule import Finding, Rule, Tables, ended_cleanly

__all__ = ["FORWARD_RULES"]

HOST_TIMES = (
    *("plan_start_ns", "plan_end_ns", "launch_start_ns"),
    *("launch_end_ns", "result_start_ns", "result_end_ns"),
)
IN_FLIGHT_PLAIN, IN_FLIGHT_OVERLAPPED = 1, 2


def _unique_ids(tables: Tables) -> Finding:
    ids = tables.forwards.group_by("forward_id").agg(times_used=pl.len()).filter(pl.col("times_used") > 1)
    return Finding(len(tables.forwards), ids)


def _rows_have_forwards(tables: Tables) -> Finding:
    rows = tables.rows
    orphans = rows.join(tables.forwards, on=FORWARD, how="anti", maintain_order="left")
    return Finding(len(rows), orphans.select(PLACE))


def _rows_have_requests(tables: Tables) -> Finding | str:
    if not ended_cleanly(tables.meta):
        return "the recording did not end cleanly, and requests are written last"
    strangers = tables.rows.join(tables.requests, on="rid", how="anti", maintain_order="left")
    return Finding(len(tables.rows), strangers.select(PLACE))


def _host_times(tables: Tables) -> Finding:
    falls = pl.any_horizontal(pl.col(later) < pl.col(earlier) for earlier, later in pairwise(HOST_TIMES))
    broken = tables.forwards.filter(falls)
    return Finding(len(tables.forwards), broken.select("forward_id", *HOST_TIMES))


def _device_times(tables: Tables) -> Finding:
    """Device and host clocks may differ by `clock_error_ns`, where it is known."""
    start, end, error = pl.col("start_ns"), pl.col("end_ns"), pl.col("clock_error_ns").fill_null(0)
    wrong = pl.any_horizontal(
        end < start,
        start + error < pl.col("launch_start_ns"),
        end - error > pl.col("result_end_ns"),
    )
    broken = tables.forwards.filter(wrong)
    return Finding(
        len(tables.forwards),
        broken.select(
            "forward_id", "launch_start_ns", "start_ns", "end_ns", "result_end_ns", "clock_error_ns"
        ),
    )


def _one_chunked(tables: Tables) -> Finding:
    middle = (
        tables.rows.filter(is_middle)
        .group_by(FORWARD)
        .agg(middle_chunks=pl.len(), rid=pl.col("rid").first(), attempt=pl.col("attempt").first())
    )
    both = tables.forwards.join(middle, on=FORWARD, how="inner", maintain_order="left")
    broken = both.filter((pl.col("middle_chunks") > 1) | pl.col("chunked_rid").ne_missing(pl.col("rid")))
    return Finding(len(tables.forwards), broken.select(*PLACE, "middle_chunks", "chunked_rid"))


def _in_flight(tables: Tables) -> Finding:
    overlapped = bool(tables.forwards["overlapped"].any())
    most = IN_FLIGHT_OVERLAPPED if overlapped else IN_FLIGHT_PLAIN
    counters = ("inflight_after_plan", "inflight_after_result")
    wrong = pl.any_horizontal(~pl.col(counter).is_between(0, most) for counter in counters)
    broken = tables.rows.filter(wrong)
    return Finding(
        len(tables.rows),
        broken.select(*PLACE, *counters, at_most=pl.lit(most)),
    )


def _in_flight_sum(tables: Tables) -> Finding:
    """Requests without a row in a forward may have counters of their own only under overlap."""
    summed = tables.rows.group_by(FORWARD).agg(over_rows=pl.col("inflight_after_plan").sum())
    both = tables.forwards.join(summed, on=FORWARD, how="inner", maintain_order="left")
    stored = pl.col("inflight_middle_chunks")
    wrong = (stored < pl.col("over_rows")) | (~pl.col("overlapped") & (stored != pl.col("over_rows")))
    return Finding(len(both), both.filter(wrong).select("forward_id", "inflight_middle_chunks", "over_rows"))


FORWARD_RULES = (
    Rule(
        "forward_ids_unique",
        "no two forwards share an id",
        ("forwards.forward_id",),
        _unique_ids,
        of_scheduler=False,
    ),
    Rule(
        "rows_have_forwards",
        "every row belongs to a recorded forward",
        ("forwards.forward_id", "rows.forward_id"),
        _rows_have_forwards,
        of_scheduler=False,
    ),
    Rule(
        "rows_have_requests",
        "every row belongs to a recorded request",
        ("rows.rid", "requests.rid"),
        _rows_have_requests,
    ),
    Rule(
        "host_times_ordered",
        "a forward is planned, launched and its result processed, in this order",
        tuple(f"forwards.{column}" for column in HOST_TIMES),
        _host_times,
        of_scheduler=False,
    ),
    Rule(
        "device_times_ordered",
        "a forward runs on the device after its launch began and before its result is processed",
        ("forwards.start_ns", "forwards.end_ns"),
        _device_times,
        of_scheduler=False,
    ),
    Rule(
        "one_chunked_request",
        "at most one row of a forward is a middle chunk, and its request is the chunked one",
        ("rows.role",),
        _one_chunked,
    ),
    Rule(
        "inflight_bounds",
        "a request has at most one middle chunk in flight, two under overlap, and never less than none",
        ("forwards.overlapped", "rows.inflight_after_plan", "rows.inflight_after_result"),
        _in_flight,
    ),
    Rule(
        "inflight_sum",
        "the middle chunks in flight after planning are those of the forward's rows",
        ("forwards.overlapped", "forwards.inflight_middle_chunks", "rows.inflight_after_plan"),
        _in_flight_sum,
    ),
)
