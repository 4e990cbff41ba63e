"""Corruptions of what is told of pages, requests and decisions."""

from engine.batch import Role
from engine.observer import EventKind, Owner
from engine.request import FinishReason
from tests.support.corrupt_traces import Broken, Corruptible, Corruption

__all__ = ["TOLD_CORRUPTIONS"]


def two_owners_of_a_page(trace: Corruptible) -> Broken:
    extent = trace.extent(Owner.ROW)
    other = {**extent, "num_pages": 1, "rid": extent["rid"] + 1}
    trace.tables["pages"].append(other)
    return Broken("one_owner_per_page", extent["forward_id"], trace.name(other))


def a_page_beyond_the_pool(trace: Corruptible) -> Broken:
    extent = trace.extent(Owner.ROW)
    extent["first_page"] = trace.forward(0)["pages_total"] + 1
    return Broken("one_owner_per_page", extent["forward_id"], trace.name(extent))


def a_lost_page(trace: Corruptible) -> Broken:
    keyframe = next(row for row in trace.tables["pages"] if row["keyframe"] and row["num_pages"] > 1)
    keyframe["num_pages"] -= 1
    return Broken("no_page_lost", keyframe["forward_id"])


def a_change_of_pages_not_told(trace: Corruptible) -> Broken:
    extent = trace.extent(Owner.ROW, where=lambda row: row["forward_id"] > 5)
    trace.tables["pages"].remove(extent)
    return Broken("owners_match_pool")


def pages_kept_after_the_end(trace: Corruptible) -> Broken:
    """No page that a row of the request let go of is told."""
    first = next(r for r in trace.tables["requests"] if r["finish_reason"] == FinishReason.LENGTH)
    end = next(f for f in trace.tables["forwards"] if f["result_end_ns"] == first["finish_ns"])
    told = [row for row in trace.tables["pages"] if row["forward_id"] == end["forward_id"]]
    for row in told:
        if row["owner"] != Owner.ROW:
            trace.tables["pages"].remove(row)
    return Broken("ended_hold_nothing", end["forward_id"], first["name"])


def a_pool_left_otherwise(trace: Corruptible) -> Broken:
    pool = trace.meta["pool_at_end"]
    trace.meta = {
        **trace.meta,
        "pool_at_end": {**pool, "free": pool["free"] - 1, "evictable": pool["evictable"] + 1},
    }
    return Broken("pages_as_left", trace.tables["pages"][-1]["forward_id"])


def a_pool_left_with_private_pages(trace: Corruptible) -> Broken:
    pool = trace.meta["pool_at_end"]
    trace.meta = {**trace.meta, "pool_at_end": {**pool, "free": pool["free"] - 1, "private": 1}}
    return Broken("nothing_leaks")


def a_finish_before_the_first_token(trace: Corruptible) -> Broken:
    request = trace.request(1)
    request["finish_ns"] = request["first_token_ns"] - 1
    return Broken("request_times_ordered", None, request["name"])


def a_first_token_at_another_time(trace: Corruptible) -> Broken:
    row = trace.row(Role.LAST)
    request = trace.request(row["rid"])
    request["first_token_ns"] += 1
    return Broken("request_times_of_forwards", None, request["name"])


def time_running_backwards(trace: Corruptible) -> Broken:
    """A result is said to have been processed before the one that it follows."""
    row = min(trace.rows_of(8), key=lambda row: row["rid"])
    trace.forward(8)["result_end_ns"] = trace.forward(7)["result_end_ns"]
    return Broken("token_times_rise", 8, trace.name(row))


def an_end_without_a_reason(trace: Corruptible) -> Broken:
    request = trace.request(0)
    request["finish_reason"] = None
    return Broken("ended_for_a_reason", None, request["name"])


def an_end_by_length_before_the_limit(trace: Corruptible) -> Broken:
    request = trace.request(0)
    request["max_new_tokens"] += 1
    return Broken("length_ends_at_limit", None, request["name"])


def more_output_than_asked_for(trace: Corruptible) -> Broken:
    request = trace.request(0)
    request["max_new_tokens"] -= 1
    return Broken("output_within_limit", None, request["name"])


def an_output_token_not_counted(trace: Corruptible) -> Broken:
    request = trace.request(0)
    request["output_tokens"] -= 1
    last = [row for row in trace.tables["rows"] if row["rid"] == 0][-1]
    return Broken("output_counted", last["forward_id"], request["name"])


def cached_tokens_of_nowhere(trace: Corruptible) -> Broken:
    request = trace.request(0)
    request["cached_tokens"] = 4
    return Broken("cached_counted", None, request["name"])


def a_second_finish(trace: Corruptible) -> Broken:
    event = trace.event(EventKind.FINISH)
    trace.tables["events"].append(dict(event))
    return Broken("ends_told_once", event["forward_id"], trace.name(event))


def an_admission_not_told(trace: Corruptible) -> Broken:
    event = trace.event(EventKind.ADMIT, where=lambda event: event["forward_id"] > 0)
    trace.tables["events"].remove(event)
    return Broken("admissions_told", event["forward_id"], trace.name(event))


def a_retraction_not_told(trace: Corruptible) -> Broken:
    event = trace.event(EventKind.RETRACT)
    trace.tables["events"].remove(event)
    return Broken("retractions_counted", None, trace.name(event))


def a_more_urgent_victim(trace: Corruptible) -> Broken:
    event = trace.event(EventKind.PREEMPT)
    trace.request(event["rid"])["priority"] = 50
    return Broken("preempted_by_urgency", event["forward_id"], trace.name(event))


TOLD_CORRUPTIONS = (
    Corruption("plain", two_owners_of_a_page),
    Corruption("plain", a_page_beyond_the_pool),
    Corruption("plain", a_lost_page),
    Corruption("overlap", a_change_of_pages_not_told),
    Corruption("plain", pages_kept_after_the_end),
    Corruption("plain", a_pool_left_otherwise),
    Corruption("overlap", a_pool_left_with_private_pages),
    Corruption("plain", a_finish_before_the_first_token),
    Corruption("plain", a_first_token_at_another_time),
    Corruption("plain", time_running_backwards),
    Corruption("plain", an_end_without_a_reason),
    Corruption("plain", an_end_by_length_before_the_limit),
    Corruption("overlap", more_output_than_asked_for),
    Corruption("plain", an_output_token_not_counted),
    Corruption("plain", cached_tokens_of_nowhere),
    Corruption("crowd", a_second_finish),
    Corruption("plain", an_admission_not_told),
    Corruption("crowd", a_retraction_not_told),
    Corruption("rivals", a_more_urgent_victim),
)
