"""Traces in memory, from plain rows; what a row leaves out is null."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from engine.batch import ForwardMode, Outcome, Role
from engine.observer import EventKind
from traces.schema import TABLES

Record = Mapping[str, Any]


@dataclass(frozen=True)
class MemoryTrace:
    """What analyses need of a trace, without a file."""

    tables: Mapping[str, Sequence[Record]]
    meta: Mapping[str, Any] = field(default_factory=lambda: {"provenance": "measured"})
    torn_bytes: int = 0

    def table(self, name: str) -> pa.Table:
        records = self.tables.get(name, ())
        schema = TABLES[name]
        strangers = {key for record in records for key in record} - set(schema.names)
        assert not strangers, f"{name} has no column {strangers}"
        return pa.table(
            {c: pa.array([r.get(c) for r in records], schema.field(c).type) for c in schema.names},
            schema=schema,
        )


def forward(
    forward_id: int, start_ns: int, end_ns: int, mode: ForwardMode = ForwardMode.DECODE, **more: Any
) -> dict[str, Any]:
    """A forward whose result is known as soon as the device is done."""
    return {
        "forward_id": forward_id,
        "rank": 0,
        "mode": mode.value,
        "plan_start_ns": start_ns,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "result_end_ns": end_ns,
        **more,
    }


def decode_row(forward_id: int, rid: int, token_index: int, **more: Any) -> dict[str, Any]:
    """A row that yields one token."""
    return {
        "forward_id": forward_id,
        "rank": 0,
        "rid": rid,
        "attempt": 0,
        "role": Role.DECODE.value,
        "extend_len": 1,
        "outcome": Outcome.EMITTED.value,
        "token_index": token_index,
        **more,
    }


def extend_row(
    forward_id: int,
    rid: int,
    tokens: int,
    token_index: int | None = None,
    role: Role = Role.WHOLE,
    **more: Any,
) -> dict[str, Any]:
    """A row of prompt tokens; without a token index its sample was dropped."""
    outcome = Outcome.MIDDLE_DROPPED if token_index is None else Outcome.EMITTED
    return {
        "forward_id": forward_id,
        "rank": 0,
        "rid": rid,
        "attempt": 0,
        "role": role.value,
        "extend_len": tokens,
        "outcome": outcome.value,
        "token_index": token_index,
        **more,
    }


def request(rid: int, arrival_ns: int = 0, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"rid": rid, "rank": 0, "name": name or f"r{rid}", "arrival_ns": arrival_ns, **more}


def event(t_ns: int, rid: int, kind: EventKind, **more: Any) -> dict[str, Any]:
    return {"t_ns": t_ns, "rank": 0, "rid": rid, "kind": kind.value, **more}


def prefill_trace(points: Sequence[tuple[int, int]]) -> MemoryTrace:
    """One prompt a forward, no prefix: (tokens, device nanoseconds) of each."""
    forwards, now = [], 0
    for i, (tokens, time_ns) in enumerate(points):
        forwards.append(
            forward(
                i,
                now,
                now + time_ns,
                ForwardMode.EXTEND,
                num_extend_seqs=1,
                num_decode_seqs=0,
                extend_tokens=tokens,
                decode_tokens=0,
                prefix_tokens=0,
            )
        )
        now += time_ns
    return MemoryTrace({"forwards": forwards})
