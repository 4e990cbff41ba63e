"""Retraction storm: running requests give their KV back again and again, and are computed anew."""

import polars as pl

from engine.observer import EventKind
from profiler.findings.build import build, total
from profiler.findings.finding import Finding, FindingKind, Severity
from profiler.findings.mends import more_reserve
from profiler.findings.run import Run
from profiler.findings.words import named, percent
from profiler.wording import plural, tokens

__all__ = ["retractions"]


def retractions(run: Run) -> Finding | None:
    """The finding, with the most retracted requests; None where there are few, or the trace tells none."""
    limits, number = run.thresholds, _number(run)
    if not number:
        return None
    back = _came_back(run)
    ended = run.requests["finish_reason"].count()
    rate = number / ended if ended else None
    computed = total(run.forwards["extend_tokens"])
    anew = None if back.is_empty() else total(back["anew_tokens"])
    share = None if anew is None or not computed else anew / computed
    often = rate is not None and rate >= limits.retractions_per_request
    if not often and (share is None or share < limits.recomputed_share):
        return None
    name = "retractions_per_request" if often else "recomputed_share"
    at = run.forwards.filter(pl.col("retracted_reqs") > 0)
    rids = _most(run)
    whose = f" ({named(run.names(rids))})" if rids else ""
    again = "" if anew is None else f"; {tokens(anew)} were computed anew"
    return build(
        FindingKind.RETRACTION_STORM,
        Severity.BAD,
        "Retraction storm",
        f"Requests gave their KV back {plural(number, 'time')}{whose}{again}.",
        evidence=(
            f"{plural(number, 'retraction')}, {plural(ended, 'request')} ended",
            None if share is None else f"{percent(share)} of the prompt tokens computed",
            f"threshold {limits.retractions_per_request:g} a request or {percent(limits.recomputed_share)}",
        ),
        numbers={
            "retractions": number,
            "retractions_per_request": rate,
            "recomputed_tokens": anew,
            "recomputed_share": share,
        },
        threshold=(name, getattr(limits, name)),
        forward_ids=at["forward_id"],
        rids=rids,
        mend=more_reserve(run),
        at_ns=_first_ns(run, at),
        lost_ns=None if back.is_empty() else total(back["away_ns"]),
    )


def _number(run: Run) -> int | None:
    """Retractions; None where the trace tells none."""
    if run.has_events:
        return run.events(EventKind.RETRACT).height
    known = run.forwards["retracted_reqs"].drop_nulls()
    return total(known) if len(known) else None


def _came_back(run: Run) -> pl.DataFrame:
    """Retractions whose request was admitted again: anew_tokens, and away_ns until then.

    The tokens that it held, less those that it found in the prefix cache when it came back.
    """
    keys = ("rid", "attempt")
    gone = run.events(EventKind.RETRACT).select(*keys, "t_ns", "tokens")
    back = run.events(EventKind.ADMIT).select(*keys, back_ns="t_ns")
    hit = run.events(EventKind.HIT).select(*keys, hit_tokens="tokens")
    returned = gone.with_columns(pl.col("attempt") + 1).join(back, on=keys).join(hit, on=keys, how="left")
    return returned.select(
        anew_tokens=(pl.col("tokens") - pl.col("hit_tokens").fill_null(0)).clip(lower_bound=0),
        away_ns=pl.col("back_ns") - pl.col("t_ns"),
    )


def _most(run: Run) -> list[int]:
    """Requests that were retracted, most often first."""
    counts = run.events(EventKind.RETRACT).group_by("rid").len()
    rids: list[int] = counts.sort("len", "rid", descending=[True, False])["rid"].drop_nulls().to_list()
    return rids


def _first_ns(run: Run, at: pl.DataFrame) -> int | None:
    events = run.events(EventKind.RETRACT)
    first = at["start_ns"].min() if events.is_empty() else events["t_ns"].min()
    return first if isinstance(first, int) else None
