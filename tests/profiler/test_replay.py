"""The state at a cursor is what the trace says of its forward, and who was there is who came and went."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings

from engine.batch import Role
from engine.config import EngineConfig
from profiler.replay import SchedulerState
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.recorded import record_run, rows_of
from tests.support.three_runs import record_three_runs
from tests.support.workloads import Arrival, scenarios


@settings(max_examples=ENGINE_EXAMPLES // 5, deadline=None)
@given(scenarios())
def test_at_every_forward_it_is_what_the_trace_says(scenario: tuple[EngineConfig, list[Arrival]]) -> None:
    with TemporaryDirectory() as directory:
        trace, _ = record_run(Path(directory) / "t.chunkscope", *scenario)
        timeline = Timeline(trace)
        rows = rows_of(trace, "rows")
        for forward in rows_of(trace, "forwards"):
            state = timeline.state_at(forward["plan_end_ns"])
            _same(state, forward, [row for row in rows if row["forward_id"] == forward["forward_id"]])


def _same(state: SchedulerState, forward: dict, rows: list[dict]) -> None:
    assert state.forward is not None
    assert state.forward.forward_id == forward["forward_id"]
    assert (len(state.running), len(state.waiting)) == (forward["running_reqs"], forward["waiting_reqs"])
    assert (state.running_reqs, state.waiting_reqs) == (forward["running_reqs"], forward["waiting_reqs"])
    decoding = {row["rid"] for row in rows if row["role"] == Role.DECODE.value}
    assert decoding == {request.rid for request in state.running if request.in_forward}
    absent = [request for request in state.running if not request.in_forward]
    assert len(absent) == forward["absent_decode_reqs"]
    assert state.inflight_middle_chunks == forward["inflight_middle_chunks"]
    kv = state.kv
    assert kv is not None
    assert (kv.total, kv.free) == (forward["pages_total"], forward["pages_free"])
    assert (kv.locked, kv.private, kv.evictable) == tuple(
        forward[f"pages_{kind}"] for kind in ("protected", "private", "evictable")
    )
    if forward["chunked_rid"] is None:
        assert state.half_done is None
    else:
        assert state.half_done is not None
        assert state.half_done.rid == forward["chunked_rid"]
        mine = [row for row in rows if row["rid"] == forward["chunked_rid"]]
        for row in mine:
            assert state.half_done.prefix_len == row["prefix_len"]
            assert state.half_done.extend_end == row["prefix_len"] + row["extend_len"]
    for budget in state.budgets:
        assert budget.start_tokens == forward[f"{budget.name}_budget_start_tokens"]
        assert budget.end_tokens == forward[f"{budget.name}_budget_end_tokens"]


def test_between_forwards_arrivals_and_tokens_count_at_once(tmp_path: Path) -> None:
    timeline = open_timeline(record_three_runs(tmp_path)["chunked"])
    before, after = (timeline.state_at(t) for t in (89_000_000, 91_000_000))
    assert before.forward == after.forward
    assert [request.name for request in before.waiting] == []
    assert [(r.name, r.waited_ns) for r in after.waiting] == [("short-1", 1_000_000)]
    assert after.half_done is not None
    assert (after.half_done.name, after.half_done.number, after.half_done.of) == ("long-1", 2, 10)
    assert len(after.running) == 6
    assert {request.output_tokens for request in after.running} == {10}


def test_before_the_first_forward_only_who_waits_is_known(tmp_path: Path) -> None:
    timeline = open_timeline(record_three_runs(tmp_path)["whole"])
    state = timeline.state_at(timeline.start_ns)
    assert (state.forward, state.kv, state.half_done, state.budgets) == (None, None, None, ())
    assert len(state.waiting) == 6
