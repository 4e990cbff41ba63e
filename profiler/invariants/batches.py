"""Rows of a forward: one a request, in batch order, and the half-done request before all others."""

import polars as pl
import polars.selectors as cs

from engine.batch import ForwardMode, Role
from engine.observer import EventKind
from engine.request import FinishReason
from profiler.invariants.expressions import FORWARD, PLACE, is_decode, is_middle, role
from profiler.invariants.rule import Finding, Rule, Tables, ended_cleanly

__all__ = ["BATCH_RULES"]

COUNTS = cs.integer() - cs.ends_with("_ns") - cs.contains("_budget_") - cs.matches("^priority$")


def _one_row(tables: Tables) -> Finding:
    counted = tables.rows.with_columns(rows_of_request=pl.len().cast(pl.Int64).over(*FORWARD, "rid"))
    broken = counted.filter(pl.col("rows_of_request") > 1)
    return Finding(len(tables.rows), broken.select(*PLACE, "rows_of_request"))


def _order(tables: Tables) -> Finding:
    """The half-done request's row is the first, decode rows are the last."""
    rows = tables.rows.with_columns(
        row=pl.int_range(pl.len(), dtype=pl.Int64).over(FORWARD), previous_role=role.shift(1).over(FORWARD)
    )
    continued = role.is_in([Role.MIDDLE.value, Role.LAST.value])
    after_decode = ~is_decode & (pl.col("previous_role") == Role.DECODE.value).fill_null(False)
    broken = rows.filter((continued & (pl.col("row") > 0)) | after_decode)
    return Finding(len(rows), broken.select(*PLACE, "row", "role", "previous_role"))


def _not_negative(tables: Tables) -> Finding:
    """Of forwards, rows and requests; times and priorities are no counts."""
    counted = {"forwards": tables.forwards, "rows": tables.rows, "requests": tables.requests}
    parts = [part for name, table in counted.items() for part in _negatives(name, table)]
    none = tables.rows.head(0).select(PLACE)
    return Finding(sum(map(len, counted.values())), pl.concat([none, *parts], how="diagonal"))


def _negatives(name: str, table: pl.DataFrame) -> list[pl.DataFrame]:
    """The rows with a negative count, one frame a column that has any."""
    lowest = table.select(COUNTS.min()).row(0, named=True)
    place = [key for key in PLACE if key in table.columns]
    return [
        table.filter(pl.col(column) < 0).select(
            *place, column=pl.lit(f"{name}.{column}"), value=pl.col(column)
        )
        for column, value in lowest.items()
        if value is not None and value < 0
    ]


def _half_done(tables: Tables) -> Finding:
    """`chunked_rid` is who has a middle chunk in the forward; one that only decodes takes it over.

    A forward that prefills has the next chunk of the half-done request of the one before, unless that was
    aborted or gave its KV back.
    """
    middle = tables.rows.filter(is_middle).group_by(FORWARD).agg(middle_rid=pl.col("rid").first())
    before = pl.col("chunked_rid").shift(1).over("rank")
    forwards = tables.forwards.join(middle, on=FORWARD, how="left", maintain_order="left")
    forwards = forwards.with_columns(before_rid=before, before_id=pl.col("forward_id").shift(1).over("rank"))
    forwards = _with_continuation(tables, _with_loss(tables, forwards))
    only_decodes = pl.col("mode") == ForwardMode.DECODE.value
    carried = pl.when(only_decodes).then(pl.col("before_rid"))
    expected = pl.coalesce("middle_rid", carried)
    found = pl.col("chunked_rid")
    dropped = pl.col("lost") & found.is_null()
    forwards = forwards.with_columns(expected_rid=expected)
    wrong = (found.ne_missing(expected) & ~dropped) | (
        ~only_decodes & pl.col("before_rid").is_not_null() & ~pl.col("continued") & ~pl.col("lost")
    )
    broken = forwards.filter(wrong)
    ends = _left_half_done(tables, forwards)
    shown = ("forward_id", "mode", "chunked_rid", "expected_rid", "before_rid", "continued")
    return Finding(
        len(forwards),
        pl.concat(
            [
                broken.select(*shown, rid=pl.coalesce("before_rid", "chunked_rid")),
                ends.select(*shown, rid=pl.col("chunked_rid")),
            ]
        ),
    )


def _with_loss(tables: Tables, forwards: pl.DataFrame) -> pl.DataFrame:
    """`lost`: whether the half-done request before may be none any more: aborted, or without its KV."""
    given_back = tables.events.filter(
        pl.col("kind").is_in([EventKind.RETRACT.value, EventKind.PREEMPT.value])
    )
    taken = given_back.select(*FORWARD, before_rid="rid", taken=True).unique()
    aborted = tables.requests.filter(pl.col("finish_reason") == FinishReason.ABORT.value)
    ends = aborted.select(before_rid="rid", aborted_ns="finish_ns")
    both = forwards.join(taken, on=(*FORWARD, "before_rid"), how="left", maintain_order="left")
    both = both.join(ends, on="before_rid", how="left", maintain_order="left")
    before_plan = pl.col("aborted_ns") <= pl.col("plan_end_ns")
    return both.with_columns(lost=pl.col("taken").fill_null(False) | before_plan.fill_null(False))


def _with_continuation(tables: Tables, forwards: pl.DataFrame) -> pl.DataFrame:
    """`continued`: whether the half-done request of the forward before has its next chunk in this one."""
    goes_on = role.is_in([Role.MIDDLE.value, Role.LAST.value])
    rows = tables.rows.filter(goes_on).select(*FORWARD, before_rid="rid", continued=True).unique()
    both = forwards.join(rows, on=(*FORWARD, "before_rid"), how="left", maintain_order="left")
    return both.with_columns(pl.col("continued").fill_null(False))


def _left_half_done(tables: Tables, forwards: pl.DataFrame) -> pl.DataFrame:
    """The last forward of a recording that came to its end, if its half-done request was not aborted."""
    last = forwards.group_by("rank", maintain_order=True).tail(1)
    if not ended_cleanly(tables.meta):
        return last.head(0)
    ended = tables.requests.filter(pl.col("finish_ns").is_not_null()).select(chunked_rid="rid")
    waiting_on = last.filter(pl.col("chunked_rid").is_not_null())
    aborted = tables.requests.filter(pl.col("finish_reason") == FinishReason.ABORT.value)
    return waiting_on.join(ended, on="chunked_rid", how="semi").join(
        aborted.select(chunked_rid="rid"), on="chunked_rid", how="anti"
    )


BATCH_RULES = (
    Rule(
        "one_row_per_request",
        "a request has one row in a forward",
        ("rows.forward_id", "rows.rid"),
        _one_row,
    ),
    Rule(
        "rows_in_batch_order",
        "a forward's first row is the half-done request's next chunk, its decode rows are the last",
        ("rows.role",),
        _order,
    ),
    Rule(
        "counts_not_negative",
        "nothing that is counted is below 0",
        ("forwards.forward_id",),
        _not_negative,
        of_scheduler=False,
    ),
    Rule(
        "half_done_goes_on",
        "no prompt begins before the half-done one is complete, and it is never left half done",
        ("forwards.mode", "forwards.plan_end_ns", "rows.role", "events.kind"),
        _half_done,
    ),
)
