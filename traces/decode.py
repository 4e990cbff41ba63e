"""From checked bytes to record batches, and from a file's columns to those of the schema."""

import json
from pathlib import Path

import pyarrow as pa

from traces.errors import TraceError
from traces.framing import DamagedFrame, Frame
from traces.schema import TABLES

__all__ = ["Projection", "decode_batch", "decode_schema"]


def decode_schema(head: pa.Buffer) -> pa.Schema:
    """The schema in a file's head (its checksum holds); DamagedFrame if Arrow cannot read it."""
    try:
        return pa.ipc.read_schema(head)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DamagedFrame(f"unreadable schema: {error}") from error


def decode_batch(data: pa.Buffer, schema: pa.Schema, frame: Frame) -> pa.RecordBatch:
    """The record batch in a checked frame, fully validated; DamagedFrame if Arrow finds fault with it."""
    try:
        batch = pa.ipc.read_record_batch(pa.ipc.read_message(data), schema)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DamagedFrame(f"unreadable batch: {error}") from error
    if batch.num_rows != frame.rows:
        raise DamagedFrame(f"{batch.num_rows} rows instead of {frame.rows}")
    return batch


class Projection:
    """Brings batches of one file to a table's schema: unknown columns dropped, missing ones null.

    Raises TraceError, naming file and column, if a known column has another type or other enum names.
    """

    def __init__(self, table: str, found: pa.Schema, file: Path) -> None:
        self._schema = TABLES[table]
        self._exact = found.equals(self._schema, check_metadata=True)
        self._sources = [_source_column(table, field, found, file) for field in self._schema]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with exactly the table's columns."""
        if self._exact:
            return batch
        columns = [
            pa.nulls(batch.num_rows, field.type) if source is None else batch.column(source)
            for field, source in zip(self._schema, self._sources, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _source_column(table: str, field: pa.Field, found: pa.Schema, file: Path) -> int | None:
    indices = found.get_all_field_indices(field.name)
    if not indices:
        return None
    if len(indices) > 1:
        raise TraceError(f"{file}: column {field.name} appears {len(indices)} times: not a chunkscope trace")
    source = found.field(indices[0])
    if source.type != field.type:
        raise TraceError(
            f"{file}: column {field.name} is {source.type}, not {field.type}: not a chunkscope {table} table"
        )
    ours, theirs = _enum_list(field), _enum_list(source)
    known = min(len(ours), len(theirs))
    if ours[:known] != theirs[:known]:
        raise TraceError(f"{file}: column {field.name} numbers its names differently: not a chunkscope trace")
    return int(indices[0])


def _enum_list(field: pa.Field) -> list[object]:
    try:
        names = json.loads((field.metadata or {}).get(b"enum", b"[]"))
    except ValueError:
        return []
    return names if isinstance(names, list) else []
