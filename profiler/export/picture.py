"""The whole picture of a trace, or of a range of it, as items for an exporter."""

from collections.abc import Iterator

from profiler.export.forwards import Forwards
from profiler.export.requests import request_items
from profiler.timeline.timeline import Timeline
from traces.drawing import Item

__all__ = ["draw"]


def draw(timeline: Timeline, start_ns: int, end_ns: int) -> Iterator[Item]:
    """Everything that reaches into [start_ns, end_ns), uncut, one track after another.

    Per rank: the forwards and the counters that follow them, then a track for each request, by arrival. For
    each culprit of a listed stall an arrow leads from the chunk that took the most of it to the span of the
    late token, if both are drawn.
    """
    forwards = Forwards(timeline, start_ns, end_ns)
    yield from forwards.items()
    yield from request_items(timeline, forwards, start_ns, end_ns)
