"""A trace whose forwards are read once for several who ask for some of their columns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from profiler.tables import TraceLike, column_batches
from traces.schema import TABLES

__all__ = ["ReadOnce"]


class ReadOnce:
    """A `TraceLike` that keeps some columns of `forwards`; all else is the trace's."""

    def __init__(self, trace: TraceLike, columns: Sequence[str]) -> None:
        self._trace = trace
        schema = pa.schema([TABLES["forwards"].field(column) for column in columns])
        batches = column_batches(trace, "forwards", columns)
        self._forwards = pa.Table.from_batches(batches, schema=schema)

    @property
    def meta(self) -> Mapping[str, Any]:
        """The trace's."""
        return self._trace.meta

    @property
    def torn_bytes(self) -> int:
        """The trace's."""
        return self._trace.torn_bytes

    def table(self, name: str) -> pa.Table:
        """The trace's."""
        return self._trace.table(name)

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a table; of `forwards` from what is kept, if it has them all."""
        if name == "forwards" and set(columns) <= set(self._forwards.column_names):
            return iter(self._forwards.select(columns).to_batches())
        return column_batches(self._trace, name, columns)
