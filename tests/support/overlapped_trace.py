"""A small overlapped trace by hand on which every rule holds, as rows to be spoilt.

Each forward is planned and launched, then the result of the one before is processed; all six are on the
device one after the other. One-token pages, nothing cached.

    forward     0       1       2                   3 (deferred)        4 (deferred)        5
    long        [0,4)   [4,8)   [8,12) token 0      token 1             token 2, ends
    short       [0,2) 0                             token 1 ends it     computed in vain
    gone                        [0,3) aborted
    back                        [0,2) token 0       retracted                               [0,3) token 1
    late                                            waits               waits               [0,1) token 0

"long" has two middle chunks in flight after forward 1 is planned. "short" ends by EOS, which nobody can know
when forward 4 is planned. "gone" is aborted before forward 3 is planned. "back" is retracted while forward 4
is planned, and its result of forward 3 comes too late.
"""

from typing import Any

from engine.batch import ForwardMode, Outcome, Role, StopReason
from engine.observer import EventKind
from engine.request import FinishReason

Rows = list[dict[str, Any]]
META = {
    "provenance": "measured",
    "sealed": {"clean_end": True},
    "pool_at_end": {"total": 40, "free": 40, "evictable": 0, "protected": 0, "private": 0},
}
LONG, SHORT, GONE, BACK, LATE = range(5)
NAMES = ("long", "short", "gone", "back", "late")
ABORTED_NS, RETRACTED_NS = 295, 405

# forward, request, role, prefix, extend, outcome, token, in flight after plan and after result, attempt
ROWS = (
    (0, LONG, Role.FIRST, 0, 4, Outcome.MIDDLE_DROPPED, None, 1, 1, 0),
    (0, SHORT, Role.WHOLE, 0, 2, Outcome.EMITTED, 0, 0, 0, 0),
    (1, LONG, Role.MIDDLE, 4, 4, Outcome.MIDDLE_DROPPED, None, 2, 0, 0),
    (2, LONG, Role.LAST, 8, 4, Outcome.EMITTED, 0, 1, 0, 0),
    (2, GONE, Role.WHOLE, 0, 3, Outcome.ABORTED, None, 0, 0, 0),
    (2, BACK, Role.WHOLE, 0, 2, Outcome.EMITTED, 0, 0, 0, 0),
    (3, SHORT, Role.DECODE, 2, 1, Outcome.EMITTED, 1, 0, 0, 0),
    (3, LONG, Role.DECODE, 12, 1, Outcome.EMITTED, 1, 0, 0, 0),
    (3, BACK, Role.DECODE, 2, 1, Outcome.RETRACTED, None, 0, 0, 0),
    (4, SHORT, Role.DECODE, 3, 1, Outcome.FINISHED_DROPPED, None, 0, 0, 0),
    (4, LONG, Role.DECODE, 13, 1, Outcome.EMITTED, 2, 0, 0, 0),
    (5, LATE, Role.WHOLE, 0, 1, Outcome.EMITTED, 0, 0, 0, 0),
    (5, BACK, Role.WHOLE, 0, 3, Outcome.EMITTED, 1, 0, 0, 1),
)
# running and absent requests, the half-done one, middle chunks in flight, why admission stopped and at whom
PLANS = (
    (0, 0, LONG, 1, StopReason.CHUNK, None),
    (1, 1, LONG, 2, StopReason.CHUNK, None),
    (1, 1, None, 1, StopReason.QUEUE_EMPTY, None),
    (3, 0, None, 0, StopReason.INTERVAL, LATE),
    (2, 0, None, 0, StopReason.INTERVAL, LATE),
    (1, 1, None, 0, StopReason.QUEUE_EMPTY, None),  # "long", which ends with forward 4
)
# prompt, most output, output, arrival, first scheduled, first token, end, why, retractions
REQUESTS = (
    (12, 3, 3, 0, 10, 350, 550, FinishReason.LENGTH, 0),
    (2, 9, 2, 0, 10, 150, 450, FinishReason.EOS, 0),
    (3, 9, 0, 110, 210, None, ABORTED_NS, FinishReason.ABORT, 0),
    (2, 2, 2, 110, 210, 350, 650, FinishReason.LENGTH, 1),
    (1, 1, 1, 290, 510, 650, 650, FinishReason.LENGTH, 0),
)
EVENTS = (
    (5, 0, LONG, 0, EventKind.ADMIT, 4),
    (5, 0, SHORT, 0, EventKind.ADMIT, 2),
    (205, 2, GONE, 0, EventKind.ADMIT, 3),
    (205, 2, BACK, 0, EventKind.ADMIT, 2),
    (ABORTED_NS, 1, GONE, 0, EventKind.ABORT, None),
    (305, 3, LATE, 0, EventKind.DEFER, None),
    (RETRACTED_NS, 4, BACK, 0, EventKind.RETRACT, 3),
    (406, 4, LATE, 0, EventKind.DEFER, None),
    (505, 5, LATE, 0, EventKind.ADMIT, 1),
    (505, 5, BACK, 1, EventKind.ADMIT, 3),
    (0, None, LONG, 0, EventKind.ARRIVE, 12),
    (0, None, SHORT, 0, EventKind.ARRIVE, 2),
    (5, 0, LONG, 0, EventKind.TRUNCATE, 8),
    (110, 0, GONE, 0, EventKind.ARRIVE, 3),
    (110, 0, BACK, 0, EventKind.ARRIVE, 2),
    (290, 1, LATE, 0, EventKind.ARRIVE, 1),
    (450, 3, SHORT, 0, EventKind.FINISH, 2),
    (550, 4, LONG, 0, EventKind.FINISH, 3),
    (650, 5, BACK, 1, EventKind.FINISH, 2),
    (650, 5, LATE, 0, EventKind.FINISH, 1),
)


