"""The state at a cursor is what the trace says of its forward, and who was there is who came and went."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.batch import ForwardMode, Role
from engine.config import EngineConfig
from engine.request import Request, SamplingParams
from profiler.scheduler_state import SchedulerState
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.recorded import record_run, record_timed_run, rows_of
from tests.support.three_runs import record_three_runs
from tests.support.workloads import Arrival, configs, scenarios

MOST_FORWARDS = 25  # of one run that are looked at


@settings(max_examples=ENGINE_EXAMPLES // 5, deadline=None)
@given(scenarios())
def test_at_every_forward_it_is_what_the_trace_says(scenario: tuple[EngineConfig, list[Arrival]]) -> None:
    with TemporaryDirectory() as directory:
        trace, _ = record_run(Path(directory) / "t.chunkscope", *scenario)
        timeline = Timeline(trace)
        rows = rows_of(trace, "rows")
        forwards = rows_of(trace, "forwards")
        for forward in forwards[:: 1 + len(forwards) // MOST_FORWARDS]:
            state = timeline.state_at(forward["plan_end_ns"])
            _same(state, forward, [row for row in rows if row["forward_id"] == forward["forward_id"]])
            _runs(timeline.state_at((forward["start_ns"] + forward["end_ns"]) // 2), forward)


@settings(max_examples=ENGINE_EXAMPLES // 10, deadline=None)
@given(configs(), st.data())
def test_who_arrives_while_a_forward_is_planned_does_not_wait_for_it(
    config: EngineConfig, data: st.DataObject
) -> None:
    """Times at which the engine looks whether somebody came lie one tick before its plans begin."""
    requests = [
        Request(
            rid, f"r{rid}", [rid] * 9, SamplingParams(6, ignore_eos=True), data.draw(st.integers(0, 10**6))
        )
        for rid in range(6)
    ]
    arrivals = [request.arrival_ns for request in requests]
    with TemporaryDirectory() as directory:
        trace, _ = record_timed_run(Path(directory) / "t.chunkscope", config, requests)
        timeline = Timeline(trace)
        for forward in rows_of(trace, "forwards"):
            looked_ns = forward["plan_start_ns"] - 1_000
            if not any(looked_ns < t <= forward["plan_start_ns"] for t in arrivals):
                assert len(timeline.state_at(forward["plan_end_ns"]).waiting) == forward["waiting_reqs"]


def _runs(state: SchedulerState, forward: dict) -> None:
    """While a forward runs it is the one planned last, or under overlap the one before."""
    assert state.forward is not None
    assert state.on_device is not None
    assert state.on_device.forward_id == forward["forward_id"]
    assert state.forward.forward_id - forward["forward_id"] in (0, 1)


def _same(state: SchedulerState, forward: dict, rows: list[dict]) -> None:
    assert state.forward is not None
    assert state.forward.forward_id == forward["forward_id"]
    assert len(state.waiting) == state.waiting_reqs == forward["waiting_reqs"]
    decoding = {row["rid"] for row in rows if row["role"] == Role.DECODE.value}
    assert decoding == {request.rid for request in state.running if request.in_forward}
    # While decode rows are chosen, who ends with the outstanding result is dropped; else nobody is.
    ending = sum(request.ending for request in state.running)
    assert ending <= forward["overlapped"] * len(state.running)
    running = len(state.running) - ending * (forward["mode"] == ForwardMode.DECODE.value)
    assert running == state.running_reqs == forward["running_reqs"]
    absent = [request for request in state.running if not request.in_forward]
    assert forward["absent_decode_reqs"] in (len(absent), len(absent) - ending)
    if decoding:
        assert forward["absent_decode_reqs"] == len(absent) - ending == 0
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
            assert state.half_done.inflight_middle_chunks == row["inflight_after_plan"]
        if not mine:
            over_rows = sum(row["inflight_after_plan"] for row in rows)
            assert state.half_done.inflight_middle_chunks == forward["inflight_middle_chunks"] - over_rows
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
