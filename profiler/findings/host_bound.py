"""Host-bound decode: between two decode forwards the device waits for the host."""

import numpy as np
import polars as pl

from engine.batch import ForwardMode
from profiler.findings.build import build, total
from profiler.findings.finding import Finding, FindingKind, Severity
from profiler.findings.run import Run
from profiler.findings.words import percent
from profiler.ledger.parts import PartKind
from profiler.ledger.why import Mend, mend
from profiler.ledger.words import PART_WORDS
from profiler.watched import slowed
from profiler.wording import count, duration
from traces.schema import enum_code

__all__ = ["host_bound"]

_PAIRS = 8  # of consecutive decode forwards: fewer say nothing of a run
_SHOWN = 3
_HOST = (PartKind.PLAN, PartKind.LAUNCH, PartKind.RESULT, PartKind.WAIT)
_NO_GRAPH = enum_code("forwards", "graph", "NONE")


def host_bound(run: Run) -> Finding | None:
    """The finding, longest pauses first; None where the device is kept busy, or is not timed."""
    limit, pairs = run.thresholds.host_share, _pairs(run)
    if pairs.height < _PAIRS:
        return None
    idle_ns, period_ns = total(pairs["idle_ns"]), total(pairs["period_ns"])
    share = idle_ns / period_ns
    if share < limit:
        return None
    longest = pairs.sort("idle_ns", descending=True, maintain_order=True).head(_SHOWN)
    idle, period = (duration(ns / pairs.height / 1e9) for ns in (idle_ns, period_ns))
    return build(
        FindingKind.HOST_BOUND_DECODE,
        Severity.WATCH,
        "Host-bound decode",
        f"Between decode forwards the device waits for the host: {idle} of {period} a forward.",
        evidence=(
            f"{percent(share)} of the time of {count(pairs.height)} decode forwards",
            _host_words(run),
            f"threshold {percent(limit)}",
        ),
        numbers={"pairs": pairs.height, "idle_ns": idle_ns, "period_ns": period_ns, "share": share},
        threshold=("host_share", limit),
        forward_ids=longest["forward_id"],
        mend=_mend(run),
        at_ns=longest["idle_from_ns"][0],
        lost_ns=total(pairs["idle_ns"] * pairs["decode_tokens"]),
    )


def _pairs(run: Run) -> pl.DataFrame:
    """Decode forwards right behind another of their rank: forward_id, decode_tokens, and the time between.

    `idle_ns` from `idle_from_ns`, the earlier one's end, to the start; `period_ns` from end to end.
    """
    table = run.forwards.with_columns(slowed=slowed(run.trace, run.forwards))
    plain = (pl.col("mode") == ForwardMode.DECODE.value) & ~pl.col("slowed")
    before = pl.col("end_ns").shift(1)
    return (
        table.with_columns(
            pair=plain & plain.shift(1) & (pl.col("rank") == pl.col("rank").shift(1)),
            idle_from_ns=before,
            idle_ns=(pl.col("start_ns") - before).clip(lower_bound=0),
            period_ns=pl.col("end_ns") - before,
        )
        .filter(pl.col("pair"), pl.col("idle_ns").is_not_null(), pl.col("period_ns") > 0)
        .select("forward_id", "decode_tokens", "idle_from_ns", "idle_ns", "period_ns")
    )


def _host_words(run: Run) -> str | None:
    """What the host does in all gaps, by the ledger."""
    if run.stalls is None or not run.stalls.waiting_ns:
        return None
    by_kind, whole = run.stalls.by_kind, run.stalls.waiting_ns
    parts = [
        f"{percent(by_kind[kind] / whole)} {PART_WORDS[kind].removeprefix('host: ')}"
        for kind in _HOST
        if by_kind.get(kind)
    ]
    return f"of all waiting {', '.join(parts)}" if parts else None


def _mend(run: Run) -> Mend | None:
    """What is off that would hide or shorten the host's work; None where nothing is known to be off."""
    if run.flag("disable_overlap_schedule"):
        return mend(PartKind.PLAN, run.trace.meta)
    hardware = run.trace.meta.get("hardware")
    on_gpu = isinstance(hardware, dict) and hardware.get("device") == "cuda"
    decodes = run.forwards.filter(pl.col("mode") == ForwardMode.DECODE.value)
    graphs = decodes["graph"].drop_nulls().to_numpy()
    if on_gpu and len(graphs) and np.all(graphs == _NO_GRAPH):
        return Mend("Without --disable-cuda-graph a decode forward is launched as one graph.", None)
    return None
