"""Where a gap lies on the page's clock, and where the cursor goes that shows its culprit."""

from profiler.timeline.tiles import GapDetail
from profiler.timeline.timeline import Timeline

__all__ = ["culprit_ns", "gap_place"]


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
