"""When a run began, as the command line and the pictures count."""

from pathlib import Path

from profiler.run_start import run_start_ns
from profiler.timeline.timeline import open_timeline
from tests.support.three_runs import record_three_runs
from tests.support.traces import MemoryTrace, forward, request


def test_it_is_the_first_arrival_or_forward() -> None:
    late = forward(0, 70, 90) | {"plan_end_ns": 60}
    assert run_start_ns(MemoryTrace({"forwards": [late], "requests": [request(0, 50)]})) == 50
    assert run_start_ns(MemoryTrace({"forwards": [late], "requests": [request(0, 80)]})) == 60
    assert run_start_ns(MemoryTrace({})) == 0


def test_it_is_where_pictures_begin(tmp_path: Path) -> None:
    for path in record_three_runs(tmp_path).values():
        timeline = open_timeline(path)
        assert run_start_ns(timeline.trace) == timeline.start_ns
