"""Corruptions of rows: the cursor, chunks, tokens, and what is summed over them."""

from engine.batch import Outcome, Role
from tests.support.corrupt_traces import Broken, Corruptible, Corruption, emits

__all__ = ["ROW_CORRUPTIONS"]


def a_gap_in_the_cursor(trace: Corruptible) -> Broken:
    row = trace.row(Role.MIDDLE)
    row["prefix_len"] += 4
    row["extend_len"] -= 4
    return Broken("cursor_contiguous", row["forward_id"], trace.name(row))


def a_start_before_the_matched_prefix(trace: Corruptible) -> Broken:
    row = trace.row(Role.WHOLE, where=lambda row: row["cached_tokens"] > 0)
    row["prefix_len"] -= 4
    row["extend_len"] += 4
    return Broken("cursor_start", row["forward_id"], trace.name(row))


def a_last_chunk_short_of_the_prompt(trace: Corruptible) -> Broken:
    row = trace.row(Role.LAST)
    row["extend_len"] -= 1
    row["seq_len"] -= 1
    return Broken("cursor_end", row["forward_id"], trace.name(row))


def an_end_without_a_last_chunk(trace: Corruptible) -> Broken:
    row = trace.row(Role.LAST)
    row["role"] = Role.MIDDLE.value
    last = [r for r in trace.tables["rows"] if r["rid"] == row["rid"]][-1]
    return Broken("cursor_completed", last["forward_id"], trace.name(row))


def a_second_first_chunk(trace: Corruptible) -> Broken:
    row = trace.row(Role.MIDDLE)
    row["role"] = Role.FIRST.value
    return Broken("chunk_roles", row["forward_id"], trace.name(row))


def pairs_of_a_chunk_counted_twice(trace: Corruptible) -> Broken:
    row = trace.row(Role.MIDDLE)
    row["extend_len"] *= 2
    last = trace.row(Role.LAST)
    return Broken("pairs_per_attempt", last["forward_id"], trace.name(row))


def a_first_chunk_that_emits(trace: Corruptible) -> Broken:
    row = trace.row(Role.FIRST)
    row.update(outcome=Outcome.EMITTED.value, token_index=0)
    return Broken("middle_never_emits", row["forward_id"], trace.name(row))


def a_token_index_skipped(trace: Corruptible) -> Broken:
    row = trace.row(Role.DECODE)
    for later in trace.tables["rows"]:
        if later["rid"] == row["rid"] and emits(later) and later["token_index"] >= row["token_index"]:
            later["token_index"] += 1
    return Broken("token_sequence", row["forward_id"], trace.name(row))


def a_token_that_nobody_sampled(trace: Corruptible) -> Broken:
    row = trace.row(Role.FIRST)
    row["token_index"] = 0
    return Broken("outcomes", row["forward_id"], trace.name(row))


def a_decode_that_is_dropped_as_a_middle_chunk(trace: Corruptible) -> Broken:
    row = trace.row(Role.DECODE)
    row.update(outcome=Outcome.MIDDLE_DROPPED.value, token_index=None)
    return Broken("outcomes", row["forward_id"], trace.name(row))


def a_token_of_a_dead_attempt(trace: Corruptible) -> Broken:
    row = trace.row(where=lambda row: row["outcome"] == Outcome.RETRACTED)
    row.update(outcome=Outcome.EMITTED.value, token_index=0)
    return Broken("outcomes_explained", row["forward_id"], trace.name(row))


def an_attempt_that_goes_back(trace: Corruptible) -> Broken:
    row = trace.row(Role.DECODE, where=lambda row: row["attempt"] > 0)
    row["attempt"] -= 1
    return Broken("older_attempts_emit_nothing", row["forward_id"], trace.name(row))


def an_attempt_that_runs_on_after_giving_back(trace: Corruptible) -> Broken:
    row = trace.row(where=lambda row: row["attempt"] > 0)
    row["attempt"] -= 1
    return Broken("given_back_is_gone", row["forward_id"], trace.name(row))


def a_row_after_the_end(trace: Corruptible) -> Broken:
    late = max(row["forward_id"] for row in trace.tables["forwards"])
    here = {row["rid"] for row in trace.rows_of(late)}
    done = next(r for r in trace.tables["requests"] if r["output_tokens"] > 1 and r["rid"] not in here)
    last = [row for row in trace.tables["rows"] if row["rid"] == done["rid"]][-1]
    dropped = {"outcome": Outcome.FINISHED_DROPPED.value, "token_index": None, "forward_id": late}
    trace.tables["rows"].append({**last, **dropped, "prefix_len": last["seq_len"], "extend_len": 1})
    return Broken("ends_at_once", late, done["name"])


def a_duplicated_row(trace: Corruptible) -> Broken:
    row = trace.row(Role.DECODE)
    trace.tables["rows"].append(dict(row))
    return Broken("one_row_per_request", row["forward_id"], trace.name(row))


