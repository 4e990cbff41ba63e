"""ITL p99 hides the wall: a silence that so few tokens hit that the 99th percentile does not show it."""

import polars as pl

from engine.batch import ForwardMode
from engine.observer import EventKind
from profiler.findings.build import build, total
from profiler.findings.finding import Finding, FindingKind, Severity
from profiler.findings.mends import for_cause
from profiler.findings.run import Run
from profiler.findings.waits import Waits
from profiler.ledger.parts import PartKind
from profiler.wording import count, duration, times

__all__ = ["hidden_wall"]


def hidden_wall(run: Run) -> Finding | None:
    """The finding, of the longest gap; None where p99 comes near it, or without gaps."""
    ratio = run.thresholds.hidden_wall_ratio
    if run.itl is not None and (run.itl.max or 0) < ratio * (run.itl.p99 or 0):
        return None  # spares going through the gaps
    waits = run.waits
    if waits is None or waits.longest_ns <= 0 or waits.longest_ns < ratio * waits.p99_ns:
        return None
    factor = f"the longest is {times(waits.longest_ns / waits.p99_ns)} p99" if waits.p99_ns else None
    return build(
        FindingKind.P99_HIDES_THE_WALL,
        Severity.WATCH,
        "ITL p99 hides the wall",
        f"p99 is {duration(waits.p99_ns / 1e9)}, the longest gap {duration(waits.longest_ns / 1e9)}: "
        f"{_how_many(waits)}.",
        evidence=(factor, f"before forward {waits.own_forward_id}", f"threshold {ratio:g} times"),
        numbers={
            "p99_ns": waits.p99_ns,
            "longest_ns": waits.longest_ns,
            "gaps": waits.gaps,
            "wall_gaps": waits.wall_gaps,
            "requests": len(waits.rids),
        },
        threshold=("hidden_wall_ratio", ratio),
        forward_ids=(waits.own_forward_id,),
        rids=waits.rids,
        mend=for_cause(run, _cause(run, waits) if waits.cause is None else waits.cause),
        at_ns=waits.start_ns,
        lost_ns=round((waits.longest_ns - waits.p99_ns) * len(waits.rids)),
    )


def _how_many(waits: Waits) -> str:
    if waits.wall_gaps is None:
        return f"{count(len(waits.rids))} of {count(waits.gaps)} gaps"
    return f"{count(waits.wall_gaps)} of {count(waits.gaps)} gaps hit the wall"


def _cause(run: Run, waits: Waits) -> PartKind | None:
    """Of a gap without a ledger: a retraction, prefill in at least half of it, or its own mixed forward."""
    begin, end = waits.start_ns, waits.start_ns + waits.longest_ns
    retracted = run.events(EventKind.RETRACT).filter(pl.col("rid") == waits.rids[0])
    if retracted["t_ns"].is_between(begin, end).any():
        return PartKind.RETRACTED
    within = run.forwards.filter(pl.col("start_ns") < end, pl.col("end_ns") > begin)
    own = pl.col("forward_id") == waits.own_forward_id
    clipped = pl.min_horizontal("end_ns", pl.lit(end)) - pl.max_horizontal("start_ns", pl.lit(begin))
    prefill = within.filter(pl.col("mode") == ForwardMode.EXTEND.value, ~own).select(clipped)
    if 2 * total(prefill.to_series()) >= waits.longest_ns:
        return PartKind.OTHERS_PREFILL
    mixed = (within.filter(own)["mode"] == ForwardMode.MIXED.value).any()
    return PartKind.MIXED_EXTRA if mixed else None
