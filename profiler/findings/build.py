"""Puts a finding together from what its own module found, in one form for all kinds."""

from collections.abc import Iterable, Mapping

import polars as pl

from profiler.findings.finding import Finding, FindingKind, Severity
from profiler.ledger.why import Mend
from profiler.wording import duration

__all__ = ["build", "median", "total"]

SHOWN = 6  # ids that a finding carries


def build(
    kind: FindingKind,
    severity: Severity,
    title: str,
    sentence: str,
    *,
    evidence: Iterable[str | None],
    numbers: Mapping[str, float | int | None],
    threshold: tuple[str, float],
    forward_ids: Iterable[int],
    rids: Iterable[int] = (),
    mend: Mend | None = None,
    at_ns: int | None,
    lost_ns: int | None = None,
) -> Finding:
    """A finding. Parts of the evidence that are None are left out; what was lost comes last in it."""
    lost = f"{duration(lost_ns / 1e9)} of decode time lost" if lost_ns else None
    return Finding(
        kind=kind,
        severity=severity,
        title=title,
        sentence=sentence,
        evidence=" · ".join(part for part in (*evidence, lost) if part),
        numbers=numbers,
        threshold=threshold,
        forward_ids=_shown(forward_ids),
        rids=_shown(rids),
        mend=None if mend is None else mend.sentence,
        option=None if mend is None else mend.option,
        at_ns=at_ns,
        lost_ns=lost_ns,
    )


def total(values: pl.Series) -> int:
    """Sum of whole numbers; those that are unknown count nothing."""
    return int(values.cast(pl.Int64).sum())


def median(values: pl.Series) -> float | None:
    """The median of what is known; None of nothing."""
    found = values.cast(pl.Float64).median()
    return found if isinstance(found, float) else None


def _shown(ids: Iterable[int]) -> tuple[int, ...]:
    """The first few; of more the last one stands for the rest."""
    whole = tuple(int(each) for each in ids)
    return whole if len(whole) <= SHOWN else (*whole[: SHOWN - 1], whole[-1])
