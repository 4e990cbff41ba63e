"""Columns as a recorder has them (numpy arrays, lists, scalars) to a record batch of a table."""

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from traces.errors import TraceError

__all__ = ["build_batch"]


def build_batch(table: str, schema: pa.Schema, columns: Mapping[str, Any], num_rows: int) -> pa.RecordBatch:
    """A batch of `num_rows` rows: an absent column is null, a scalar repeats, a masked array's mask is null.

    Numbers are converted where every value fits. TraceError, naming table and column, for an unknown column,
    a column of another length, or values that do not fit its type.
    """
    arrays = []
    used = 0
    for field in schema:
        value = columns.get(field.name)
        used += field.name in columns
        try:
            column = _column(value, field.type, num_rows)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise TraceError(f"{table}.{field.name}: not {field.type}: {error}") from error
        if len(column) != num_rows:
            raise TraceError(f"{table}.{field.name}: {len(column)} values for {num_rows} rows")
        arrays.append(column)
    if used != len(columns):
        unknown = next(name for name in columns if name not in schema.names)
        raise TraceError(f"{table} has no column {unknown!r}")
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(value: Any, kind: pa.DataType, num_rows: int) -> pa.Array:
    if value is None:
        return pa.nulls(num_rows, kind)
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(value, kind)
    if isinstance(value, array):
        value = np.asarray(value)
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        return pa.repeat(_array([value], kind)[0], num_rows)
    return _array(value, kind)


def _from_arrow(value: "pa.Array | pa.ChunkedArray", kind: pa.DataType) -> pa.Array:
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    return value if value.type == kind else value.cast(kind)


def _array(value: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(value, np.ndarray):
        value = _with_sign_of(kind, value)
    elif pa.types.is_integer(kind):
        return pa.array(value).cast(kind)  # of a list, Arrow would cut fractions off without a word
    try:
        return pa.array(value, type=kind)
    except UnicodeEncodeError:  # a JSON string may hold half a surrogate pair, UTF-8 may not
        return pa.array([_encodable(text) for text in value], type=kind)


def _with_sign_of(kind: pa.DataType, value: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """The same bytes as `kind` if only the sign differs and every value fits: quicker than Arrow's cast."""
    target = np.dtype(kind.to_pandas_dtype())
    source = value.dtype
    if {target.kind, source.kind} != {"i", "u"} or target.itemsize != source.itemsize or not value.size:
        return value
    fits = value.min() >= 0 if target.kind == "u" else value.max() <= np.iinfo(target).max
    return value.view(target) if fits else value


def _encodable(text: Any) -> Any:
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text
