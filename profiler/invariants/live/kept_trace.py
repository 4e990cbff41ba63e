"""A recording that is kept in memory: what a recorder writes, readable like a trace."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from traces.columns import build_batch
from traces.schema import TABLES

__all__ = ["KeptTrace"]


class KeptTrace:
    """The writer of a `Recorder` and, at any time, the trace of what it has written.

    Args:
        meta: content of meta.json, to which the recorder adds.
    """

    torn_bytes = 0

    def __init__(self, meta: Mapping[str, Any]) -> None:
        self.meta: dict[str, Any] = dict(meta)
        self._batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in TABLES}

    def append(self, table: str, columns: Mapping[str, Any], num_rows: int) -> None:
        """Keep rows; TraceError, naming table and column, for values that do not fit."""
        self._batches[table].append(build_batch(table, columns, num_rows))

    def update_meta(self, updates: Mapping[str, Any]) -> None:
        """Replace top-level entries of the meta."""
        self.meta |= updates

    def close(self, meta_updates: Mapping[str, Any], *, clean_end: bool) -> None:
        """Note how the recording ended."""
        self.update_meta({**meta_updates, "sealed": {"clean_end": clean_end}})

    def table(self, name: str) -> pa.Table:
        """A table with the full schema; of `requests` the last version of each, by rid."""
        whole = pa.Table.from_batches(self._batches[name], TABLES[name])
        if name != "requests":
            return whole
        latest = {rid: at for at, rid in enumerate(whole.column("rid").to_pylist())}
        return whole.take(pa.array([latest[rid] for rid in sorted(latest)], pa.int64()))
