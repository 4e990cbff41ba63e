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


def _unique_ids(tables: Tables) -> Finding:
    ids = tables.forwards.group_by("forward_id").agg(times_used=pl.len()).filter(pl.col("times_used") > 1)
    return Finding(len(tables.forwards), ids)


def _rows_have_forwards(tables: Tables) -> Finding:
    rows = tables.rows
    orphans = rows.join(tables.forwards, on=FORWARD, how="anti", maintain_order="left")
    return Finding(len(rows), orphans.select(*PLACE, "role"))


def _rows_have_requests(tables: Tables) -> Finding | str:
    if not ended_cleanly(tables.meta):
        return "the recording did not end cleanly, and requests are written last"
    strangers = tables.rows.join(tables.requests, on="rid", how="anti", maintain_order="left")
    return Finding(len(tables.rows), strangers.select(*PLACE, "role"))


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


def _thread_order(tables: Tables) -> Finding:
    """One thread plans, launches and processes: results in the order of launches, plans never within."""
    earlier = {name: pl.col(name).shift(1).over("rank") for name in HOST_TIMES}
    plan, launched, result = pl.col("plan_start_ns"), pl.col("launch_end_ns"), pl.col("result_start_ns")
    misplaced = (
        pl.when(pl.col("overlapped"))
        .then((plan < earlier["launch_end_ns"]) | (launched > earlier["result_start_ns"]))
        .otherwise(plan < earlier["result_end_ns"])
    )
    forwards = tables.forwards.with_columns(
        before_launch_end_ns=earlier["launch_end_ns"],
        before_result_start_ns=earlier["result_start_ns"],
        before_result_end_ns=earlier["result_end_ns"],
        wrong=misplaced | (result < earlier["result_end_ns"]),
    )
    before = [f"before_{name}_ns" for name in ("launch_end", "result_start", "result_end")]
    broken = forwards.filter("wrong").select("forward_id", "overlapped", plan, launched, result, *before)
    return Finding(len(forwards), broken)


def _device_order(tables: Tables) -> Finding:
    """Pages freed by a result are handed out at once because whoever gets them writes later."""
    forwards = tables.forwards.with_columns(before_end_ns=pl.col("end_ns").shift(1).over("rank"))
    error = pl.col("clock_error_ns").fill_null(0)
    broken = forwards.filter(pl.col("start_ns") + error < pl.col("before_end_ns"))
    return Finding(len(forwards), broken.select("forward_id", "start_ns", "before_end_ns", "clock_error_ns"))


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
        "host_thread_order",
        "a forward is planned after the launch of the one before, and unless overlapped after its result",
        (*(f"forwards.{column}" for column in HOST_TIMES), "forwards.overlapped"),
        _thread_order,
    ),
    Rule(
        "device_order",
        "forwards run on the device one after the other, in the order of their launches",
        ("forwards.start_ns", "forwards.end_ns"),
        _device_order,
    ),
)
