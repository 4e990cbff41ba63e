"""Fragmented prefills: many forwards of a few prompt tokens, each of which interrupts the decodes."""

import numpy as np
import polars as pl

from engine.batch import ForwardMode
from profiler.findings.build import build, median, total
from profiler.findings.finding import Finding, FindingKind, Severity
from profiler.findings.mends import gather_or_ride
from profiler.findings.run import Run
from profiler.findings.words import percent
from profiler.wording import plural, tokens

__all__ = ["fragments"]

_SHOWN = 5


def fragments(run: Run) -> Finding | None:
    """The finding, costliest fragment first; None where they are few, or what fills a forward is unknown."""
    limits, table = run.thresholds, run.forwards
    broken = _between_decodes(table)
    if broken.is_empty():
        return None
    full, full_words = _full(run)
    found = broken.filter(pl.col("extend_tokens") < limits.fragment_share * full)
    if found.height < limits.fragment_forwards or found["device_ns"].null_count():
        return None
    device_ns = total(found["device_ns"])
    decodes_ns = total(table.filter(pl.col("mode") == ForwardMode.DECODE.value)["device_ns"])
    share = device_ns / (device_ns + decodes_ns) if device_ns else 0.0
    if share < limits.fragment_time_share:
        return None
    costliest = found.sort("device_ns", descending=True, maintain_order=True).head(_SHOWN)
    median_tokens = median(found["extend_tokens"])
    return build(
        FindingKind.FRAGMENTED_PREFILLS,
        Severity.WATCH,
        "Tiny prefills break decodes",
        f"{plural(found.height, 'prefill forward')} of {tokens(round(median_tokens or 0))} in the median "
        f"interrupted the decodes, for {percent(share)} of the time that these ran or waited for them.",
        evidence=(
            f"each below {percent(limits.fragment_share)} of {full_words}",
            f"threshold {limits.fragment_forwards} and {percent(limits.fragment_time_share)} of the time",
        ),
        numbers={
            "forwards": found.height,
            "median_tokens": median_tokens,
            "device_ns": device_ns,
            "time_share": share,
        },
        threshold=("fragment_time_share", limits.fragment_time_share),
        forward_ids=costliest["forward_id"],
        mend=gather_or_ride(run),
        at_ns=costliest["start_ns"][0],
        lost_ns=total(found["device_ns"] * found["waiting_decodes"]),
    )


def _between_decodes(table: pl.DataFrame) -> pl.DataFrame:
    """Prefill forwards that decodes waited for, each alone between two decode forwards of its rank."""
    if table.height < 3:
        return table.clear()
    mode, rank = table["mode"].fill_null(255).to_numpy(), table["rank"].to_numpy()
    decode = mode == ForwardMode.DECODE.value
    alone = np.zeros(len(mode), dtype=np.bool_)
    alone[1:-1] = (mode[1:-1] == ForwardMode.EXTEND.value) & decode[:-2] & decode[2:]
    alone[1:-1] &= (rank[:-2] == rank[1:-1]) & (rank[2:] == rank[1:-1])
    return table.filter(pl.Series(alone)).filter(pl.col("waiting_decodes") > 0, ~pl.col("sat_out"))


def _full(run: Run) -> tuple[pl.Expr, str]:
    """The tokens that would have filled each of them, and what tells it."""
    if run.point is not None:
        return pl.lit(run.point.tokens), f"the saturation point, {tokens(run.point.tokens)}"
    return pl.col("chunk_budget_start_tokens"), "its chunk budget"
