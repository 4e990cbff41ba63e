"""Where a gap lies on the page's clock, and where the cursor goes that shows its culprit."""

from collections.abc import Sequence

from profiler.ledger.parts import GapDetail
from profiler.timeline.timeline import Timeline
from ui.web.runs import Run, compared

__all__ = ["culprit_ns", "gap_place", "worst_gap", "worst_place"]


def worst_gap(runs: Sequence[Run]) -> tuple[int, GapDetail | None]:
    """The run with the longest gap, and that gap; the first run where no request gave two tokens."""
    found = [(run.index, gap) for run in compared(runs) if (gap := run.timeline.worst_gap()) is not None]
    return max(found, key=lambda each: each[1].gap_ns, default=(compared(runs)[0].index, None))


def worst_place(runs: Sequence[Run]) -> dict[str, int] | None:
    """Where the longest gap of all lies, and in which run; None where there is none."""
    run, gap = worst_gap(runs)
    return None if gap is None else {"run": run, **gap_place(runs[run].timeline, gap)}


def gap_place(timeline: Timeline, gap: GapDetail) -> dict[str, int]:
    """Its request and token, its ends, and the cursor, in nanoseconds since the run's start."""
    return {
        "rid": gap.rid,
        "tok": gap.token_index,
        "start": gap.start_ns - timeline.start_ns,
        "end": gap.end_ns - timeline.start_ns,
        "t": culprit_ns(timeline, gap),
    }


def culprit_ns(timeline: Timeline, gap: GapDetail) -> int:
    """When its costliest chunk starts, or the gap itself where no prompt is to blame."""
    start_ns = gap.start_ns if gap.costliest is None else gap.costliest.start_ns
    return max(0, start_ns - timeline.start_ns)
