"""Goes through the nine kinds of finding on one trace."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from profiler.findings.chunk_size import chunk_size
from profiler.findings.decode_batch import decode_batch
from profiler.findings.finding import Finding, Severity
from profiler.findings.fragments import fragments
from profiler.findings.hidden_wall import hidden_wall
from profiler.findings.host_bound import host_bound
from profiler.findings.kv_limited import kv_limited
from profiler.findings.prefix_thrash import prefix_thrash
from profiler.findings.retractions import retractions
from profiler.findings.run import Run
from profiler.findings.starvation import starvation
from profiler.findings.thresholds import Thresholds
from profiler.latency import Spread
from profiler.ledger.report import StallReport
from profiler.tables import TraceLike

if TYPE_CHECKING:
    from profiler.saturation_report import SaturationReport

__all__ = ["findings"]

_KINDS: tuple[Callable[[Run], Finding | None], ...] = (
    starvation,
    hidden_wall,
    chunk_size,
    fragments,
    kv_limited,
    retractions,
    prefix_thrash,
    host_bound,
    decode_batch,
)
DEFAULTS = Thresholds()
_ORDER = (Severity.BAD, Severity.WATCH, Severity.FINE)


def findings(
    trace: TraceLike,
    thresholds: Thresholds = DEFAULTS,
    *,
    stalls: StallReport | None = None,
    itl: Spread | None = None,
    saturation: "SaturationReport | None" = None,
    decode_saturation: "SaturationReport | None" = None,
) -> tuple[Finding, ...]:
    """What a trace shows, BAD first, then WATCH and FINE; of one severity those that lost most first.

    A kind that the trace's columns cannot tell is not among them, nor one whose threshold is not reached. A
    closed loop, like a sweep, has none: what it shows is the making of whoever measured.
    What is known already spares finding it again: `stalls` and `itl` of this trace, and the saturation
    reports, which may be those of another trace of the same machine, like a sweep.
    """
    if _is_closed(trace):
        return ()
    run = Run(
        trace,
        thresholds,
        stalls=stalls,
        itl=itl,
        saturation=saturation,
        decode_saturation=decode_saturation,
    )
    found = [finding for find in _KINDS if (finding := find(run)) is not None]
    return tuple(sorted(found, key=lambda each: (_ORDER.index(each.severity), -(each.lost_ns or 0))))


def _is_closed(trace: TraceLike) -> bool:
    workload = trace.meta.get("workload")
    return isinstance(workload, dict) and workload.get("kind") == "closed"
