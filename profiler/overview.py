"""What the Overview page says of a run, composed from the analyses; it computes nothing itself."""

from dataclasses import dataclass

from engine.arithmetic import kv_bytes_per_token
from engine.errors import ConfigError
from profiler.forward_fit_setting import setting_of
from profiler.ledger.parts import GapDetail
from profiler.ledger.report import StallReport
from profiler.ledger.ttft import ttft_ledger
from profiler.overview_pool import PoolLosses, pool_losses
from profiler.overview_waits import LongWait, longest_waits, queued_behind
from profiler.timeline.kpis import Kpis
from profiler.timeline.requests import requests_of
from profiler.timeline.tiles import Sums
from profiler.timeline.timeline import Timeline

__all__ = ["Overview", "overview"]

_QUICK_FORWARDS = 200_000  # of more, one request's ledger takes too long for a first picture


@dataclass(frozen=True, slots=True)
class Overview:
    """The parts of the page. None is what the trace does not tell."""

    kpis: Kpis
    sums: Sums  # of the whole run
    report: StallReport
    longest: GapDetail | None  # the gap that stands for `report.longest`
    first_token: LongWait | None  # whose wait is the longest TTFT
    queued: LongWait | None  # whose wait is the longest in the queue
    behind: tuple[str, ...]  # names of those whose chunks ran meanwhile, most time first
    pool: PoolLosses
    kv_token_bytes: int | None  # of one token on one device


def overview(timeline: Timeline) -> Overview:
    """The parts that are told at once. Findings, checks and prices take longer, and are asked for apart."""
    report, kpis = timeline.stall_report, timeline.kpis
    longest = report.longest
    first_token, queued = longest_waits(requests_of(timeline.trace), kpis)
    return Overview(
        kpis=kpis,
        sums=timeline.sums(timeline.start_ns, timeline.end_ns),
        report=report,
        longest=None if longest is None else timeline.gap(longest.rids[0], longest.token_index),
        first_token=first_token,
        queued=queued,
        behind=_behind(timeline, queued),
        pool=pool_losses(timeline.trace),
        kv_token_bytes=_kv_token_bytes(timeline),
    )


def _behind(timeline: Timeline, queued: LongWait | None) -> tuple[str, ...]:
    if queued is None or timeline.num_forwards > _QUICK_FORWARDS:
        return ()
    return queued_behind(ttft_ledger(timeline.trace, queued.rid))


def _kv_token_bytes(timeline: Timeline) -> int | None:
    try:
        setting = setting_of(timeline.trace.meta)
    except ConfigError:
        return None
    return kv_bytes_per_token(setting.shape, setting.element_bytes)
