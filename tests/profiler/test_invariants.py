"""The rules: a sound trace keeps them all, and each is caught when it is broken."""

import dataclasses
from typing import Any

import pytest

from engine.batch import Outcome, Role
from engine.observer import EventKind
from engine.request import FinishReason
from profiler.invariants import RULES, RuleResult, Status, Violation, check_trace
from tests.support.sound_trace import META, Rows, sound_tables
from tests.support.traces import MemoryTrace

Tables = dict[str, Rows]

# Rules that ask for columns which traces by hand leave out; `test_corrupt_traces` breaks them.
NOT_BY_HAND = {
    *("decisions_counted", "sit_outs_counted", "preempted_by_urgency", "cached_counted"),
    *("budgets_begin", "budgets_charged", "budget_left_in_pool", "chunk_budget_kept", "stop_explained"),
    *("waiting_counted", "pending_counted", "row_pages"),
    *("one_owner_per_page", "no_page_lost", "owners_match_pool", "ended_hold_nothing", "pages_as_left"),
}


def check(tables: Tables, **meta: Any) -> dict[str, RuleResult]:
    report = check_trace(MemoryTrace(tables, meta={**META, **meta}))
    return {rule.name: rule for rule in report.rules}


def check_rule(name: str, tables: Tables, **meta: Any) -> RuleResult:
    rules = [rule for rule in RULES if rule.name == name]
    [result] = check_trace(MemoryTrace(tables, meta={**META, **meta}), rules).rules
    return result


def violated(results: dict[str, RuleResult]) -> set[str]:
    return {name for name, result in results.items() if result.status is Status.VIOLATED}


def test_a_sound_trace_keeps_every_rule() -> None:
    report = check_trace(MemoryTrace(sound_tables(), meta=META))
    assert report.ok
    assert report.clean_end
    assert [rule.name for rule in report.rules] == [rule.name for rule in RULES]
    assert {rule.name for rule in report.having(Status.NOT_CHECKABLE)} == NOT_BY_HAND
    assert all(rule.checked > 0 for rule in report.having(Status.HELD))


