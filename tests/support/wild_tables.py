"""Tables that no engine would write: what the definitions of ledgers leave open must still add up.

Device intervals overlap, times are missing, requests skip forwards, are held back and give their KV back for
no reason, and a second rank may record the same forwards at other times.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

from engine.batch import ForwardMode, Outcome, Role
from engine.observer import EventKind
from tests.support.traces import event, request

__all__ = ["wild_tables"]

Rows = list[dict[str, Any]]
TIMES = (
    *("plan_start_ns", "plan_end_ns", "launch_start_ns", "launch_end_ns"),
    *("start_ns", "end_ns", "result_start_ns", "result_end_ns"),
)
TOKEN_NS = "result_end_ns"  # is always known
REQUESTS, FORWARDS = 4, 14


@dataclass
class _Request:
    rid: int
    attempt: int = 0
    gone: bool = False  # gave its KV back, and had no chunk since
    decodes: bool = False
    next_token: int = 0
    last: dict[str, Any] | None = None  # its last row, and when the result of that was known
    last_result_ns: int = 0


def wild_tables(rng: Random, *, orderly: bool = False) -> dict[str, Rows]:
    """New tables; `rng` decides everything.

    Orderly ones are of one device queue, in which the start of each forward is known, and of requests whose
    chunks come before their decodes.
    """
    tables = _tables(rng, orderly)
    if rng.random() < 0.3:
        for forward, times in zip(tables["forwards"][:], _times(rng, orderly), strict=True):
            at = {**times, "forward_id": forward["forward_id"] + FORWARDS, "rank": 1}
            tables["forwards"].append({**forward, **at})
        tables["rows"] += [
            {**row, "forward_id": row["forward_id"] + FORWARDS, "rank": 1} for row in tables["rows"]
        ]
    missing = rng.choice([0.0, 0.0, 0.02])
    for forward in tables["forwards"]:
        known = (TOKEN_NS, "start_ns") if orderly else (TOKEN_NS,)
        forward.update({name: None for name in TIMES if name not in known and rng.random() < missing})
    return tables


def _tables(rng: Random, orderly: bool) -> dict[str, Rows]:
    """Those of one rank."""
    forwards, rows, events = [], [], []
    requests = [_Request(rid) for rid in range(REQUESTS)]
    for forward_id, times in enumerate(_times(rng, orderly)):
        mode = rng.choice([*ForwardMode, ForwardMode.DECODE]).value if rng.random() < 0.97 else None
        forward = {"forward_id": forward_id, "rank": 0, "mode": mode, **times}
        mine = []
        for each in requests:
            if not each.gone and rng.random() < 0.1:
                events.append(_give_back(rng, forward, each))
            elif (row := _row(rng, forward, each, orderly)) is not None:
                mine.append(row)
            else:
                events += _held_back(rng, forward, each.rid)
        _count(forward, mine)
        rows += mine
        forwards.append(forward)
    known = [request(each.rid) for each in requests]
    return {"forwards": forwards, "rows": rows, "events": events, "requests": known}


def _times(rng: Random, orderly: bool) -> list[dict[str, int]]:
    """Those of each forward: the host's in the order of a plain or an overlapped loop.

    The device's lie between launch and result, and orderly ones start and end in the order of forwards.
    """
    ahead = rng.choice([0, 1])
    now, start, end, times = 0, 0, 0, [[0] * len(TIMES) for _ in range(FORWARDS)]
    for step in range(FORWARDS + ahead):
        for forward, edges in ((step, range(4)), (step - ahead, (6, 7))):
            if 0 <= forward < FORWARDS:
                for edge in edges:
                    now += rng.choice([0, rng.randint(1, 60)])
                    times[forward][edge] = now
    for each in times:
        each[4:6] = sorted(rng.randint(each[3], each[7]) for _ in range(2))
        if orderly:
            start, end = max(start, each[4]), max(end, each[5])
            each[4:6] = start, max(start, end)
    return [dict(zip(TIMES, each, strict=True)) for each in times]


def _give_back(rng: Random, forward: dict[str, Any], request: _Request) -> dict[str, Any]:
    """An event while the forward is planned; a token that is still awaited then is lost."""
    kind = rng.choice([EventKind.RETRACT, EventKind.PREEMPT])
    at_ns = rng.randint(forward["plan_start_ns"], forward["plan_end_ns"])
    attempt = rng.choice([request.attempt, request.attempt, None])
    request.attempt, request.gone, request.decodes = request.attempt + 1, True, False
    last = request.last
    if last is not None and last["outcome"] == Outcome.EMITTED.value and request.last_result_ns >= at_ns:
        last.update(outcome=Outcome.RETRACTED.value, token_index=None)
        request.next_token -= 1
    return event(at_ns, request.rid, kind, attempt=attempt)


def _row(rng: Random, forward: dict[str, Any], request: _Request, orderly: bool) -> dict[str, Any] | None:
    """What a request has in a forward; one that gave its KV back has a chunk next."""
    if rng.random() < 0.35:
        return None
    prompts = {ForwardMode.EXTEND.value: 1.0, ForwardMode.MIXED.value: 0.5}.get(forward["mode"], 0.0)
    role, tokens = Role.DECODE, 1
    if orderly and request.decodes:
        if forward["mode"] == ForwardMode.EXTEND.value:
            return None
    elif rng.random() < prompts:
        role, tokens = rng.choice([Role.WHOLE, Role.FIRST, Role.MIDDLE, Role.LAST]), rng.randint(0, 40)
    elif request.gone:
        return None
    gave = role not in (Role.FIRST, Role.MIDDLE) and rng.random() < 0.9
    prefix, index = rng.randint(0, 50), request.next_token
    request.gone = False
    request.decodes = role in (Role.WHOLE, Role.LAST, Role.DECODE)
    request.next_token += gave
    request.last_result_ns = forward["result_end_ns"]
    request.last = {
        "forward_id": forward["forward_id"],
        "rank": 0,
        "rid": request.rid,
        "attempt": request.attempt,
        "role": role.value,
        "prefix_len": prefix,
        "extend_len": tokens,
        "seq_len": prefix + tokens,
        "outcome": (Outcome.EMITTED if gave else Outcome.MIDDLE_DROPPED).value,
        "token_index": index if gave else None,
    }
    return request.last


def _held_back(rng: Random, forward: dict[str, Any], rid: int) -> Rows:
    kinds = [kind for kind in (EventKind.SIT_OUT, EventKind.DEFER) if rng.random() < 0.15]
    return [event(forward["plan_start_ns"], rid, k, forward_id=forward["forward_id"]) for k in kinds]


def _count(forward: dict[str, Any], rows: Rows) -> None:
    """The sums over a forward's rows."""
    chunks = [(r["prefix_len"], r["extend_len"]) for r in rows if r["role"] != Role.DECODE.value]
    decodes = [r["seq_len"] for r in rows if r["role"] == Role.DECODE.value]
    extend_tokens = sum(n for _, n in chunks)
    forward.update(
        num_extend_seqs=len(chunks),
        num_decode_seqs=len(decodes),
        extend_tokens=extend_tokens,
        decode_tokens=len(decodes),
        prefix_tokens=sum(p for p, _ in chunks),
        kv_tokens=sum(p + n for p, n in chunks) + sum(decodes),
        pairs_prefix=sum(p * n for p, n in chunks),
        pairs_causal=sum(n * (n + 1) // 2 for _, n in chunks),
        pairs_decode=sum(decodes),
    )
