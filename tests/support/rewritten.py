"""Copies of a recorded trace with something changed: tables left out, requests renamed."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow as pa

from traces.reader import open_trace
from traces.schema import TABLES
from traces.writer import TraceWriter

OWN = ("sealed", "writer", "crc32", "schema_version")  # of meta.json, written anew


def rewrite(
    source: Path, target: Path, *, without: Collection[str] = (), names: Mapping[str, str] | None = None
) -> Path:
    """The trace at `source` again, as `target`; of tables left out, meta.json says that they are missing."""
    trace = open_trace(source)
    meta = {key: value for key, value in trace.meta.items() if key not in OWN}
    columns = dict(meta.get("columns", {}))
    for table in without:
        columns[table] = dict.fromkeys(TABLES[table].names, "missing")
    writer = TraceWriter(target, {**meta, "columns": columns})
    for table in TABLES:
        if table not in without:
            content = trace.table(table)
            if table == "requests" and names:
                content = _renamed(content, names)
            parts = {column: content.column(column).combine_chunks() for column in content.column_names}
            writer.append(table, parts, content.num_rows)
    writer.close()
    return target


def _renamed(requests: pa.Table, names: Mapping[str, str]) -> pa.Table:
    at = requests.schema.get_field_index("name")
    renamed = [names.get(name, name) for name in requests.column("name").to_pylist()]
    return requests.set_column(at, requests.schema.field(at), pa.array(renamed, pa.string()))
