"""Cells, rows and tables of a recorded trace spoilt at random, as no engine and no thoughtful test would."""

from random import Random
from typing import Any

import pyarrow as pa

from tests.support.corrupt_traces import Corruptible
from traces.schema import TABLES

__all__ = ["corrupt_at_random"]

TEXTS = ("", "for request 1", "for request 99999999999999999999", "[b]bold[/b]")


def corrupt_at_random(trace: Corruptible, rng: Random) -> None:
    """Spoil one place or many, in place; lists of hashes, which no rule reads, stay."""
    for _ in range(rng.choice([1, 1, 3, 20])):
        name = rng.choice([name for name, rows in trace.tables.items() if rows])
        rows = trace.tables[name]
        row = rng.choice(rows)
        match rng.choices(["lose", "repeat", "shuffle", "clear", "write"], [10, 10, 5, 2, 73])[0]:
            case "lose":
                rows.remove(row)
            case "repeat":
                rows.append(dict(row))
            case "shuffle":
                rng.shuffle(rows)
            case "clear":
                rows.clear()
            case _:
                column = rng.choice([column for column in row if column != "prefix_hashes"])
                row[column] = _any_value(TABLES[name].field(column).type, rng)


def _any_value(kind: pa.DataType, rng: Random) -> Any:
    if rng.random() < 0.3:
        return None
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_string(kind):
        return rng.choice(TEXTS)
    if pa.types.is_floating(kind):
        return rng.choice([0.0, float("nan"), 1e300])
    signed = pa.types.is_signed_integer(kind)
    least, most = (-(2 ** (kind.bit_width - 1)) if signed else 0), 2 ** (kind.bit_width - signed) - 1
    return rng.choice([0, 1, least, most, rng.randrange(100)])
