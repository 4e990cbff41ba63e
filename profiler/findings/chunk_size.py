"""The size of prefill forwards against the saturation point: far below, far above, or near its best."""

from dataclasses import dataclass

import polars as pl

from engine.batch import StopReason
from profiler.findings.build import build, total
from profiler.findings.finding import Finding, FindingKind, Severity
from profiler.findings.mends import better_chunk
from profiler.findings.run import Run
from profiler.findings.size_point import SizePoint
from profiler.findings.words import percent
from profiler.ledger.why import Mend
from profiler.wording import count, duration, tokens

__all__ = ["chunk_size"]

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Size:
    """What is held against the point: the chunk size where it cut a prompt, else the largest forward."""

    tokens: int
    is_chunk: bool
    device_ns: int | None  # of the longest forward of about that size
    forward_ids: tuple[int, ...]
    at_ns: int | None

    @property
    def words(self) -> str:
        return "Chunk size" if self.is_chunk else "Prefill forwards"


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What is said of that size."""

    severity: Severity
    title: str
    sentence: str
    evidence: tuple[str, ...]
    threshold: tuple[str, float]
    mend: Mend | None = None
    lost_ns: int | None = None


def chunk_size(run: Run) -> Finding | None:
    """The finding; None where the point is not known, or nothing was cut and no forward is far above it."""
    size = _size(run)
    point = None if size is None else run.point
    share = None if size is None or point is None else point.share(size.tokens)
    if size is None or point is None or share is None:
        return None
    limits = run.thresholds
    if size.tokens >= limits.chunk_excess * point.high and _decodes_beside(run):
        verdict = _above(run, size, point)
    elif not size.is_chunk:
        return None
    elif share < limits.chunk_share:
        verdict = _below(run, size, point, share)
    else:
        verdict = _near(run, size, point, share)
    return _finding(verdict, size, point, share)


def _prefills(run: Run) -> pl.DataFrame:
    return run.forwards.filter(pl.col("extend_tokens") > 0)


def _size(run: Run) -> _Size | None:
    prefills = _prefills(run)
    if prefills.is_empty():
        return None
    cut = prefills.filter(
        (pl.col("stop_reason") == StopReason.CHUNK.value) | pl.col("chunked_rid").is_not_null()
    )
    chunk = run.chunk_tokens
    is_chunk = chunk is not None and not cut.is_empty()
    largest = (cut if is_chunk else prefills).sort("extend_tokens", "device_ns", descending=True)
    alike = largest.filter(pl.col("extend_tokens") >= largest["extend_tokens"][0] / 2)
    slowest = alike["device_ns"].max()
    return _Size(
        tokens=chunk if is_chunk and chunk is not None else int(largest["extend_tokens"][0]),
        is_chunk=is_chunk,
        device_ns=slowest if isinstance(slowest, int) else None,
        forward_ids=tuple(alike["forward_id"].head(_SHOWN)),
        at_ns=largest["start_ns"][0],
    )


def _above(run: Run, size: _Size, point: SizePoint) -> _Verdict:
    limit = run.thresholds.chunk_excess
    took = "" if size.device_ns is None else f" and {duration(size.device_ns / 1e9)}"
    return _Verdict(
        Severity.WATCH,
        f"{size.words} far above saturation",
        f"Prefill forwards take up to {tokens(size.tokens)}{took}; {count(point.tokens)} reach "
        f"{percent(point.q)} of the best throughput.",
        (f"{size.tokens / point.high:.1f} times the saturation point", f"threshold {limit:g} times"),
        ("chunk_excess", limit),
        better_chunk(run),
    )


def _below(run: Run, size: _Size, point: SizePoint, share: float) -> _Verdict:
    limit = run.thresholds.chunk_share
    return _Verdict(
        Severity.WATCH,
        f"{size.words} far below saturation",
        f"{_reach(size, share)}; the saturation point is {count(point.tokens)}.",
        (f"threshold {percent(limit)}",),
        ("chunk_share", limit),
        better_chunk(run),
        _lost_ns(run, 1 - share),
    )


def _near(run: Run, size: _Size, point: SizePoint, share: float) -> _Verdict:
    limit = run.thresholds.chunk_share
    return _Verdict(
        Severity.FINE,
        f"{size.words} is near its best",
        f"{_reach(size, share)}; the saturation point is {count(point.tokens)}.",
        (f"threshold {percent(limit)}",),
        ("chunk_share", limit),
    )


def _reach(size: _Size, share: float) -> str:
    return f"Chunks of {tokens(size.tokens)} reach {percent(share)} of the plateau"


def _finding(verdict: _Verdict, size: _Size, point: SizePoint, share: float) -> Finding:
    span = f"interval [{count(point.low)}, {count(point.high)}] tokens" if point.low < point.high else None
    return build(
        FindingKind.CHUNK_SIZE,
        verdict.severity,
        verdict.title,
        verdict.sentence,
        evidence=(
            *verdict.evidence,
            span,
            f"by {point.by}",
            None if point.residual is None else f"fit residual {percent(point.residual)}",
        ),
        numbers={
            "tokens": size.tokens,
            "point_tokens": point.tokens,
            "point_low_tokens": point.low,
            "point_high_tokens": point.high,
            "plateau_share": share,
            "forward_ns": size.device_ns,
        },
        threshold=verdict.threshold,
        forward_ids=size.forward_ids,
        mend=verdict.mend,
        at_ns=size.at_ns,
        lost_ns=verdict.lost_ns,
    )


def _decodes_beside(run: Run) -> bool:
    """Whether any decode waited for a prefill forward or rode along in one."""
    told = _prefills(run).select((pl.col("waiting_decodes") > 0) | (pl.col("decode_tokens") > 0))
    return bool(told.to_series().any())


def _lost_ns(run: Run, share: float) -> int | None:
    """A share of the prefill forwards' device time, once for each decode that waited or rode along."""
    beside = pl.col("waiting_decodes").fill_null(0) + pl.col("decode_tokens").fill_null(0)
    prefills = _prefills(run)
    if prefills["device_ns"].null_count():
        return None
    return round(share * total(prefills.select(pl.col("device_ns") * beside).to_series()))
