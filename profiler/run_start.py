"""When a run began, for views whose times count from there."""

from profiler.tables import TraceLike, frame

__all__ = ["run_start_ns"]


def run_start_ns(trace: TraceLike) -> int:
    """The first arrival, or the first forward planned or started, whichever is earlier; 0 of nothing."""
    arrivals = frame(trace, "requests", ["arrival_ns"])
    forwards = frame(trace, "forwards", ["plan_end_ns", "start_ns"])
    columns = (arrivals["arrival_ns"], forwards["plan_end_ns"], forwards["start_ns"])
    return min((first for column in columns if isinstance(first := column.min(), int)), default=0)
