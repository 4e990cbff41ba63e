"""The rules under overlap: a sound overlapped trace keeps them all, and each is caught when it is broken."""

from typing import Any

import pytest

from engine.batch import Outcome, Role, StopReason
from engine.observer import EventKind
from engine.request import FinishReason
from profiler.invariants import RuleResult, Status, check_trace
from tests.profiler.test_invariants import NOT_BY_HAND, check_rule
from tests.support.overlapped_trace import (
    BACK,
    GONE,
    LATE,
    LONG,
    META,
    RETRACTED_NS,
    SHORT,
    Rows,
    overlapped_tables,
)
from tests.support.traces import MemoryTrace

Tables = dict[str, Rows]


def check(tables: Tables, **meta: Any) -> dict[str, RuleResult]:
    report = check_trace(MemoryTrace(tables, meta={**META, **meta}))
    return {rule.name: rule for rule in report.rules}


def violated(tables: Tables, **meta: Any) -> set[str]:
    results = check(tables, **meta)
    return {name for name, result in results.items() if result.status is Status.VIOLATED}


def row(tables: Tables, forward_id: int, rid: int) -> dict[str, Any]:
    return next(r for r in tables["rows"] if (r["forward_id"], r["rid"]) == (forward_id, rid))


def test_a_sound_overlapped_trace_keeps_every_rule() -> None:
    report = check_trace(MemoryTrace(overlapped_tables(), meta=META))
    assert report.having(Status.VIOLATED) == ()
    assert {rule.name for rule in report.having(Status.NOT_CHECKABLE)} == NOT_BY_HAND


# What is spoilt (forward and request of a row, or forward), and which rule then names them.
SPOILT_ROWS: list[tuple[str, int, int, dict[str, Any]]] = [
    # counters: 1, 2, 1 after planning; 1, 0, 0 after the results
    ("inflight_bounds", 1, LONG, {"inflight_after_plan": 3}),
    ("inflight_bounds", 0, LONG, {"inflight_after_result": 2}),
    ("inflight_counted", 1, LONG, {"inflight_after_plan": 1}),
    ("inflight_counted", 2, LONG, {"inflight_after_plan": 0}),
    ("inflight_counted", 0, LONG, {"inflight_after_result": 0}),
    ("inflight_counted", 1, LONG, {"inflight_after_result": 1}),
    ("inflight_counted", 3, BACK, {"inflight_after_result": 1}),
    # what may become of a sample
    ("outcomes_explained", 4, SHORT, {"outcome": Outcome.ABORTED.value}),
    ("outcomes_explained", 3, BACK, {"outcome": Outcome.EMITTED.value, "token_index": 1}),
    ("outcomes_explained", 3, BACK, {"outcome": Outcome.FINISHED_DROPPED.value}),
    ("outcomes_explained", 2, GONE, {"outcome": Outcome.EMITTED.value, "token_index": 0}),
    ("outcomes_explained", 2, GONE, {"outcome": Outcome.RETRACTED.value}),
    ("outcomes_explained", 3, LONG, {"outcome": Outcome.RETRACTED.value, "token_index": None}),
    ("outcomes_explained", 0, LONG, {"outcome": Outcome.ABORTED.value}),
    ("outcomes", 4, SHORT, {"token_index": 2}),
    ("outcomes", 3, BACK, {"outcome": Outcome.MIDDLE_DROPPED.value}),
    ("ends_at_once", 4, SHORT, {"role": Role.WHOLE.value}),
    ("older_attempts_emit_nothing", 5, BACK, {"attempt": -1}),
]


@pytest.mark.parametrize(("rule", "forward_id", "rid", "columns"), SPOILT_ROWS)
def test_a_spoilt_row_breaks_its_rule(rule: str, forward_id: int, rid: int, columns: dict[str, Any]) -> None:
    tables = overlapped_tables()
    row(tables, forward_id, rid).update(columns)
    if columns.get("attempt") == -1:  # as if an earlier attempt gave the token after the newer had started
        tables["rows"].append({**row(tables, 5, LATE), "rid": BACK, "attempt": 1, "forward_id": 4})
        row(tables, 5, BACK)["attempt"] = 0
    result = check_rule(rule, tables, **META)
    assert result.status is Status.VIOLATED
    assert result.first is not None
    assert result.first.forward_id == forward_id


