"""Stalls and culprits against hand-worked traces, and against a slow reading of the definition."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.batch import ForwardMode, Role
from engine.config import EngineConfig
from engine.observer import EventKind
from profiler.culprits import split_exactly
from profiler.forward_table import UNKNOWN, forward_table
from profiler.latency import gaps
from profiler.ledger.parts import GapDetail, PartKind
from profiler.mixed_extra import DECODE_MEDIAN, DECODE_PLANE, mixed_extras
from profiler.stalls import stalls
from profiler.worst_gap import culprit_forward_id, worst_gap
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.oracle_extra import alone_ns
from tests.support.recorded import record_run, rows_of
from tests.support.traces import MemoryTrace, decode_row, event, extend_row, forward, request
from tests.support.workloads import Arrival, scenarios

EXTEND, DECODE, MIXED = ForwardMode.EXTEND, ForwardMode.DECODE, ForwardMode.MIXED
MS = 1_000_000
FRAMES = settings(max_examples=min(settings().max_examples, 1_000))  # an example takes 30 ms


def walled() -> MemoryTrace:
    """r0 decodes every 10 ms; three forwards of r1, r2 and r3 make it wait before its fourth token."""
    return MemoryTrace(
        {
            "requests": [request(i) for i in range(4)],
            "forwards": [
                forward(0, 0, 10 * MS),
                forward(1, 10 * MS, 20 * MS),
                forward(2, 20 * MS, 30 * MS),
                forward(3, 31 * MS, 131 * MS, EXTEND),
                forward(4, 132 * MS, 232 * MS, EXTEND),
                forward(5, 233 * MS, 293 * MS, EXTEND),
                forward(6, 294 * MS, 304 * MS),
            ],
            "rows": [
                *(decode_row(i, 0, i) for i in range(3)),
                extend_row(3, 1, 100, role=Role.FIRST),
                extend_row(4, 1, 25, 0, role=Role.LAST),
                extend_row(4, 2, 75, role=Role.FIRST),
                extend_row(5, 2, 20, 0, role=Role.LAST),
                extend_row(5, 3, 40, 0),
                decode_row(6, 0, 3),
            ],
        }
    )


def mixing(decode_only_ns: list[int]) -> MemoryTrace:
    """r0 decodes in a MIXED forward of 500 ns beside 30 tokens of r1 and 10 of r2, and in DECODE ones."""
    decodes = [
        forward(i, 1000 * i, 1000 * i + t, decode_tokens=1, kv_tokens=100)
        for i, t in enumerate(decode_only_ns)
    ]
    last = len(decodes)
    mixed = forward(
        last, 9000, 9500, MIXED, decode_tokens=1, extend_tokens=40, kv_tokens=900, pairs_decode=110
    )
    return MemoryTrace(
        {
            "requests": [request(0), request(1), request(2)],
            "forwards": [*decodes, mixed],
            "rows": [
                *(decode_row(i, 0, i) for i in range(last)),
                decode_row(last, 0, last),
                extend_row(last, 1, 30),
                extend_row(last, 2, 10, 0),
            ],
        }
    )


def test_the_worst_gap_names_the_forwards_and_the_requests_in_it() -> None:
    worst = worst_gap(walled())
    assert worst is not None
    assert (worst.name, worst.token_index, worst.gap_ns) == ("r0", 3, 274 * MS)
    assert others(worst) == [(i, "EXTEND") for i in (3, 4, 5)]
    assert worst.own_mode == DECODE.name
    assert [(c.name, c.device_ns) for c in worst.culprits] == [
        ("r1", 125 * MS), ("r2", 95 * MS), ("r3", 40 * MS),
    ]  # fmt: skip
    assert culprit_forward_id(worst) == 3
    assert worst.mixed_extra_ns is None


def test_a_stall_reaches_from_the_earlier_token_to_the_own_forwards_start() -> None:
    found = stalls(walled()).to_dicts()
    assert len(found) == 1
    assert found[0]["start_ns"] == 30 * MS
    assert found[0]["own_start_ns"] == 294 * MS
    assert found[0]["others_ns"] == 260 * MS
    assert found[0]["other_forwards"] == 3
    assert found[0]["ratio"] == 27.4


def test_equal_gaps_name_the_earliest() -> None:
    trace = MemoryTrace(
        {
            "forwards": [forward(i, 10 * i, 10 * i + 10) for i in range(3)],
            "rows": [*(decode_row(i, 7, i) for i in range(3)), *(decode_row(i, 5, i) for i in range(2))],
        }
    )
    worst = worst_gap(trace)
    assert worst is not None
    assert (worst.rid, worst.token_index, worst.name) == (5, 1, "5")


def test_without_two_tokens_there_is_no_gap() -> None:
    trace = MemoryTrace({"forwards": [forward(0, 0, 1)], "rows": [decode_row(0, 0, 0)]})
    assert worst_gap(trace) is None
    assert stalls(trace).is_empty()
    assert worst_gap(MemoryTrace({})) is None


def test_an_ordinary_decode_gap_is_no_stall_however_long() -> None:
    trace = MemoryTrace(
        {
            "forwards": [forward(0, 0, 10), forward(1, 10, 20), forward(2, 500, 510)],
            "rows": [decode_row(i, 0, i) for i in range(3)],
        }
    )
    assert stalls(trace, min_ratio=0).is_empty()
    worst = worst_gap(trace)
    assert worst is not None
    assert (worst.gap_ns, others(worst), worst.culprits) == (490, [], ())
    assert culprit_forward_id(worst) is None


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (EventKind.SIT_OUT, "sit_outs"),
        (EventKind.RETRACT, "retractions"),
        (EventKind.PREEMPT, "preemptions"),
        (EventKind.DEFER, "deferrals"),
    ],
)
def test_being_held_back_makes_a_stall_without_others_forwards(kind: EventKind, column: str) -> None:
    trace = MemoryTrace(
        {
            "forwards": [forward(0, 0, 10), forward(1, 20, 30), forward(2, 90, 100)],
            "rows": [decode_row(i, 0, i) for i in range(3)],
            "events": [event(10, 0, kind), event(50, 0, kind), event(60, 0, kind), event(70, 1, kind)],
        }
    )
    found = stalls(trace, min_ratio=0)
    assert found.select("token_index", column).rows() == [(2, 2)]


def test_the_mixed_extra_is_taken_from_like_decode_forwards() -> None:
    found = stalls(mixing([100, 140, 120]), min_ratio=0).to_dicts()[0]
    assert (found["mixed_extra_ns"], found["mixed_extra_estimator"]) == (380, DECODE_MEDIAN)
    worst = worst_gap(mixing([100, 140, 120]))
    assert worst is not None
    assert worst.own_mode == MIXED.name
    assert others(worst) == []
    assert [(c.name, c.device_ns) for c in worst.culprits] == [("r1", 285), ("r2", 95)]
    assert culprit_forward_id(worst) == worst.own_forward_id == 3


def test_the_mixed_extra_is_clipped_and_null_without_like_forwards() -> None:
    assert stalls(mixing([900, 900]), min_ratio=0)["mixed_extra_ns"].to_list() == [0]
    trace = mixing([100, 100])
    for record in trace.tables["forwards"]:
        if record["mode"] == DECODE.value:
            record["kv_tokens"] = 137  # type: ignore[index]
    found = stalls(trace, min_ratio=0).to_dicts()[0]
    assert (found["mixed_extra_ns"], found["mixed_extra_estimator"]) == (400, DECODE_MEDIAN)
    for record in trace.tables["forwards"]:
        if record["mode"] == DECODE.value:
            record["kv_tokens"] = 138  # type: ignore[index]
    found = stalls(trace, min_ratio=0).to_dicts()[0]
    assert (found["mixed_extra_ns"], found["mixed_extra_estimator"]) == (None, None)
    worst = worst_gap(trace)
    assert worst is not None
    assert [(c.name, c.device_ns) for c in worst.culprits] == [("r1", 375), ("r2", 125)]


def test_without_like_forwards_the_extra_is_taken_from_the_plane_through_all() -> None:
    trace = mixing([100, 100])
    decodes = [
        forward(10 + i, 1000 * (i + 1), 1000 * (i + 1) + 50 + 2 * kv, DECODE, decode_tokens=1, kv_tokens=kv)
        for i, kv in enumerate((200, 210, 220, 230, 240, 250, 260, 270))
    ]
    for record in trace.tables["forwards"]:
        if record["mode"] == DECODE.value:
            record["mode"] = EXTEND.value  # type: ignore[index]
    found = stalls(
        MemoryTrace({**trace.tables, "forwards": [*trace.tables["forwards"], *decodes]}), min_ratio=0
    )
    mixed = next(each for each in found.to_dicts() if each["own_mode"] == MIXED.value)
    own = next(f for f in trace.tables["forwards"] if f["forward_id"] == mixed["own_forward_id"])
    assert mixed["mixed_extra_ns"] == own["end_ns"] - own["start_ns"] - (50 + 2 * own["pairs_decode"])
    assert mixed["mixed_extra_estimator"] == DECODE_PLANE


def test_a_mixed_forward_that_prefills_the_request_again_has_no_extra_for_it() -> None:
    trace = mixing([100, 140])
    rows = [r for r in trace.tables["rows"] if r["forward_id"] != 2]
    again = MemoryTrace(
        {**trace.tables, "rows": [*rows, extend_row(2, 0, 20, 2), extend_row(2, 1, 20), decode_row(2, 2, 5)]}
    )
    assert stalls(again, min_ratio=0)["mixed_extra_ns"].to_list() == [None]
    worst = worst_gap(again)
    assert worst is not None
    assert [(c.name, c.device_ns) for c in worst.culprits] == [("r1", 250)]
    assert worst.sum_ns([PartKind.RECOMPUTE]) == 250


def test_unknown_device_times_leave_others_unknown() -> None:
    trace = walled()
    blind = [{**f, "start_ns": None, "end_ns": None} for f in trace.tables["forwards"]]
    blind[3]["mode"] = MIXED.value
    hidden = MemoryTrace(
        {**trace.tables, "forwards": blind, "events": [event(40 * MS, 0, EventKind.SIT_OUT)]}
    )
    found = stalls(hidden, min_ratio=0)
    assert found.select("others_ns", "other_forwards", "own_start_ns").rows() == [(None, None, None)]


def test_another_ranks_forwards_do_not_stall() -> None:
    trace = walled()
    elsewhere = [{**f, "rank": 1} if f["mode"] == EXTEND.value else f for f in trace.tables["forwards"]]
    rows = [{**r, "rank": 1} if r["role"] != Role.DECODE.value else r for r in trace.tables["rows"]]
    assert stalls(MemoryTrace({"forwards": elsewhere, "rows": rows})).is_empty()


@st.composite
def timelines(draw: st.DrawFn) -> MemoryTrace:
    """Forwards whose device intervals may overlap by one, with random rows of four requests."""
    count = draw(st.integers(1, 14))
    forwards, rows, now, indices = [], [], 0, dict.fromkeys(range(4), 0)
    for i in range(count):
        start = now + draw(st.integers(-3, 5))
        end = start + draw(st.integers(0, 9))
        now = max(now, end) + draw(st.integers(0, 3))
        present = draw(st.lists(st.integers(0, 3), unique=True, max_size=4))
        mode = draw(st.sampled_from(list(ForwardMode)))
        forwards.append(
            forward(
                i, start, end, mode, result_end_ns=now, decode_tokens=draw(st.integers(1, 6)),
                kv_tokens=draw(st.integers(1, 20)), pairs_decode=draw(st.integers(1, 20)),
            )
        )  # fmt: skip
        for rid in present:
            if mode is not DECODE and draw(st.booleans()):
                rows.append(extend_row(i, rid, draw(st.integers(1, 9)), role=Role.MIDDLE))
            else:
                rows.append(decode_row(i, rid, indices[rid]))
                indices[rid] += 1
    events = [
        event(draw(st.integers(0, max(now, 1))), draw(st.integers(0, 3)), EventKind.SIT_OUT)
        for _ in range(draw(st.integers(0, 3)))
    ]
    return MemoryTrace({"forwards": forwards, "rows": rows, "events": events})


def slowly(trace: MemoryTrace, gap: dict[str, Any]) -> tuple[int, int, int, int]:
    """Others' device time, their forwards, sit-outs and other delays in a gap, read off the definition."""
    mine = {r["forward_id"] for r in trace.tables["rows"] if r["rid"] == gap["rid"]}
    parts = [
        min(f["end_ns"], gap["end_ns"]) - max(f["start_ns"], gap["start_ns"])
        for f in trace.tables["forwards"]
        if f["forward_id"] not in mine
    ]
    delays = [
        e["kind"]
        for e in trace.tables["events"]
        if e["rid"] == gap["rid"] and gap["start_ns"] < e["t_ns"] <= gap["end_ns"]
    ]
    inside = [p for p in parts if p > 0]
    sit_outs = delays.count(EventKind.SIT_OUT.value)
    others = sum(delays.count(kind.value) for kind in (EventKind.RETRACT, EventKind.PREEMPT, EventKind.DEFER))
    return sum(inside), len(inside), sit_outs, others


