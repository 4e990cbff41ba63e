"""Ten forwards of a plain loop by hand, in milliseconds, with a bit of everything that can delay a token.

"ann" and "bob" decode while "doc" is prefilled in two chunks; "eve" waits behind it. Then "bob" gives its KV
back and is computed anew beside "eve", while "ann" and "doc" sit out. After forward 7 the engine does nothing
for 30 ms.

    forward    0            1        2            3            4         5        6            7 8 9
    mode       EXTEND       DECODE   EXTEND       MIXED        DECODE    DECODE   EXTEND       DECODE
    plan at    4            26       40           66           86        101      116          138 184 200
    device     7-23         29-37    43-63        69-83        89-98     104-113  119-135      ...
    ann        [0,8)    0   1                     2            3         4        sits out     5 6
    bob        [0,8)    0   1                     2            gives up  deferred [0,11)   3   4 5 6
    doc                              [0,16)       [16,24)  0   1         2        sits out     3 4 5
    eve        waits behind doc      waits        waits        waits     waits    [0,5)    0   1 2 3

A forward is planned for 1 ms, launched for 1 ms, begins on the device 1 ms later, and 1 ms after its end its
result is processed for 1 ms. The next one is planned 1 ms after that. Nothing is cached.
"""

from typing import Any

from engine.batch import ForwardMode, Outcome, Role, StopReason
from engine.observer import EventKind
from engine.request import FinishReason
from tests.support.traces import MemoryTrace

__all__ = ["ANN", "BOB", "DOC", "EVE", "META", "MS", "NAMES", "ten_forwards"]

MS = 1_000_000
ANN, BOB, DOC, EVE = range(4)
NAMES = ("ann", "bob", "doc", "eve")
META = {"provenance": "measured", "engine": {"chunked_prefill_size": 16, "max_running_requests": 8}}

# mode, start of its plan, time on the device; requests that run, that wait, that run without a row in it; why
# admission stopped and at whom
FORWARDS = (
    (ForwardMode.EXTEND, 4, 16, 0, 2, 0, StopReason.TOTAL, DOC),
    (ForwardMode.DECODE, 26, 8, 2, 2, 0, None, None),
    (ForwardMode.EXTEND, 40, 20, 2, 1, 2, StopReason.CHUNK, EVE),
    (ForwardMode.MIXED, 66, 14, 2, 1, 0, StopReason.TOTAL, EVE),
    (ForwardMode.DECODE, 86, 9, 2, 2, 0, None, None),
    (ForwardMode.DECODE, 101, 9, 2, 2, 0, StopReason.INTERVAL, BOB),
    (ForwardMode.EXTEND, 116, 16, 2, 0, 2, StopReason.QUEUE_EMPTY, None),
    (ForwardMode.DECODE, 138, 10, 4, 0, 0, None, None),
    (ForwardMode.DECODE, 184, 10, 4, 0, 0, None, None),
    (ForwardMode.DECODE, 200, 10, 3, 0, 0, None, None),
)
# forward, request, attempt, role, prefix, extend, token
ROWS = (
    (0, ANN, 0, Role.WHOLE, 0, 8, 0),
    (0, BOB, 0, Role.WHOLE, 0, 8, 0),
    (1, ANN, 0, Role.DECODE, 8, 1, 1),
    (1, BOB, 0, Role.DECODE, 8, 1, 1),
    (2, DOC, 0, Role.FIRST, 0, 16, None),
    (3, DOC, 0, Role.LAST, 16, 8, 0),
    (3, ANN, 0, Role.DECODE, 9, 1, 2),
    (3, BOB, 0, Role.DECODE, 9, 1, 2),
    (4, ANN, 0, Role.DECODE, 10, 1, 3),
    (4, DOC, 0, Role.DECODE, 24, 1, 1),
    (5, ANN, 0, Role.DECODE, 11, 1, 4),
    (5, DOC, 0, Role.DECODE, 25, 1, 2),
    (6, BOB, 1, Role.WHOLE, 0, 11, 3),
    (6, EVE, 0, Role.WHOLE, 0, 5, 0),
    (7, ANN, 0, Role.DECODE, 12, 1, 5),
    (7, BOB, 1, Role.DECODE, 11, 1, 4),
    (7, DOC, 0, Role.DECODE, 26, 1, 3),
    (7, EVE, 0, Role.DECODE, 5, 1, 1),
    (8, ANN, 0, Role.DECODE, 13, 1, 6),
    (8, BOB, 1, Role.DECODE, 12, 1, 5),
    (8, DOC, 0, Role.DECODE, 27, 1, 4),
    (8, EVE, 0, Role.DECODE, 6, 1, 2),
    (9, BOB, 1, Role.DECODE, 13, 1, 6),
    (9, DOC, 0, Role.DECODE, 28, 1, 5),
    (9, EVE, 0, Role.DECODE, 7, 1, 3),
)
# time, forward, request, attempt, what, tokens
EVENTS = (
    (0, None, ANN, 0, EventKind.ARRIVE, 8),
    (1, None, BOB, 0, EventKind.ARRIVE, 8),
    (2, None, DOC, 0, EventKind.ARRIVE, 24),
    (3, None, EVE, 0, EventKind.ARRIVE, 5),
    (4, 0, ANN, 0, EventKind.ADMIT, 8),
    (4, 0, BOB, 0, EventKind.ADMIT, 8),
    (40, 2, DOC, 0, EventKind.ADMIT, 16),
    (40, 2, DOC, 0, EventKind.TRUNCATE, 8),
    (86, 4, BOB, 0, EventKind.RETRACT, 10),
    (86, 4, BOB, 1, EventKind.REQUEUE, 3),
    (101, 5, BOB, 1, EventKind.DEFER, None),
    (116, 6, BOB, 1, EventKind.ADMIT, 11),
    (116, 6, EVE, 0, EventKind.ADMIT, 5),
    (116, 6, ANN, 0, EventKind.SIT_OUT, None),
    (116, 6, DOC, 0, EventKind.SIT_OUT, None),
    (199, 8, ANN, 0, EventKind.FINISH, 7),
    (215, 9, BOB, 1, EventKind.FINISH, 7),
    (215, 9, DOC, 0, EventKind.FINISH, 6),
    (215, 9, EVE, 0, EventKind.FINISH, 4),
)
# prompt, output, arrival, first scheduled, first token, end, retractions
REQUESTS = (
    (8, 7, 0, 5, 25, 199, 0),
    (8, 7, 1, 5, 25, 215, 1),
    (24, 6, 2, 41, 85, 215, 0),
    (5, 4, 3, 117, 137, 215, 0),
)


