"""Columns as a recorder has them (numpy arrays, lists, scalars) to a record batch of a table."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from traces.errors import TraceError
from traces.schema import TABLES

__all__ = ["build_batch"]


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    kind: pa.DataType
    integer: "np.dtype[Any] | None"  # an integer column's type in numpy


def build_batch(table: str, columns: Mapping[str, Any], num_rows: int) -> pa.RecordBatch:
    """A batch of `num_rows` rows: an absent column is null, a scalar repeats, a masked array's mask is null.

    Numbers are converted where every value fits. TraceError, naming table and column, for an unknown column,
    a column of another length, or values that do not fit its type.
    """
    arrays = []
    used = 0
    for field in _fields(table):
        value = columns.get(field.name)
        used += field.name in columns
        try:
            column = _column(value, field, num_rows)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise TraceError(f"{table}.{field.name}: not {field.kind}: {error}") from error
        if len(column) != num_rows:
            raise TraceError(f"{table}.{field.name}: {len(column)} values for {num_rows} rows")
        arrays.append(column)
    if used != len(columns):
        unknown = next(name for name in columns if name not in TABLES[table].names)
        raise TraceError(f"{table} has no column {unknown!r}")
    return pa.RecordBatch.from_arrays(arrays, schema=TABLES[table])


@cache
def _fields(table: str) -> tuple[_Field, ...]:
    return tuple(
        _Field(field.name, field.type, np.dtype(str(field.type)) if pa.types.is_integer(field.type) else None)
        for field in TABLES[table]
    )


def _column(value: Any, field: _Field, num_rows: int) -> pa.Array:
    if value is None:
        return pa.nulls(num_rows, field.kind)
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(value, field.kind)
    if isinstance(value, array):
        value = np.asarray(value)
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        return pa.repeat(_array([value], field)[0], num_rows)
    return _array(value, field)


def _from_arrow(value: "pa.Array | pa.ChunkedArray", kind: pa.DataType) -> pa.Array:
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    return value if value.type == kind else value.cast(kind)


def _array(value: Any, field: _Field) -> pa.Array:
    if isinstance(value, np.ndarray):
        if field.integer is not None and value.dtype != field.integer:
            value = _with_sign_of(field.integer, value)
    elif field.integer is not None and _holds_float(value):
        return pa.array(value).cast(field.kind)  # else Arrow would cut fractions off without a word
    try:
        return pa.array(value, type=field.kind)
    except UnicodeEncodeError:  # a JSON string may hold half a surrogate pair, UTF-8 may not
        return pa.array([_encodable(text) for text in value], type=field.kind)


def _holds_float(values: Iterable[Any]) -> bool:
    return any(issubclass(kind, (float, np.floating)) for kind in set(map(type, values)))


def _with_sign_of(target: "np.dtype[Any]", value: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """The same bytes as `target` if only the sign differs and every value fits: quicker than Arrow's cast."""
    source = value.dtype
    if {target.kind, source.kind} != {"i", "u"} or target.itemsize != source.itemsize or not value.size:
        return value
    fits = value.min() >= 0 if target.kind == "u" else value.max() <= np.iinfo(target).max
    return value.view(target) if fits else value


def _encodable(text: Any) -> Any:
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text