SPOILT_FORWARDS: list[tuple[str, int, dict[str, Any]]] = [
    ("host_thread_order", 2, {"plan_start_ns": 119}),  # before forward 1 was launched
    ("host_thread_order", 2, {"launch_end_ns": 241}),  # after the result of forward 1
    ("host_thread_order", 2, {"overlapped": False}),
    ("host_thread_order", 3, {"result_start_ns": 349}),
    ("device_order", 4, {"start_ns": 429}),
    ("inflight_sum", 1, {"inflight_middle_chunks": 1}),
    ("inflight_sum", 2, {"inflight_middle_chunks": 2}),
    ("running_counted", 4, {"running_reqs": 3}),  # "long" does not run any more while its last token comes
    ("running_counted", 5, {"running_reqs": 0}),  # but it does where no decode row is chosen
    ("running_counted", 5, {"running_reqs": 3}),
    ("running_counted", 3, {"absent_decode_reqs": 1}),
    ("interval_defers", 3, {"stop_reason": StopReason.QUEUE_EMPTY.value}),
    ("interval_defers", 3, {"blocked_rid": BACK}),
    ("interval_defers", 5, {"stop_reason": StopReason.INTERVAL.value, "blocked_rid": LATE}),
    ("interval_defers", 4, {"mode": 0}),
]


@pytest.mark.parametrize(("rule", "forward_id", "columns"), SPOILT_FORWARDS)
def test_a_spoilt_forward_breaks_its_rule(rule: str, forward_id: int, columns: dict[str, Any]) -> None:
    tables = overlapped_tables()
    tables["forwards"][forward_id].update(columns)
    result = check_rule(rule, tables, **META)
    assert result.status is Status.VIOLATED
    assert result.first is not None
    assert result.first.forward_id == forward_id


SPOILT_REST: list[tuple[str, str, int, dict[str, Any], str]] = [
    ("ends_at_once", "requests", SHORT, {"finish_reason": FinishReason.LENGTH.value}, "short"),
    ("ends_at_once", "requests", GONE, {"finish_ns": 199}, "gone"),
    ("outcomes_explained", "requests", GONE, {"finish_ns": 341}, "gone"),  # after its result
    ("outcomes_explained", "events", 6, {"kind": EventKind.REQUEUE.value}, "back"),
    ("outcomes_explained", "events", 6, {"t_ns": 441}, "back"),  # after its result
    ("retractions_counted", "requests", BACK, {"retractions": 0}, "back"),
    ("retractions_counted", "requests", LONG, {"retractions": 1}, "long"),
    ("retractions_counted", "events", 6, {"attempt": 1}, "back"),
]


@pytest.mark.parametrize(("rule", "table", "at", "columns", "name"), SPOILT_REST)
def test_a_spoilt_request_or_event_breaks_its_rule(
    rule: str, table: str, at: int, columns: dict[str, Any], name: str
) -> None:
    tables = overlapped_tables()
    tables[table][at].update(columns)
    result = check_rule(rule, tables, **META)
    assert result.status is Status.VIOLATED
    assert result.first is not None
    assert result.first.request == name


# -- what the rules forgive --------------------------------------------------------------------------------


def test_a_preemption_gives_an_attempt_up_as_a_retraction_does() -> None:
    tables = overlapped_tables()
    tables["events"][6]["kind"] = EventKind.PREEMPT.value
    assert violated(tables) == set()


def test_what_happened_in_the_nanosecond_of_a_result_may_have_been_before_or_after_it() -> None:
    tables = overlapped_tables()
    tables["events"][6]["t_ns"] = tables["forwards"][3]["result_start_ns"]
    tables["requests"][GONE]["finish_ns"] = tables["forwards"][2]["result_start_ns"]
    assert violated(tables) == set()


def test_a_chunk_of_a_request_without_a_row_counts_until_its_result() -> None:
    """ "long" is aborted before forward 2 is planned; forward 1 still computes a chunk of it."""
    tables = overlapped_tables()
    tables["rows"] = [r for r in tables["rows"] if r["rid"] != LONG or r["forward_id"] < 2]
    row(tables, 1, LONG)["outcome"] = Outcome.ABORTED.value
    aborted = {"finish_reason": FinishReason.ABORT.value, "finish_ns": 195, "output_tokens": 0}
    tables["requests"][LONG].update(aborted, first_token_ns=None)
    assert not violated(tables) & {"inflight_sum", "inflight_counted", "outcomes_explained", "ends_at_once"}
    tables["forwards"][2]["inflight_middle_chunks"] = 0
    assert "inflight_sum" in violated(tables)


def test_a_deferred_round_without_a_forward_is_no_forwards() -> None:
    tables = overlapped_tables()
    tables["events"][7]["forward_id"] = None
    tables["forwards"][4] |= {"stop_reason": StopReason.QUEUE_EMPTY.value, "blocked_rid": None}
    assert "interval_defers" not in violated(tables)


def test_of_a_recording_cut_short_ends_and_new_starts_may_be_missing() -> None:
    tables = overlapped_tables()
    tables["forwards"] = tables["forwards"][:5]
    tables["events"] = [e for e in tables["events"] if e["t_ns"] < RETRACTED_NS]
    tables["rows"] = [r for r in tables["rows"] if r["forward_id"] < 5]
    tables["requests"][LATE] |= {"first_scheduled_ns": None, "first_token_ns": None}
    for request in tables["requests"]:
        request |= {"finish_ns": None, "finish_reason": None, "output_tokens": 0, "retractions": 0}
    assert violated(tables, sealed={"clean_end": False}) == set()