def ten_forwards() -> MemoryTrace:
    """The trace; its times are whole milliseconds in nanoseconds."""
    rows = [_row(*row) for row in ROWS]
    tables = {
        "forwards": [
            _forward(at, [row for row in rows if row["forward_id"] == at], *forward)
            for at, forward in enumerate(FORWARDS)
        ],
        "rows": rows,
        "requests": [_request(rid, *request) for rid, request in enumerate(REQUESTS)],
        "events": [_event(*event) for event in EVENTS],
    }
    return MemoryTrace(tables, META)


def _forward(
    forward_id: int,
    rows: list[dict[str, Any]],
    mode: ForwardMode,
    plan: int,
    device: int,
    running: int,
    waiting: int,
    absent: int,
    stop_reason: StopReason | None,
    blocked_rid: int | None,
) -> dict[str, Any]:
    decodes = [row for row in rows if row["role"] == Role.DECODE.value]
    chunks = [row for row in rows if row["role"] != Role.DECODE.value]
    return {
        "forward_id": forward_id,
        "rank": 0,
        "mode": mode.value,
        "plan_start_ns": plan * MS,
        "plan_end_ns": (plan + 1) * MS,
        "launch_start_ns": (plan + 1) * MS,
        "launch_end_ns": (plan + 2) * MS,
        "start_ns": (plan + 3) * MS,
        "end_ns": (plan + 3 + device) * MS,
        "result_start_ns": (plan + 4 + device) * MS,
        "result_end_ns": (plan + 5 + device) * MS,
        "overlapped": False,
        "num_extend_seqs": len(chunks),
        "num_decode_seqs": len(decodes),
        "extend_tokens": sum(row["extend_len"] for row in chunks),
        "decode_tokens": len(decodes),
        "prefix_tokens": sum(row["prefix_len"] for row in chunks),
        "kv_tokens": sum(row["seq_len"] for row in rows),
        "pairs_prefix": sum(row["extend_len"] * row["prefix_len"] for row in chunks),
        "pairs_causal": sum(row["extend_len"] * (row["extend_len"] + 1) // 2 for row in chunks),
        "pairs_decode": sum(row["seq_len"] for row in decodes),
        "running_reqs": running,
        "waiting_reqs": waiting,
        "absent_decode_reqs": absent,
        "stop_reason": None if stop_reason is None else stop_reason.value,
        "blocked_rid": blocked_rid,
        "chunked_rid": DOC if forward_id == 2 else None,
        "inflight_middle_chunks": int(forward_id == 2),
        "retracted_reqs": int(forward_id == 4),
    }


def _row(
    forward_id: int, rid: int, attempt: int, role: Role, prefix: int, extend: int, token_index: int | None
) -> dict[str, Any]:
    outcome = Outcome.MIDDLE_DROPPED if token_index is None else Outcome.EMITTED
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
        "inflight_after_plan": int(token_index is None),
        "inflight_after_result": 0,
        "outcome": outcome.value,
        "token_index": token_index,
    }


def _request(
    rid: int, prompt: int, output: int, arrival: int, scheduled: int, first: int, end: int, retractions: int
) -> dict[str, Any]:
    return {
        "rid": rid,
        "name": NAMES[rid],
        "rank": 0,
        "arrival_ns": arrival * MS,
        "prompt_tokens": prompt,
        "max_new_tokens": output,
        "output_tokens": output,
        "first_scheduled_ns": scheduled * MS,
        "first_token_ns": first * MS,
        "finish_ns": end * MS,
        "finish_reason": FinishReason.LENGTH.value,
        "retractions": retractions,
        "ignore_eos": False,
    }


def _event(
    t_ms: int, forward_id: int | None, rid: int, attempt: int, kind: EventKind, tokens: int | None
) -> dict[str, Any]:
    place = {"t_ns": t_ms * MS, "rank": 0, "forward_id": forward_id, "rid": rid, "attempt": attempt}
    return {**place, "kind": kind.value, "tokens": tokens}