def check_stalls(trace: MemoryTrace) -> None:
    """The stall list is what the definition gives."""
    modes = {f["forward_id"]: f["mode"] for f in trace.tables["forwards"]}
    expected = {}
    for gap in gaps(trace).iter_rows(named=True):
        causes = slowly(trace, gap)
        if any(causes[i] for i in (0, 2, 3)) or modes[gap["own_forward_id"]] == MIXED.value:
            expected[gap["rid"], gap["token_index"]] = causes
    found = stalls(trace, min_ratio=0)
    counts = ("others_ns", "other_forwards", "sit_outs")
    assert {
        (s["rid"], s["token_index"]): (
            *(s[name] for name in counts),
            s["retractions"] + s["preemptions"] + s["deferrals"],
        )
        for s in found.iter_rows(named=True)
    } == expected
    assert found["gap_ns"].is_sorted(descending=True)


def others(gap: GapDetail) -> list[tuple[int, str | None]]:
    """Others' forwards in a gap."""
    return [(forward.forward_id, forward.mode) for forward in gap.forwards[:-1]]


def check_worst_gap(trace: MemoryTrace) -> None:
    """The longest gap is that, and no more is charged than lay in it."""
    every = gaps(trace).to_dicts()
    worst = worst_gap(trace)
    if not every:
        assert worst is None
        return
    assert worst is not None
    gap = next(g for g in every if (g["rid"], g["token_index"]) == (worst.rid, worst.token_index))
    assert worst.gap_ns == gap["gap_ns"] == max(g["gap_ns"] for g in every)
    assert len(others(worst)) <= slowly(trace, gap)[1]  # an instant of several belongs to one
    assert sum(part.part_ns for part in worst.parts) == worst.gap_ns
    charged = sum(part.part_ns for part in worst.parts if part.chunk)
    assert sum(c.device_ns for c in worst.culprits) == charged


