"""Corruptions of forwards: times, budgets, the queue, sums, counters and the pool."""

from engine.batch import ForwardMode, Role, StopReason
from tests.support.corrupt_traces import Broken, Corruptible, Corruption

__all__ = ["FORWARD_CORRUPTIONS"]


def an_id_used_twice(trace: Corruptible) -> Broken:
    trace.tables["forwards"].append(dict(trace.forward(3)))
    return Broken("forward_ids_unique", 3)


def a_plan_that_ends_before_it_starts(trace: Corruptible) -> Broken:
    forward = trace.forward(4)
    forward["plan_start_ns"], forward["plan_end_ns"] = forward["plan_end_ns"], forward["plan_start_ns"]
    return Broken("host_times_ordered", 4)


def a_result_before_its_launch(trace: Corruptible) -> Broken:
    forward = trace.forward(4)
    forward["result_start_ns"] = forward["launch_start_ns"] - 1
    return Broken("host_times_ordered", 4)


def a_forward_that_ends_before_it_starts(trace: Corruptible) -> Broken:
    forward = trace.forward(4)
    forward["start_ns"], forward["end_ns"] = forward["end_ns"], forward["start_ns"]
    return Broken("device_times_ordered", 4)


def two_forwards_at_once_on_the_device(trace: Corruptible) -> Broken:
    trace.forward(4)["start_ns"] = trace.forward(3)["end_ns"] - 1
    return Broken("device_order", 4)


def a_plan_within_the_result_before(trace: Corruptible) -> Broken:
    trace.forward(4)["plan_start_ns"] = trace.forward(3)["result_end_ns"] - 1
    return Broken("host_thread_order", 4)


def two_chunked_requests(trace: Corruptible) -> Broken:
    row = trace.row(Role.MIDDLE)
    other = trace.row(Role.DECODE, where=lambda r: r["forward_id"] == row["forward_id"])
    other["role"] = Role.FIRST.value
    return Broken("one_chunked_request", row["forward_id"], trace.name(row))


def a_half_done_request_left_behind(trace: Corruptible) -> Broken:
    """The forward that completes the prompt says that it does not, and nobody goes on with it."""
    row = trace.row(Role.LAST)
    trace.forward(row["forward_id"])["chunked_rid"] = row["rid"]
    return Broken("half_done_goes_on", row["forward_id"], trace.name(row))


def chunks_in_flight_of_two_requests(trace: Corruptible) -> Broken:
    row = trace.row(Role.MIDDLE)
    for each in trace.rows_of(row["forward_id"]):
        each["inflight_after_result"] = 1
    return Broken("inflight_requests", row["forward_id"])


def a_sum_of_counters_off(trace: Corruptible) -> Broken:
    forward_id = trace.row(Role.MIDDLE)["forward_id"]
    trace.forward(forward_id)["inflight_middle_chunks"] += 1
    return Broken("inflight_sum", forward_id)


def kv_tokens_off(trace: Corruptible) -> Broken:
    trace.forward(5)["kv_tokens"] += 1
    return Broken("forward_tokens", 5)


def pairs_of_a_forward_off(trace: Corruptible) -> Broken:
    forward_id = trace.row(Role.MIDDLE)["forward_id"]
    trace.forward(forward_id)["pairs_causal"] -= 1
    return Broken("forward_pairs", forward_id)


def a_count_below_zero(trace: Corruptible) -> Broken:
    trace.forward(5)["evicted_pages"] = -1
    return Broken("counts_not_negative", 5)


def a_running_request_too_many(trace: Corruptible) -> Broken:
    trace.forward(5)["running_reqs"] += 1
    return Broken("running_counted", 5)


def a_waiting_request_too_many(trace: Corruptible) -> Broken:
    trace.forward(9)["waiting_reqs"] += 1
    return Broken("waiting_counted", 9)


def a_waiting_request_forgotten(trace: Corruptible) -> Broken:
    trace.forward(9)["waiting_reqs"] -= 1
    return Broken("waiting_counted", 9)


def tokens_pending_of_nobody(trace: Corruptible) -> Broken:
    forward = trace.tables["forwards"][-1]
    forward["pending_tokens"] = 5
    return Broken("pending_counted", forward["forward_id"])


def the_rest_of_a_half_done_prompt_forgotten(trace: Corruptible) -> Broken:
    row = trace.row(Role.FIRST)
    trace.forward(row["forward_id"])["pending_tokens"] = 0
    return Broken("pending_counted", row["forward_id"])


def a_deferral_of_nobody(trace: Corruptible) -> Broken:
    forward = next(f for f in trace.tables["forwards"] if f["stop_reason"] == StopReason.INTERVAL)
    forward["blocked_rid"] = None
    return Broken("interval_defers", forward["forward_id"])


def a_retraction_not_counted(trace: Corruptible) -> Broken:
    forward = next(f for f in trace.tables["forwards"] if f["retracted_reqs"])
    forward["retracted_reqs"] = 0
    return Broken("decisions_counted", forward["forward_id"])


def an_eviction_not_counted(trace: Corruptible) -> Broken:
    forward = next(f for f in trace.tables["forwards"] if f["evicted_pages"])
    forward["evicted_pages"] -= 1
    return Broken("decisions_counted", forward["forward_id"])


def a_sit_out_that_nobody_told(trace: Corruptible) -> Broken:
    forward_id = trace.row(Role.MIDDLE)["forward_id"]
    trace.forward(forward_id)["absent_decode_reqs"] = 1
    return Broken("sit_outs_counted", forward_id)


