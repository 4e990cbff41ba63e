"""What the oracle of the ledger reads: a trace's rows as plain dictionaries, and the times of forwards."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from engine.arithmetic import ForwardSums
from traces.schema import TABLES, enum_names

__all__ = [
    "CHUNKS",
    "TIMES",
    "Record",
    "Tables",
    "begins_ns",
    "device_ns",
    "holds",
    "records",
    "sums_of",
    "touches",
]

Record = Mapping[str, Any]

CHUNKS = ("WHOLE", "FIRST", "MIDDLE", "LAST")
TIMES = (
    *("plan_start_ns", "plan_end_ns", "launch_start_ns", "launch_end_ns"),
    *("start_ns", "end_ns", "result_start_ns", "result_end_ns"),
)


class Tables(Protocol):
    """A trace, of which nothing but its tables is looked at."""

    def table(self, name: str) -> pa.Table:
        """One of them."""


def records(trace: Tables, name: str) -> list[Record]:
    """A table's rows, with the names of enum codes, and rank 0 where a trace tells none."""
    records = trace.table(name).to_pylist()
    enums = [field.name for field in TABLES[name] if field.metadata]
    names = {column: enum_names(name, column) for column in enums}
    for record in records:
        record["rank"] = record.get("rank") or 0
        for column in enums:
            record[column] = None if record[column] is None else names[column][record[column]]
    return list(records)


def device_ns(forward: Record) -> int:
    """How long the device ran it."""
    return int(max(0, forward["end_ns"] - forward["start_ns"]))


def begins_ns(forward: Record) -> int | None:
    """When it starts on the device, or as far as the host tells."""
    times = (forward[name] for name in ("start_ns", "launch_start_ns", "plan_end_ns", "plan_start_ns"))
    return next((time for time in times if time is not None), None)


def touches(forward: Record, rank: int, start_ns: int, end_ns: int) -> bool:
    """Whether anything of a forward may lie in a span of a rank."""
    times = [forward[name] for name in TIMES if forward[name] is not None]
    return bool(forward["rank"] == rank and times and min(times) <= end_ns and max(times) >= start_ns)


def holds(forward: Record, start: str, end: str, begin: int, stop: int) -> bool:
    """Whether an interval of a forward holds all of a slice."""
    if forward[start] is None or forward[end] is None:
        return False
    return bool(forward[start] <= begin and stop <= forward[end])


def sums_of(rows: Sequence[Record]) -> ForwardSums:
    """The sums of a forward with these rows."""
    chunks = [(row["prefix_len"], row["extend_len"]) for row in rows if row["role"] in CHUNKS]
    decodes = [row["prefix_len"] + row["extend_len"] for row in rows if row["role"] == "DECODE"]
    middle = sum(row["role"] in ("FIRST", "MIDDLE") for row in rows)
    return ForwardSums(
        extend_tokens=sum(n for _, n in chunks),
        decode_tokens=len(decodes),
        rows_with_logits=len(rows) - middle,
        pairs_prefix=sum(n * p for p, n in chunks),
        pairs_causal=sum(n * (n + 1) // 2 for _, n in chunks),
        pairs_decode=sum(decodes),
        prefix_tokens=sum(p for p, _ in chunks),
        kv_tokens=sum(p + n for p, n in chunks) + sum(decodes),
    )