@FRAMES
@given(timelines())
def test_stalls_agree_with_the_definition(trace: MemoryTrace) -> None:
    check_stalls(trace)


@FRAMES
@given(timelines())
def test_the_worst_gap_agrees_with_the_definition(trace: MemoryTrace) -> None:
    check_worst_gap(trace)


@settings(max_examples=ENGINE_EXAMPLES // 5)
@given(scenarios())
def test_so_they_do_on_recorded_runs(scenario: tuple[EngineConfig, list[Arrival]]) -> None:
    with TemporaryDirectory() as directory:
        recorded, _ = record_run(Path(directory) / "t.chunkscope", *scenario)
        tables = {name: rows_of(recorded, name) for name in ("forwards", "rows", "requests", "events")}
    trace = MemoryTrace(tables)
    check_stalls(trace)
    check_worst_gap(trace)


@FRAMES
@given(timelines())
def test_mixed_extras_agree_with_the_definition(trace: MemoryTrace) -> None:
    forwards = trace.tables["forwards"]
    table = forward_table(trace)
    found = dict(zip(table.forward_id.tolist(), mixed_extras(table).tolist(), strict=True))
    decodes = [
        (f["decode_tokens"], f["kv_tokens"], f["end_ns"] - f["start_ns"])
        for f in forwards
        if f["mode"] == DECODE.value
    ]
    for f in forwards:
        if f["mode"] != MIXED.value:
            assert found[f["forward_id"]] == UNKNOWN
            continue
        alone = alone_ns(f["decode_tokens"], f["pairs_decode"], decodes)
        if alone is None:
            assert found[f["forward_id"]] == UNKNOWN
            continue
        device_ns = f["end_ns"] - f["start_ns"]
        assert found[f["forward_id"]] == min(max(device_ns - alone, 0), device_ns)


@given(st.integers(0, 10**12), st.lists(st.integers(1, 10**6), min_size=1, max_size=20))
def test_parts_sum_to_the_whole_and_are_off_by_less_than_one(total: int, weights: list[int]) -> None:
    parts = split_exactly(total, weights)
    assert sum(parts) == total
    assert all(
        abs(part * sum(weights) - total * w) < sum(weights) for part, w in zip(parts, weights, strict=True)
    )


def test_no_weights_take_no_parts() -> None:
    assert split_exactly(10, []) == []
    assert split_exactly(10, [0, 0]) == [0, 0]