# What is spoilt (table, row, columns), and what then breaks where.
SPOILT: list[tuple[str, str, int, dict[str, Any], int | None, str | None, dict[str, Any]]] = [
    ("forward_ids_unique", "forwards", 1, {"forward_id": 0}, 0, None, {"times_used": 2}),
    ("rows_have_forwards", "rows", 1, {"forward_id": 9}, 9, "long", {}),
    ("rows_have_requests", "rows", 3, {"rid": 7}, 2, "7", {}),
    ("host_times_ordered", "forwards", 2, {"launch_end_ns": 219}, 2, None, {"launch_end_ns": 219}),
    ("device_times_ordered", "forwards", 2, {"start_ns": 219}, 2, None, {"start_ns": 219}),
    ("device_times_ordered", "forwards", 2, {"end_ns": 291}, 2, None, {"end_ns": 291}),
    ("device_times_ordered", "forwards", 2, {"end_ns": 224}, 2, None, {"end_ns": 224}),
    (
        "one_chunked_request",
        "rows",
        3,
        {"role": Role.FIRST.value, "forward_id": 1},
        1,
        "long",
        {"middle_chunks": 2},
    ),
    ("one_chunked_request", "forwards", 1, {"chunked_rid": None}, 1, "long", {"chunked_rid": None}),
    (
        "inflight_bounds",
        "rows",
        1,
        {"inflight_after_plan": 2},
        1,
        "long",
        {"inflight_after_plan": 2, "at_most": 1},
    ),
    ("inflight_bounds", "rows", 2, {"inflight_after_result": -1}, 2, "long", {"inflight_after_result": -1}),
    ("inflight_sum", "forwards", 1, {"inflight_middle_chunks": 0}, 1, None, {"over_rows": 1}),
    ("row_lengths", "rows", 2, {"seq_len": 11}, 2, "long", {"role": "LAST", "seq_len": 11}),
    ("row_lengths", "rows", 4, {"extend_len": 2, "prefix_len": 9}, 3, "long", {"extend_len": 2}),
    ("forward_mode", "forwards", 3, {"mode": 2}, 3, None, {"mode": "MIXED"}),
    (
        "forward_sequences",
        "forwards",
        2,
        {"num_extend_seqs": 3},
        2,
        None,
        {"sum": "num_extend_seqs", "stored": 3},
    ),
    ("forward_tokens", "forwards", 2, {"extend_tokens": 6}, 2, None, {"stored": 6, "over_rows": 5}),
    ("forward_tokens", "forwards", 3, {"decode_tokens": 1}, 3, None, {"stored": 1, "over_rows": 2}),
    ("forward_tokens", "forwards", 2, {"prefix_tokens": 9}, 2, None, {"stored": 9, "over_rows": 10}),
    ("forward_tokens", "forwards", 4, {"kv_tokens": 13}, 4, None, {"stored": 13, "over_rows": 12}),
    ("forward_pairs", "forwards", 1, {"pairs_prefix": 15}, 1, None, {"stored": 15, "over_rows": 16}),
    ("forward_pairs", "forwards", 2, {"pairs_causal": 8}, 2, None, {"stored": 8, "over_rows": 9}),
    ("forward_pairs", "forwards", 3, {"pairs_decode": 0}, 3, None, {"stored": 0, "over_rows": 17}),
    ("pool_conservation", "forwards", 3, {"pages_free": 27}, 3, None, {"pages_free": 27, "pages_total": 40}),
    (
        "pool_conservation",
        "forwards",
        3,
        {"pages_free": 38, "pages_evictable": -4},
        3,
        None,
        {"pages_evictable": -4},
    ),
    ("rows_within_private_pages", "rows", 3, {"private_pages": 4}, 2, None, {"rows_private_pages": 6}),
    ("cursor_start", "rows", 0, {"cached_tokens": 1}, 0, "long", {"cached_tokens": 1}),
    ("cursor_start", "events", 2, {"tokens": 1}, 2, "short", {"prefix_len": 2, "matched_prefix": 1}),
    ("cursor_start", "events", 4, {"kind": 9}, 4, "long", {"prefix_len": 4, "matched_prefix": 0}),
    ("cursor_contiguous", "rows", 2, {"prefix_len": 7}, 2, "long", {"previous_end": 8, "prefix_len": 7}),
    ("cursor_contiguous", "rows", 5, {"prefix_len": 6}, 3, "short", {"previous_end": 5, "prefix_len": 6}),
    ("cursor_end", "requests", 1, {"prompt_tokens": 6}, 2, "short", {"seq_len": 5, "kept_tokens": 0}),
    ("cursor_end", "rows", 6, {"seq_len": 11}, 4, "long", {"seq_len": 11, "kept_tokens": 2}),
    ("cursor_end", "rows", 1, {"seq_len": 10}, 1, "long", {"role": "MIDDLE", "seq_len": 10}),
    ("cursor_completed", "rows", 3, {"role": Role.FIRST.value}, 3, "short", {"reached": 6}),
    (
        "chunk_roles",
        "rows",
        1,
        {"role": Role.FIRST.value},
        1,
        "long",
        {"previous_role": "FIRST", "role": "FIRST"},
    ),
    ("chunk_roles", "rows", 2, {"role": Role.DECODE.value}, 2, "long", {"previous_role": "MIDDLE"}),
    ("chunk_roles", "rows", 4, {"role": Role.LAST.value}, 3, "long", {"previous_role": "LAST"}),
    ("chunk_roles", "rows", 6, {"role": Role.LAST.value}, 4, "long", {"previous_role": None}),
    ("pairs_per_attempt", "rows", 1, {"extend_len": 3}, 2, "long", {"pairs": 47, "expected_pairs": 55}),
    ("middle_never_emits", "rows", 1, {"outcome": 0, "token_index": 0}, 1, "long", {"outcome": "EMITTED"}),
    ("outcomes", "rows", 4, {"token_index": None}, 3, "long", {"outcome": "EMITTED", "token_index": None}),
    ("outcomes", "rows", 4, {"outcome": Outcome.FINISHED_DROPPED.value}, 3, "long", {"token_index": 1}),
    ("outcomes", "rows", 4, {"outcome": 1, "token_index": None}, 3, "long", {"role": "DECODE"}),
    ("token_sequence", "rows", 4, {"token_index": 0}, 3, "long", {"token_index": 0, "expected_index": 1}),
    ("token_sequence", "rows", 6, {"token_index": 3}, 4, "long", {"token_index": 3, "expected_index": 2}),
    ("older_attempts_emit_nothing", "rows", 3, {"rid": 0, "attempt": 2}, 3, "long", {"newest_attempt": 2}),
    (
        "output_counted",
        "requests",
        0,
        {"output_tokens": 2},
        4,
        "long",
        {"emitted_tokens": 3, "output_tokens": 2},
    ),
    (
        "output_counted",
        "requests",
        1,
        {"finish_ns": None, "output_tokens": 4},
        3,
        "short",
        {"output_tokens": 4},
    ),
    ("output_within_limit", "requests", 0, {"max_new_tokens": 2}, None, "long", {"output_tokens": 3}),
    ("ended_for_a_reason", "requests", 1, {"finish_reason": None}, None, "short", {"finish_ns": 390}),
    ("ended_for_a_reason", "requests", 1, {"finish_ns": None}, None, "short", {"finish_reason": "LENGTH"}),
    ("request_times_ordered", "requests", 1, {"first_token_ns": 200}, None, "short", {"first_token_ns": 200}),
]


