from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import make_trace
from profiler.invariants import Status, check_trace
from profiler.stalls import stalls
from profiler.tables import frame
from traces.reader import open_trace
from traces.schema import enum_code


def generated(folder: Path, forwards: int, *, mixed: bool = False, rows: int = 8, seed: int = 0) -> Path:
    path = folder / "t.chunkscope"
    options = Namespace(forwards=forwards, output=path, mixed=mixed, seed=seed, rows=rows)
    episodes = list(make_trace.record_episodes(folder, options))
    make_trace.write_trace(path, episodes, options)
    return path


@pytest.mark.parametrize("mixed", [False, True])
def test_a_generated_trace_is_sealed_and_holds_every_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mixed: bool
) -> None:
    monkeypatch.setattr(make_trace, "EPISODE_FORWARDS", 150)
    trace = open_trace(generated(tmp_path, 400, mixed=mixed))
    assert trace.sealed
    assert trace.meta["provenance"] == "simulated"
    assert trace.meta["generated"] == {"forwards": 400, "episode_forwards": 150}
    report = check_trace(trace)
    assert {rule.name for rule in report.rules if rule.status is not Status.HELD} == set()
    forwards = frame(trace, "forwards")
    assert forwards["forward_id"].to_list() == list(range(400))
    assert forwards["plan_start_ns"].is_sorted()
    assert len(frame(trace, "rows")) > 2 * 400
    assert not frame(trace, "requests")["name"].has_nulls()
    assert len(stalls(trace)) > 0


@pytest.mark.parametrize("mixed", [False, True])
def test_a_generated_trace_has_as_many_rows_as_asked_for(tmp_path: Path, mixed: bool) -> None:
    trace = open_trace(generated(tmp_path, 1500, mixed=mixed, rows=32, seed=4))
    rows = frame(trace, "rows")
    assert 28 < len(rows) / 1500 < 36
    assert (rows["role"] == enum_code("rows", "role", "MIDDLE")).sum() > 5
    retractions = (frame(trace, "events")["kind"] == enum_code("events", "kind", "RETRACT")).sum()
    assert retractions > 0 or mixed
