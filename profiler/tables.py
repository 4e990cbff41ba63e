"""What every analysis reads: a trace's tables as polars frames, and nothing of where they are stored."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from traces.schema import TABLES

__all__ = ["TraceLike", "column_batches", "frame", "integers", "request_names"]


class TraceLike(Protocol):
    """The part of `traces.reader.Trace` that analyses need."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """The content of `meta.json`."""
        ...

    @property
    def torn_bytes(self) -> int:
        """Unreadable bytes after the last whole batch of an unsealed trace."""
        ...

    def table(self, name: str) -> pa.Table:
        """A table with the full schema; what the trace lacks is null."""
        ...


@runtime_checkable
class _Batched(Protocol):
    """A trace that can be read without keeping it, as `traces.reader.Trace`."""

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]: ...


def frame(trace: TraceLike, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The table `name` as a polars frame; enums stay the integers of `engine.batch` and `engine.observer`.

    With `columns` only those are read, and the trace keeps none of it.
    """
    if columns is None:
        table = pl.from_arrow(trace.table(name))
    else:
        schema = pa.schema([TABLES[name].field(column) for column in columns])
        table = pl.from_arrow(pa.Table.from_batches(column_batches(trace, name, columns), schema=schema))
    assert isinstance(table, pl.DataFrame)
    return table


def column_batches(trace: TraceLike, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a table piece by piece; of a `Trace` nothing is kept."""
    if isinstance(trace, _Batched):
        return trace.batches(name, columns)
    return iter(trace.table(name).select(columns).to_batches())


def integers(table: pa.Table, name: str, unknown: int, kind: type[np.integer[Any]]) -> NDArray[Any]:
    """A column of whole numbers as one numpy array of a type that holds them; null becomes `unknown`."""
    column = table.column(name)
    if not column.null_count:
        known: NDArray[Any] = column.to_numpy().astype(kind, copy=False)
        return known
    parts = [chunk.cast(pa.int64()).fill_null(unknown).to_numpy().astype(kind) for chunk in column.chunks]
    return np.concatenate(parts)


def request_names(trace: TraceLike) -> dict[int, str]:
    """The user's name of each rid; the rid itself where the trace has no name."""
    requests = frame(trace, "requests", ["rid", "name"])
    return {
        rid: str(rid) if name is None else name
        for rid, name in zip(requests["rid"], requests["name"], strict=True)
    }