def a_decode_row_before_the_prompts(trace: Corruptible) -> Broken:
    forward_id = trace.row(Role.MIDDLE)["forward_id"]
    places = [at for at, row in enumerate(trace.tables["rows"]) if row["forward_id"] == forward_id]
    rows = trace.tables["rows"]
    rows[places[0]], rows[places[-1]] = rows[places[-1]], rows[places[0]]
    return Broken("rows_in_batch_order", forward_id, trace.name(rows[places[-1]]))


def a_mixed_row_missing(trace: Corruptible) -> Broken:
    chunk = trace.row(Role.MIDDLE)
    rows = trace.rows_of(chunk["forward_id"])
    trace.tables["rows"].remove(rows[-1])
    return Broken("forward_sequences", chunk["forward_id"])


def an_extend_forward_with_decode_rows(trace: Corruptible) -> Broken:
    forward_id = trace.row(Role.MIDDLE)["forward_id"]
    trace.forward(forward_id)["mode"] = 0
    return Broken("forward_mode", forward_id)


def a_row_longer_than_its_parts(trace: Corruptible) -> Broken:
    row = trace.row(Role.DECODE)
    row["seq_len"] += 1
    return Broken("row_lengths", row["forward_id"], trace.name(row))


def a_row_of_nobodys_forward(trace: Corruptible) -> Broken:
    row = trace.tables["rows"][-1]
    row["forward_id"] = 10_000
    return Broken("rows_have_forwards", 10_000, trace.name(row))


def a_row_of_an_unknown_request(trace: Corruptible) -> Broken:
    row = trace.row(Role.DECODE)
    row["rid"] = 77
    return Broken("rows_have_requests", row["forward_id"], "77")


def a_counter_off_by_one(trace: Corruptible) -> Broken:
    row = trace.row(Role.MIDDLE)
    row["inflight_after_plan"] += 1
    return Broken("inflight_counted", row["forward_id"], trace.name(row))


def a_negative_counter(trace: Corruptible) -> Broken:
    row = trace.row(Role.LAST)
    row["inflight_after_result"] = -1
    return Broken("inflight_bounds", row["forward_id"], trace.name(row))


def a_page_too_many_in_a_row(trace: Corruptible) -> Broken:
    row = trace.row(Role.DECODE)
    row["kv_pages"] += 1
    return Broken("row_pages", row["forward_id"], trace.name(row))


def more_private_pages_than_pages(trace: Corruptible) -> Broken:
    row = trace.row(Role.DECODE)
    row["private_pages"] = row["kv_pages"] + 1
    return Broken("row_pages", row["forward_id"], trace.name(row))


def a_row_that_holds_all_private_pages(trace: Corruptible) -> Broken:
    row = trace.row(Role.MIDDLE)
    row["private_pages"] += 100
    return Broken("rows_within_private_pages", row["forward_id"])


def a_credit_beyond_the_prefix(trace: Corruptible) -> Broken:
    row = trace.row(Role.DECODE)
    row["cached_tokens"] = 3
    return Broken("cached_counted", row["forward_id"], trace.name(row))


ROW_CORRUPTIONS = (
    Corruption("plain", a_gap_in_the_cursor),
    Corruption("plain", a_start_before_the_matched_prefix),
    Corruption("plain", a_last_chunk_short_of_the_prompt),
    Corruption("plain", an_end_without_a_last_chunk),
    Corruption("plain", a_second_first_chunk),
    Corruption("plain", pairs_of_a_chunk_counted_twice),
    Corruption("plain", a_first_chunk_that_emits),
    Corruption("plain", a_token_index_skipped),
    Corruption("plain", a_token_that_nobody_sampled),
    Corruption("overlap", a_decode_that_is_dropped_as_a_middle_chunk),
    Corruption("crowd", a_token_of_a_dead_attempt),
    Corruption("crowd", an_attempt_that_goes_back),
    Corruption("crowd", an_attempt_that_runs_on_after_giving_back),
    Corruption("plain", a_row_after_the_end),
    Corruption("plain", a_duplicated_row),
    Corruption("plain", a_decode_row_before_the_prompts),
    Corruption("plain", a_mixed_row_missing),
    Corruption("plain", an_extend_forward_with_decode_rows),
    Corruption("overlap", a_row_longer_than_its_parts),
    Corruption("overlap", a_row_of_nobodys_forward),
    Corruption("overlap", a_row_of_an_unknown_request),
    Corruption("overlap", a_counter_off_by_one),
    Corruption("plain", a_negative_counter),
    Corruption("plain", a_page_too_many_in_a_row),
    Corruption("plain", more_private_pages_than_pages),
    Corruption("plain", a_row_that_holds_all_private_pages),
    Corruption("plain", a_credit_beyond_the_prefix),
)
