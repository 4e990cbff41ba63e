"""A small trace by hand on which every rule holds, as rows to be spoilt.

Pool of 40 one-token pages. "long" (prompt 10) is cut into [0, 4) [4, 8) [8, 10), decodes once, is retracted
with two tokens, hits 4 and is prefilled again as [4, 12). "short" (prompt 5) hits 2, is prefilled as [2, 5)
and decodes once.
"""

from typing import Any

from engine.batch import ForwardMode, Outcome, Role, StopReason
from engine.observer import EventKind
from engine.request import FinishReason

Rows = list[dict[str, Any]]
META = {
    "provenance": "measured",
    "sealed": {"clean_end": True},
    "pool_at_end": {"total": 40, "free": 25, "evictable": 15, "protected": 0, "private": 0},
}
LONG, SHORT = 0, 1


def sound_tables() -> dict[str, Rows]:
    """New rows at each call."""
    return {"forwards": _forwards(), "rows": _rows(), "requests": _requests(), "events": _events()}


def _forwards() -> Rows:
    extend, decode = ForwardMode.EXTEND.value, ForwardMode.DECODE.value
    return [
        _forward(0, extend, (1, 0), (4, 0, 0, 4), (0, 10, 0), private=4, chunked_rid=LONG, in_flight=1),
        _forward(1, extend, (1, 0), (4, 0, 4, 8), (16, 10, 0), private=4, chunked_rid=LONG, in_flight=1),
        _forward(2, extend, (2, 0), (5, 0, 10, 15), (22, 9, 0), private=5),
        _forward(3, decode, (0, 2), (0, 2, 0, 17), (0, 0, 17), private=2),
        _forward(4, extend, (1, 0), (8, 0, 4, 12), (32, 36, 0), private=8),
    ]


def _forward(
    forward_id: int,
    mode: int,
    sequences: tuple[int, int],
    tokens: tuple[int, int, int, int],
    pairs: tuple[int, int, int],
    *,
    private: int,
    chunked_rid: int | None = None,
    in_flight: int = 0,
) -> dict[str, Any]:
    start = 100 * forward_id
    return {
        "forward_id": forward_id,
        "rank": 0,
        "mode": mode,
        "plan_start_ns": start,
        "plan_end_ns": start + 10,
        "launch_start_ns": start + 20,
        "launch_end_ns": start + 30,
        "start_ns": start + 25,
        "end_ns": start + 70,
        "result_start_ns": start + 80,
        "result_end_ns": start + 90,
        "overlapped": False,
        **dict(zip(("num_extend_seqs", "num_decode_seqs"), sequences, strict=True)),
        **dict(zip(("extend_tokens", "decode_tokens", "prefix_tokens", "kv_tokens"), tokens, strict=True)),
        **dict(zip(("pairs_prefix", "pairs_causal", "pairs_decode"), pairs, strict=True)),
        "pages_total": 40,
        "pages_free": 30 - private,
        "pages_evictable": 6,
        "pages_protected": 4,
        "pages_private": private,
        "running_reqs": sequences[1],
        "absent_decode_reqs": 0,
        "stop_reason": None if mode == ForwardMode.DECODE.value else StopReason.QUEUE_EMPTY.value,
        "chunked_rid": chunked_rid,
        "inflight_middle_chunks": in_flight,
    }


def _rows() -> Rows:
    return [
        _row(0, LONG, Role.FIRST, 0, 4, None, private=4),
        _row(1, LONG, Role.MIDDLE, 4, 4, None, private=4),
        _row(2, LONG, Role.LAST, 8, 2, 0, private=2),
        _row(2, SHORT, Role.WHOLE, 2, 3, 0, private=3, cached=2),
        _row(3, LONG, Role.DECODE, 10, 1, 1, private=1),
        _row(3, SHORT, Role.DECODE, 5, 1, 1, private=1),
        _row(4, LONG, Role.WHOLE, 4, 8, 2, private=8, attempt=1),
    ]


def _row(
    forward_id: int,
    rid: int,
    role: Role,
    prefix: int,
    extend: int,
    token_index: int | None,
    *,
    private: int,
    attempt: int = 0,
    cached: int = 0,
) -> dict[str, Any]:
    middle = token_index is None
    return {
        "forward_id": forward_id,
        "rank": 0,
        "rid": rid,
        "attempt": attempt,
        "role": role.value,
        "prefix_len": prefix,
        "extend_len": extend,
        "seq_len": prefix + extend,
        "cached_tokens": cached,
        "inflight_after_plan": int(middle),
        "inflight_after_result": 0,
        "kv_pages": prefix + extend,
        "private_pages": private,
        "outcome": (Outcome.MIDDLE_DROPPED if middle else Outcome.EMITTED).value,
        "token_index": token_index,
    }


def _requests() -> Rows:
    return [
        {
            "rid": rid,
            "name": name,
            "rank": 0,
            "arrival_ns": 0,
            "prompt_tokens": prompt,
            "max_new_tokens": tokens,
            "output_tokens": tokens,
            "first_scheduled_ns": first,
            "first_token_ns": 290,
            "finish_ns": finish,
            "finish_reason": FinishReason.LENGTH.value,
            "retractions": retractions,
        }
        for rid, name, prompt, tokens, first, finish, retractions in (
            (LONG, "long", 10, 3, 10, 490, 1),
            (SHORT, "short", 5, 2, 210, 390, 0),
        )
    ]


def _events() -> Rows:
    admit, hit, retract = EventKind.ADMIT.value, EventKind.HIT.value, EventKind.RETRACT.value
    arrive, cut, finish = EventKind.ARRIVE.value, EventKind.TRUNCATE.value, EventKind.FINISH.value
    return [
        {
            "t_ns": t_ns,
            "rank": 0,
            "forward_id": f,
            "rid": rid,
            "attempt": attempt,
            "kind": kind,
            "tokens": tokens,
        }
        for t_ns, f, rid, attempt, kind, tokens in (
            (5, 0, LONG, 0, admit, 4),
            (205, 2, SHORT, 0, admit, 3),
            (205, 2, SHORT, 0, hit, 2),
            (405, 4, LONG, 1, admit, 8),
            (405, 4, LONG, 1, hit, 4),
            (395, 4, LONG, 0, retract, 11),
            (0, None, LONG, 0, arrive, 10),
            (0, None, SHORT, 0, arrive, 5),
            (5, 0, LONG, 0, cut, 6),
            (390, 3, SHORT, 0, finish, 2),
            (490, 4, LONG, 1, finish, 3),
        )
    ]