@pytest.mark.parametrize(
    ("rule", "table", "row", "columns", "forward_id", "request_name", "numbers"),
    SPOILT,
    ids=[f"{rule}-{table}-{'-'.join(columns)}" for rule, table, _, columns, *_ in SPOILT],
)
def test_a_spoilt_row_breaks_its_rule(
    rule: str,
    table: str,
    row: int,
    columns: dict[str, Any],
    forward_id: int | None,
    request_name: str | None,
    numbers: dict[str, Any],
) -> None:
    tables = sound_tables()
    tables[table][row] |= columns
    result = check_rule(rule, tables)
    assert (result.status, result.violations >= 1) == (Status.VIOLATED, True)
    assert result.first is not None
    assert (result.first.forward_id, result.first.request) == (forward_id, request_name)
    assert dict(result.first.numbers).items() >= numbers.items()


def test_pages_held_at_the_end_are_a_leak() -> None:
    pool = {"total": 40, "free": 25, "evictable": 12, "protected": 1, "private": 2}
    result = check(sound_tables(), pool_at_end=pool)["nothing_leaks"]
    assert result.first == Violation(
        None,
        None,
        None,
        (("free", 25), ("evictable", 12), ("protected", 1), ("private", 2), ("total", 40)),
    )


def test_the_first_violation_is_that_of_the_earliest_forward() -> None:
    tables = sound_tables()
    for row in (6, 2, 4):
        tables["rows"][row]["seq_len"] += 1
    result = check_rule("row_lengths", tables)
    assert result.violations == 3
    assert result.first is not None
    assert result.first.forward_id == 2


def test_a_violation_shows_a_code_without_name_as_it_is() -> None:
    tables = sound_tables()
    tables["rows"][2]["role"] = 77
    first = check_rule("chunk_roles", tables).first
    assert first is not None
    assert ("role", 77) in first.numbers


# -- what a rule forgives ----------------------------------------------------------------------------------


def test_an_aborted_request_may_stop_half_way() -> None:
    tables = sound_tables()
    tables["rows"] = tables["rows"][:2]
    tables["forwards"] = tables["forwards"][:2]
    tables["requests"] = tables["requests"][:1]
    tables["requests"][0] |= {
        "finish_reason": FinishReason.ABORT.value,
        "output_tokens": 0,
        "first_token_ns": None,
    }
    tables["events"] = [e for e in tables["events"] if (e["rid"], e["kind"]) != (0, EventKind.FINISH.value)]
    ends = {"t_ns": 490, "rank": 0, "rid": 0, "attempt": 0, "kind": EventKind.ABORT.value}
    tables["events"].append(ends)
    assert violated(check(tables)) == set()
    tables["requests"][0]["finish_reason"] = FinishReason.STOP.value
    assert violated(check(tables)) >= {"cursor_completed"}


