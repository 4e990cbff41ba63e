"""Small random traces, and what they must read back as."""

import random
import shutil
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from traces.reader import Trace
from traces.schema import TABLES, enum_names
from traces.writer import TraceWriter

Batches = Mapping[str, list[pa.Table]]

META = {
    "provenance": "measured",
    "columns": {"forwards": {"start_ns": "measured"}},
    "seed": 7,
    "name": "naïve ☃",
}


def random_batches(seed: int, *, batches: int = 3, rows: int = 40) -> dict[str, list[pa.Table]]:
    """For each table, what is appended call by call; forward ids and times never fall."""
    rng = random.Random(seed)
    return {
        table: [_random_table(table, number * rows, rows, rng) for number in range(batches)]
        for table in TABLES
    }


def write_batches(writer: TraceWriter, batches: Batches) -> None:
    """Append every batch, table after table."""
    for table, parts in batches.items():
        for part in parts:
            writer.append(table, dict(zip(part.column_names, part.columns, strict=True)), part.num_rows)


def sealed_trace(path: Path, batches: Batches) -> Path:
    """A sealed trace of these batches."""
    with TraceWriter(path, META) as writer:
        write_batches(writer, batches)
    return path


def abandoned_trace(path: Path, batches: Batches) -> Path:
    """A trace whose writer ended without sealing: the copy of a live one, which nobody has locked."""
    with TraceWriter(path.with_name(f"live-{path.name}"), META) as writer:
        write_batches(writer, batches)
        shutil.copytree(writer.path, path)
    shutil.rmtree(writer.path)
    return path


def expected_table(table: str, parts: list[pa.Table]) -> pa.Table:
    """What the reader shows of these batches: for requests the last version of each rid, by rid."""
    whole = pa.concat_tables([TABLES[table].empty_table(), *parts])
    if table != "requests":
        return whole
    latest = {rid: index for index, rid in enumerate(whole.column("rid").to_pylist()) if rid is not None}
    unknown = [index for index, rid in enumerate(whole.column("rid").to_pylist()) if rid is None]
    return whole.take(pa.array([latest[rid] for rid in sorted(latest)] + unknown, pa.int64()))


def filled_table(table: str, rows: int, columns: Mapping[str, list[Any]]) -> pa.Table:
    """A table of these columns, all others null."""
    arrays = [pa.array(columns.get(field.name, [None] * rows), field.type) for field in TABLES[table]]
    return pa.Table.from_arrays(arrays, schema=TABLES[table])


def assert_tables(trace: Trace, batches: Batches) -> None:
    """Every table of the trace holds exactly these batches."""
    for table in TABLES:
        assert trace.table(table).equals(expected_table(table, batches.get(table, []))), table


def _random_table(table: str, first: int, rows: int, rng: random.Random) -> pa.Table:
    columns = []
    for field in TABLES[table]:
        if field.name in ("forward_id", "t_ns"):
            values: list[Any] = [first + row for row in range(rows)]
        elif field.name == "rid" and table == "requests":
            values = [rng.randrange(rows) for _ in range(rows)]
        else:
            values = [None if rng.random() < 0.2 else _random_value(table, field, rng) for _ in range(rows)]
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=TABLES[table])


def _random_value(table: str, field: pa.Field, rng: random.Random) -> Any:
    kind = field.type
    if field.metadata:
        return rng.randrange(len(enum_names(table, field.name)))
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_floating(kind):
        return rng.random()
    if pa.types.is_string(kind):
        return "".join(rng.choices(string.printable + "é☃\0", k=rng.randrange(12)))
    if pa.types.is_list(kind):
        return [rng.randrange(2**64) for _ in range(rng.randrange(4))]
    bits = kind.bit_width
    return rng.randrange(2**bits) - (0 if pa.types.is_unsigned_integer(kind) else 2 ** (bits - 1))
