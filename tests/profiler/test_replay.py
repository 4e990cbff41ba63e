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
            for t_ns in (
                forward["plan_end_ns"],
                forward["start_ns"],
                forward["end_ns"] - 1,
                forward["end_ns"],
            ):
                state = timeline.state_at(t_ns)
                shown = _shown(state, t_ns, forwards)
                _same(state, shown, [row for row in rows if row["forward_id"] == shown["forward_id"]])
            _counts(timeline.state_at(forward["plan_end_ns"]), forward, rows)


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


def _shown(state: SchedulerState, t_ns: int, forwards: list[dict]) -> dict:
    """The forward on the device, else the one planned last; while it runs at most the next one is planned."""
    planned = [forward for forward in forwards if forward["plan_end_ns"] <= t_ns][-1]
    assert state.planned is not None
    assert state.planned.forward_id == planned["forward_id"]
    on_device = [forward for forward in forwards if forward["start_ns"] <= t_ns < forward["end_ns"]]
    if not on_device:
        assert (state.on_device, state.planned_next) == (None, None)
        return planned
    assert state.on_device is not None
    assert state.on_device.forward_id == on_device[-1]["forward_id"]
    ahead = planned["forward_id"] - on_device[-1]["forward_id"]
    assert ahead in (0, 1)
    assert (state.planned_next is not None) == bool(ahead)
    return on_device[-1]


def _counts(state: SchedulerState, forward: dict, rows: list[dict]) -> None:
    """When a forward has just been planned, who is there is whom it counted."""
    assert len(state.waiting) == forward["waiting_reqs"]
    mine = [row["rid"] for row in rows if row["forward_id"] == forward["forward_id"]]
    decoding = {
        row["rid"]
        for row in rows
        if row["forward_id"] == forward["forward_id"] and row["role"] == Role.DECODE.value
    }
    # While decode rows are chosen, who ends with the outstanding result is dropped; else nobody is.
    ending = sum(request.ending for request in state.running)
    assert ending <= forward["overlapped"] * len(state.running)
    running = len(state.running) - ending * (forward["mode"] == ForwardMode.DECODE.value)
    assert running == forward["running_reqs"]
    absent = [request for request in state.running if request.rid not in mine]
    assert forward["absent_decode_reqs"] in (len(absent), len(absent) - ending)
    if decoding:
        assert forward["absent_decode_reqs"] == len(absent) - ending == 0
        assert decoding <= {request.rid for request in state.running}


def _same(state: SchedulerState, forward: dict, rows: list[dict]) -> None:
    """All that is recorded is that of one forward."""
    assert state.forward is not None
    assert state.forward.forward_id == forward["forward_id"]
    assert (state.running_reqs, state.waiting_reqs) == (forward["running_reqs"], forward["waiting_reqs"])
    extends = [row for row in rows if row["role"] != Role.DECODE.value]
    assert [(row.rid, row.role, row.prefix_len, row.extend_end) for row in state.extend_rows] == [
        (row["rid"], Role(row["role"]).name, row["prefix_len"], row["prefix_len"] + row["extend_len"])
        for row in extends
    ]
    riding = {row["rid"] for row in rows}
    assert all(request.in_forward == (request.rid in riding) for request in state.running)
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
