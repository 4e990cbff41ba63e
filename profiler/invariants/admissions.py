"""Decisions that are told as events, against the forwards and rows that they led to."""

import polars as pl

from engine.batch import Role
from engine.observer import EventKind
from profiler.invariants.cursor import prefill_targets
from profiler.invariants.expressions import ATTEMPT, FORWARD, PLACE, extend, role, seq
from profiler.invariants.rule import Finding, Rule, Tables, untold_options

__all__ = ["ADMISSION_RULES"]

kind = pl.col("kind")


def _admitted(tables: Tables) -> Finding:
    """The event names the forward of the attempt's first row, and its tokens; a cut tells what is left."""
    first = tables.rows.group_by(ATTEMPT, maintain_order=True).first()
    first = first.join(prefill_targets(tables).select(*ATTEMPT, "target"), on=ATTEMPT, how="left")
    decided = first.join(tables.decided.select(FORWARD), on=FORWARD, how="semi")
    told = _of(tables, EventKind.ADMIT).group_by(ATTEMPT).agg(
        admissions=pl.len().cast(pl.Int64),
        admitted_for=pl.col("forward_id").first(),
        admitted_tokens=pl.col("tokens").first(),
    )  # fmt: skip
    cut = _of(tables, EventKind.TRUNCATE).group_by(ATTEMPT).agg(cut_tokens=pl.col("tokens").first())
    both = decided.join(told, on=ATTEMPT, how="left", maintain_order="left")
    both = both.join(cut, on=ATTEMPT, how="left", maintain_order="left")
    expected_cut = pl.when(role == Role.FIRST.value).then(pl.col("target") - seq)
    both = both.with_columns(pl.col("admissions").fill_null(0), expected_cut=expected_cut)
    wrong = (
        (pl.col("admissions") != 1)
        | pl.col("admitted_for").ne_missing(pl.col("forward_id"))
        | pl.col("admitted_tokens").ne_missing(extend)
        | pl.col("cut_tokens").ne_missing(pl.col("expected_cut"))
    )
    shown = (
        *("admissions", "admitted_for", "admitted_tokens", "extend_len"),
        *("cut_tokens", "expected_cut"),
    )
    return Finding(len(first), both.filter(wrong).select(*PLACE, *shown))


def _retracted_and_evicted(tables: Tables) -> Finding:
    """A round whose last running request was aborted planned no forward, so its retractions are nobody's."""
    told = tables.events.group_by(FORWARD).agg(
        told_retractions=(kind == EventKind.RETRACT.value).sum().cast(pl.Int64),
        aborted=(kind == EventKind.ABORT.value).any(),
        told_evictions=pl.col("pages").filter(kind == EventKind.EVICT.value).sum(),
    )
    forwards = tables.decided.join(told, on=FORWARD, how="left", maintain_order="left")
    forwards = forwards.with_columns(
        pl.col("told_retractions", "told_evictions").fill_null(0), pl.col("aborted").fill_null(False)
    )
    retracted, told_retractions = pl.col("retracted_reqs"), pl.col("told_retractions")
    wrong = (
        (retracted > told_retractions)
        | ((retracted != told_retractions) & ~pl.col("aborted"))
        | (pl.col("evicted_pages") != pl.col("told_evictions"))
    )
    shown = ("retracted_reqs", "told_retractions", "evicted_pages", "told_evictions")
    return Finding(len(tables.forwards), forwards.filter(wrong).select("forward_id", *shown))


def _sat_out(tables: Tables) -> Finding | str:
    """Under mixed chunk the running requests ride along, all of them or none."""
    why_not = untold_options(tables, "enable_mixed_chunk")
    if why_not is not None:
        return why_not
    told = _of(tables, EventKind.SIT_OUT).group_by(FORWARD).agg(sat_out=pl.len().cast(pl.Int64))
    forwards = tables.decided.join(told, on=FORWARD, how="left", maintain_order="left")
    forwards = forwards.with_columns(pl.col("sat_out").fill_null(0))
    absent = pl.col("absent_decode_reqs") if tables.option("enable_mixed_chunk") else pl.lit(0)
    broken = forwards.filter(pl.col("sat_out") != absent)
    return Finding(len(tables.forwards), broken.select("forward_id", "mode", "sat_out", "absent_decode_reqs"))


def _preempted(tables: Tables) -> Finding | str:
    """Who gives way is less urgent, by more than the threshold, than the request that it gives way for."""
    options = (
        "enable_priority_scheduling",
        "disable_priority_preemption",
        "schedule_low_priority_values_first",
        "priority_scheduling_preemption_threshold",
    )
    why_not = untold_options(tables, *options)
    if why_not is not None:
        return why_not
    on, off, low_first, threshold = map(tables.option, options)
    allowed = bool(on) and not off
    urgency = -pl.col("priority") if low_first else pl.col("priority")
    urgencies = tables.requests.select("rid", urgency=urgency)
    by = pl.col("detail").str.extract(r"^for request (\d+)$").cast(pl.Int64, strict=False)
    victims = _of(tables, EventKind.PREEMPT).with_columns(for_rid=by)
    both = victims.join(urgencies, on="rid", how="left", maintain_order="left")
    candidates = urgencies.rename({"rid": "for_rid", "urgency": "for_urgency"})
    both = both.join(candidates, on="for_rid", how="left", maintain_order="left")
    less_urgent = pl.col("for_urgency") - pl.col("urgency") > threshold
    broken = both.filter(~(less_urgent.fill_null(False) & pl.lit(allowed)))
    return Finding(
        len(tables.forwards),
        broken.select(*PLACE, "urgency", "for_rid", "for_urgency", threshold=pl.lit(threshold, pl.Int64)),
    )


def _given_back(tables: Tables) -> Finding:
    """The event names the forward that is being planned: that has no row of the attempt any more."""
    back = tables.events.filter(kind.is_in([EventKind.RETRACT.value, EventKind.PREEMPT.value]))
    back = back.group_by(ATTEMPT).agg(given_back_for=pl.col("forward_id").max())
    rows = tables.rows.join(back, on=ATTEMPT, how="inner", maintain_order="left")
    broken = rows.filter(pl.col("forward_id") >= pl.col("given_back_for"))
    return Finding(len(tables.rows), broken.select(*PLACE, "role", "given_back_for"))


def _of(tables: Tables, what: EventKind) -> pl.DataFrame:
    return tables.events.filter(kind == what.value)


ADMISSION_RULES = (
    Rule(
        "admissions_told",
        "an attempt is admitted once, for its first row and with that row's tokens",
        ("rows.role", "rows.extend_len", "rows.seq_len", "rows.outcome", "events.kind", "events.tokens"),
        _admitted,
    ),
    Rule(
        "decisions_counted",
        "a forward counts the retractions and evictions that were told while it was planned",
        ("forwards.retracted_reqs", "forwards.evicted_pages", "events.kind"),
        _retracted_and_evicted,
    ),
    Rule(
        "sit_outs_counted",
        "under mixed chunk each running request that a forward leaves out is told of, and else none",
        ("forwards.absent_decode_reqs", "events.kind"),
        _sat_out,
    ),
    Rule(
        "preempted_by_urgency",
        "a request gives way only to one that is more urgent by more than the threshold",
        ("requests.priority", "events.kind"),
        _preempted,
    ),
    Rule(
        "given_back_is_gone",
        "an attempt that gave its KV back has no row in the forward planned then, nor later",
        ("rows.attempt", "events.kind", "events.forward_id"),
        _given_back,
    ),
)