def test_a_device_clock_may_be_off_by_its_error() -> None:
    tables = sound_tables()
    tables["forwards"][0] |= {"start_ns": 15, "end_ns": 94, "clock_error_ns": 5}
    assert violated(check(tables)) == set()
    tables["forwards"][0]["clock_error_ns"] = 3
    assert violated(check(tables)) == {"device_times_ordered"}


def test_one_token_is_allowed_where_none_was_asked_for() -> None:
    tables = sound_tables()
    tables["requests"][1] |= {"max_new_tokens": 0, "output_tokens": 1}
    del tables["rows"][5]
    assert "output_within_limit" not in violated(check(tables))


# -- what was cut short ------------------------------------------------------------------------------------


def test_rows_whose_forward_was_not_written_any_more_are_left_out() -> None:
    tables = sound_tables()
    del tables["forwards"][4]
    tables["requests"][0] |= {"finish_ns": None, "finish_reason": None, "output_tokens": 1}
    assert violated(check(tables, sealed={"clean_end": False})) == set()
    assert violated(check(tables)) >= {"rows_have_forwards"}


def test_torn_bytes_and_the_kind_of_end_are_reported() -> None:
    report = check_trace(MemoryTrace(sound_tables(), meta={"provenance": "measured"}, torn_bytes=17))
    assert (report.torn_bytes, report.clean_end, report.ok) == (17, False, True)


# -- what cannot be checked --------------------------------------------------------------------------------


def test_a_rule_whose_columns_are_null_says_which() -> None:
    tables = sound_tables()
    for row in tables["rows"]:
        row["private_pages"] = None
    result = check(tables)["rows_within_private_pages"]
    assert (result.status, result.missing) == (Status.NOT_CHECKABLE, ("rows.private_pages",))
    assert result.reason == "the trace lacks rows.private_pages"


def test_a_column_that_meta_calls_missing_is_not_checked() -> None:
    results = check(sound_tables(), columns={"forwards": {"pairs_causal": "missing"}})
    assert results["forward_pairs"].missing == ("forwards.pairs_causal",)
    assert results["forward_tokens"].status is Status.HELD


def test_a_measured_column_may_be_null_throughout() -> None:
    tables = sound_tables()
    for request in tables["requests"]:
        request |= {"finish_ns": None, "finish_reason": None}
    measured = {"requests": {"finish_ns": "measured", "finish_reason": "measured"}}
    results = check(tables, columns=measured)
    assert results["ended_for_a_reason"].status is Status.HELD
    assert results["cursor_completed"].status is Status.NOT_CHECKABLE
    assert results["nothing_leaks"].reason == "2 requests had not ended when the recording did"


def test_a_trace_that_does_not_say_how_its_pool_was_left() -> None:
    for pool in (None, {"total": 40}, "full"):
        result = check(sound_tables(), pool_at_end=pool)["nothing_leaks"]
        assert (result.status, "pool_at_end" in (result.reason or "")) == (Status.NOT_CHECKABLE, True)


def test_rules_of_this_scheduler_are_not_held_against_another() -> None:
    tables = sound_tables()
    tables["forwards"][3]["pages_free"] = 0
    tables["forwards"][2]["kv_tokens"] = 0
    results = check(tables, provenance="imported")
    assert violated(results) == {"forward_tokens"}
    assert {rule.name for rule in RULES if rule.of_scheduler} == {
        name for name, result in results.items() if result.status is Status.NOT_CHECKABLE
    }


def test_an_empty_trace_has_nothing_to_check() -> None:
    report = check_trace(MemoryTrace({}, meta={"provenance": "measured"}))
    assert report.ok
    assert report.having(Status.NOT_CHECKABLE) == report.rules


def test_reports_are_values() -> None:
    report = check_trace(MemoryTrace(sound_tables(), meta=META))
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.torn_bytes = 1  # type: ignore[misc]
    assert report == check_trace(MemoryTrace(sound_tables(), meta=META))
