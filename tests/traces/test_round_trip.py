import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.trace_samples import expected_table, filled_table
from traces.reader import open_trace
from traces.schema import TABLES
from traces.writer import TraceWriter


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Any value of a column's type, extremes included."""
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_floating(kind):
        return st.floats(allow_nan=False)
    if pa.types.is_string(kind):
        return st.text()
    if pa.types.is_list(kind):
        return st.lists(st.integers(0, 2**64 - 1), max_size=3)
    low = 0 if pa.types.is_unsigned_integer(kind) else -(2 ** (kind.bit_width - 1))
    high = low + 2**kind.bit_width - 1
    return st.integers(low, high) | st.sampled_from([low, high])


def batches(table: str) -> st.SearchStrategy[list[pa.Table]]:
    """Some appended batches, each with some columns in any mix of values and nulls, and the others null."""
    return st.lists(st.integers(1, 4).flatmap(lambda rows: batch(table, rows)), max_size=3)


def batch(table: str, rows: int) -> st.SearchStrategy[pa.Table]:
    fields = st.lists(st.sampled_from(list(TABLES[table])), max_size=5, unique_by=lambda field: field.name)
    given = fields.flatmap(
        lambda fields: st.fixed_dictionaries(
            {f.name: st.lists(st.none() | values(f.type), min_size=rows, max_size=rows) for f in fields}
        )
    )
    return given.map(lambda columns: filled_table(table, rows, columns))


@pytest.mark.parametrize("table", TABLES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_rows_come_back_growing_and_sealed(table: str, data: st.DataObject) -> None:
    parts = data.draw(batches(table))
    as_lists = data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as directory:
        with TraceWriter(Path(directory, "t.chunkscope"), {}) as writer:
            for part in parts:
                columns = (
                    part.to_pydict() if as_lists else dict(zip(part.column_names, part.columns, strict=True))
                )
                writer.append(table, columns, part.num_rows)
            growing = open_trace(writer.path).table(table)
        sealed = open_trace(writer.path).table(table)
    expected = expected_table(table, parts)
    assert growing.equals(expected)
    key = {"events": "t_ns"}.get(table, "forward_id")
    assert sealed.equals(expected if table == "requests" else expected.sort_by(key))
    assert sealed.schema.equals(TABLES[table], check_metadata=True)