def a_chunk_budget_not_charged(trace: Corruptible) -> Broken:
    forward = trace.forward(trace.row(Role.MIDDLE)["forward_id"])
    forward["chunk_budget_end_tokens"] = forward["chunk_budget_start_tokens"]
    return Broken("budgets_charged", forward["forward_id"])


def an_input_budget_charged_in_tokens(trace: Corruptible) -> Broken:
    """A row of 5 tokens in pages of 4 is charged 8."""
    row = trace.row(Role.WHOLE, where=lambda row: row["extend_len"] % 4 != 0)
    forward = trace.forward(row["forward_id"])
    forward["input_budget_end_tokens"] += 4 - row["extend_len"] % 4
    return Broken("budgets_charged", row["forward_id"])


def output_not_reserved(trace: Corruptible) -> Broken:
    row = trace.row(Role.LAST)
    forward = trace.forward(row["forward_id"])
    forward["total_budget_end_tokens"] += trace.request(row["rid"])["max_new_tokens"]
    return Broken("budgets_charged", row["forward_id"])


def a_chunk_budget_without_the_decode_rows_taken_off(trace: Corruptible) -> Broken:
    forward = trace.forward(trace.row(Role.MIDDLE)["forward_id"])
    for edge in ("start", "end"):
        forward[f"chunk_budget_{edge}_tokens"] += forward["mixed_deducted_tokens"]
    return Broken("budgets_begin", forward["forward_id"])


def a_decode_forward_with_budgets(trace: Corruptible) -> Broken:
    forward = next(f for f in trace.tables["forwards"] if f["mode"] == ForwardMode.DECODE)
    forward["input_budget_start_tokens"] = 16384
    return Broken("budgets_begin", forward["forward_id"])


def a_current_budget_that_the_pool_has_not(trace: Corruptible) -> Broken:
    forward = trace.forward(trace.row(Role.MIDDLE)["forward_id"])
    for budget in ("total", "current"):
        for edge in ("start", "end"):
            forward[f"{budget}_budget_{edge}_tokens"] += 8
    return Broken("budget_left_in_pool", forward["forward_id"])


def a_chunk_beyond_its_budget(trace: Corruptible) -> Broken:
    forward = trace.forward(trace.row(Role.MIDDLE)["forward_id"])
    forward["chunk_budget_start_tokens"] = forward["extend_tokens"] - 1
    return Broken("chunk_budget_kept", forward["forward_id"])


def admission_that_stops_at_nobody(trace: Corruptible) -> Broken:
    forward = next(f for f in trace.tables["forwards"] if f["blocked_rid"] is not None)
    forward["blocked_rid"] = None
    return Broken("stop_explained", forward["forward_id"])


def a_stop_by_a_budget_that_is_left(trace: Corruptible) -> Broken:
    forward = next(f for f in trace.tables["forwards"] if f["stop_reason"] == StopReason.SLOTS)
    forward.update(stop_reason=StopReason.CHUNK.value, chunk_budget_end_tokens=7)
    return Broken("stop_explained", forward["forward_id"])


def a_page_lost_by_the_pool(trace: Corruptible) -> Broken:
    trace.forward(6)["pages_free"] -= 1
    return Broken("pool_conservation", 6)


def a_private_page_of_nobody(trace: Corruptible) -> Broken:
    forward = trace.forward(12)
    forward["pages_private"] += 1
    forward["pages_free"] -= 1
    return Broken("private_pages_told", 12)


def an_evictable_page_that_is_locked(trace: Corruptible) -> Broken:
    forward = trace.forward(14)
    forward["pages_protected"] += 1
    forward["pages_evictable"] -= 1
    return Broken("owners_match_pool", 14)


FORWARD_CORRUPTIONS = (
    Corruption("overlap", an_id_used_twice),
    Corruption("overlap", a_plan_that_ends_before_it_starts),
    Corruption("plain", a_result_before_its_launch),
    Corruption("plain", a_forward_that_ends_before_it_starts),
    Corruption("overlap", two_forwards_at_once_on_the_device),
    Corruption("plain", a_plan_within_the_result_before),
    Corruption("plain", two_chunked_requests),
    Corruption("plain", a_half_done_request_left_behind),
    Corruption("plain", chunks_in_flight_of_two_requests),
    Corruption("overlap", a_sum_of_counters_off),
    Corruption("overlap", kv_tokens_off),
    Corruption("plain", pairs_of_a_forward_off),
    Corruption("plain", a_count_below_zero),
    Corruption("overlap", a_running_request_too_many),
    Corruption("plain", a_waiting_request_too_many),
    Corruption("overlap", a_waiting_request_forgotten),
    Corruption("plain", tokens_pending_of_nobody),
    Corruption("plain", the_rest_of_a_half_done_prompt_forgotten),
    Corruption("overlap", a_deferral_of_nobody),
    Corruption("crowd", a_retraction_not_counted),
    Corruption("crowd", an_eviction_not_counted),
    Corruption("plain", a_sit_out_that_nobody_told),
    Corruption("plain", a_chunk_budget_not_charged),
    Corruption("plain", an_input_budget_charged_in_tokens),
    Corruption("plain", output_not_reserved),
    Corruption("plain", a_chunk_budget_without_the_decode_rows_taken_off),
    Corruption("plain", a_decode_forward_with_budgets),
    Corruption("plain", a_current_budget_that_the_pool_has_not),
    Corruption("plain", a_chunk_beyond_its_budget),
    Corruption("plain", admission_that_stops_at_nobody),
    Corruption("plain", a_stop_by_a_budget_that_is_left),
    Corruption("plain", a_page_lost_by_the_pool),
    Corruption("plain", a_private_page_of_nobody),
    Corruption("plain", an_evictable_page_that_is_locked),
)