def overlapped_tables() -> dict[str, Rows]:
    """New rows at each call."""
    rows = [_row(*row) for row in ROWS]
    return {
        "forwards": [_forward(i, [r for r in rows if r["forward_id"] == i], *p) for i, p in enumerate(PLANS)],
        "rows": rows,
        "requests": [_request(rid, *request) for rid, request in enumerate(REQUESTS)],
        "events": [_event(*event) for event in EVENTS],
    }


def _forward(
    forward_id: int,
    rows: Rows,
    running: int,
    absent: int,
    chunked_rid: int | None,
    in_flight: int,
    stop_reason: StopReason,
    blocked_rid: int | None,
) -> dict[str, Any]:
    at = 100 * forward_id
    decodes = [row for row in rows if row["role"] == Role.DECODE.value]
    extends = [row for row in rows if row["role"] != Role.DECODE.value]
    return {
        "forward_id": forward_id,
        "rank": 0,
        "mode": (ForwardMode.DECODE if decodes else ForwardMode.EXTEND).value,
        "plan_start_ns": at,
        "plan_end_ns": at + 10,
        "launch_start_ns": at + 10,
        "launch_end_ns": at + 20,
        "start_ns": at + 30,
        "end_ns": at + 130,
        "result_start_ns": at + 140,
        "result_end_ns": at + 150,
        "overlapped": forward_id > 0,
        "num_extend_seqs": len(extends),
        "num_decode_seqs": len(decodes),
        "extend_tokens": sum(row["extend_len"] for row in extends),
        "decode_tokens": len(decodes),
        "prefix_tokens": sum(row["prefix_len"] for row in extends),
        "kv_tokens": sum(row["seq_len"] for row in rows),
        "pairs_prefix": sum(row["extend_len"] * row["prefix_len"] for row in extends),
        "pairs_causal": sum(row["extend_len"] * (row["extend_len"] + 1) // 2 for row in extends),
        "pairs_decode": sum(row["seq_len"] for row in decodes),
        "running_reqs": running,
        "absent_decode_reqs": absent,
        "stop_reason": stop_reason.value,
        "blocked_rid": blocked_rid,
        "pages_total": 40,
        "pages_free": 40 - sum(row["private_pages"] for row in rows),
        "pages_evictable": 0,
        "pages_protected": 0,
        "pages_private": sum(row["private_pages"] for row in rows),
        "chunked_rid": chunked_rid,
        "inflight_middle_chunks": in_flight,
    }


def _row(
    forward_id: int,
    rid: int,
    role: Role,
    prefix: int,
    extend: int,
    outcome: Outcome,
    token_index: int | None,
    after_plan: int,
    after_result: int,
    attempt: int,
) -> dict[str, Any]:
    return {
        "forward_id": forward_id,
        "rank": 0,
        "rid": rid,
        "attempt": attempt,
        "role": role.value,
        "prefix_len": prefix,
        "extend_len": extend,
        "seq_len": prefix + extend,
        "cached_tokens": 0,
        "inflight_after_plan": after_plan,
        "inflight_after_result": after_result,
        "private_pages": prefix + extend,
        "outcome": outcome.value,
        "token_index": token_index,
    }


def _request(
    rid: int,
    prompt: int,
    max_new: int,
    output: int,
    arrival: int,
    scheduled: int,
    first: int | None,
    finish: int,
    reason: FinishReason,
    retractions: int,
) -> dict[str, Any]:
    return {
        "rid": rid,
        "name": NAMES[rid],
        "rank": 0,
        "arrival_ns": arrival,
        "prompt_tokens": prompt,
        "max_new_tokens": max_new,
        "output_tokens": output,
        "first_scheduled_ns": scheduled,
        "first_token_ns": first,
        "finish_ns": finish,
        "finish_reason": reason.value,
        "retractions": retractions,
    }


def _event(
    t_ns: int, forward_id: int | None, rid: int, attempt: int, kind: EventKind, tokens: int | None
) -> dict[str, Any]:
    place = {"t_ns": t_ns, "rank": 0, "forward_id": forward_id, "rid": rid, "attempt": attempt}
    return {**place, "kind": kind.value, "tokens": tokens}
