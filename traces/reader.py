"""Reads traces: sealed ones by range, growing ones batch by batch."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from traces.errors import TraceError
from traces.growing import GrowingTable
from traces.layout import ranks_in, stream_label
from traces.meta import META_NAME, read_meta
from traces.ownership import may_have_writer
from traces.ranges import has_forward_ids, has_times, ids_within, times_within
from traces.schema import TABLES
from traces.seal import seal_if_abandoned
from traces.seal_index import read_index
from traces.sealed import SealedTable
from traces.stream import StreamSealedError

__all__ = ["Trace", "open_trace"]


def open_trace(path: Path) -> "Trace":
    """The trace in directory `path`. A trace whose writer died is sealed first where that can be done.

    TraceError, in one line, if there is none, it is corrupt, or a newer chunkscope wrote it.
    """
    path = Path(path)
    try:
        is_directory = path.is_dir()
        exists = is_directory or path.exists()
        has_meta = is_directory and (path / META_NAME).exists()
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}: the trace cannot be read") from error
    if not exists:
        raise TraceError(f"{path}: no such trace: give a directory NAME.chunkscope")
    if not is_directory:
        raise TraceError(f"{path}: a file, not a trace: give a directory NAME.chunkscope")
    if not has_meta:
        raise TraceError(f"{path}: holds no {META_NAME}: not a chunkscope trace")
    return Trace(path)


class Trace:
    """A recorded run: `meta`, and tables as Arrow tables with exactly the columns of `traces.schema`.

    Tables of several ranks follow one another. Every batch is checked when it is read: each method may raise
    TraceError, naming file and batch. Not for use by several threads at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.meta: dict[str, Any] = {}
        self.ranks: tuple[int, ...] = ()
        self._parts: dict[tuple[int, str], SealedTable | GrowingTable] = {}
        self._tables: dict[str, pa.Table] = {}
        self._read_meta()
        if not self.sealed and self._sealed_now():
            self._read_meta()
        if self.sealed:
            self._open_sealed()
        else:
            self._follow()

    @property
    def sealed(self) -> bool:
        """Whether the trace is complete and indexed."""
        return "sealed" in self.meta

    @property
    def live(self) -> bool:
        """Whether a process may still be writing."""
        return not self.sealed and may_have_writer(self.path, self.meta)

    @property
    def torn_bytes(self) -> int:
        """Bytes after the last whole batch of each stream: lost if the writer is gone, else on their way."""
        if self.sealed:
            return int(self.meta["sealed"]["torn_bytes"])
        return sum(part.unread_bytes for part in self._parts.values() if isinstance(part, GrowingTable))

    def table(self, name: str) -> pa.Table:
        """The whole table. Of each request only the last version, in order of rid."""
        table = self._tables.get(name)
        if table is None:
            batches = [batch for part in self._parts_of(name) for batch in _whole(name, part)]
            table = self._tables[name] = pa.Table.from_batches(batches, schema=TABLES[name])
        return table

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of the whole table, piece by piece; nothing of them is kept."""
        table = self._tables.get(name)
        if table is not None:
            yield from table.select(columns).to_batches()
            return
        for part in self._parts_of(name):
            for batch in _whole(name, part, columns):
                yield batch.select(columns)

    def read_forwards(self, name: str, first_id: int, last_id: int) -> pa.Table:
        """Rows of a table whose forward id is in [first_id, last_id]; reads a sealed trace by its index."""
        if not has_forward_ids(name):
            raise TraceError(f"{name} has no forward ids: read the whole table")
        batches = [
            batch.filter(pa.array(ids_within(batch, first_id, last_id)))
            for part in self._parts_of(name)
            for batch in part.batches_of_forwards(first_id, last_id)
        ]
        return pa.Table.from_batches(batches, schema=TABLES[name])

    def read_range(self, name: str, start_ns: int, end_ns: int) -> pa.Table:
        """Rows of a table whose time overlaps [start_ns, end_ns); see `traces.ranges` for a row's time."""
        if name in TABLES and not has_times(name):
            return self._read_by_forward_time(name, start_ns, end_ns)
        batches = [
            batch.filter(pa.array(times_within(name, batch, start_ns, end_ns)))
            for part in self._parts_of(name)
            for batch in (
                _whole(name, part) if name == "requests" else part.batches_of_times(start_ns, end_ns)
            )
        ]
        return pa.Table.from_batches(batches, schema=TABLES[name])

    def poll(self) -> bool:
        """Read what has been written since the last call; whether there was any, or the trace was sealed."""
        if self.sealed:
            return False
        self._read_meta()
        if self.sealed:
            self._open_sealed()
            return True
        return self._follow()

    def _parts_of(self, name: str) -> list[SealedTable | GrowingTable]:
        if name not in TABLES:
            raise TraceError(f"no table {name!r}: give one of {', '.join(TABLES)}")
        return [self._parts[rank, name] for rank in self.ranks if (rank, name) in self._parts]

    def _read_by_forward_time(self, name: str, start_ns: int, end_ns: int) -> pa.Table:
        forwards = self.read_range("forwards", start_ns, end_ns).column("forward_id").drop_null()
        if not len(forwards):
            return TABLES[name].empty_table()
        ids = forwards.to_numpy()
        found = self.read_forwards(name, int(ids.min()), int(ids.max()))
        return found.filter(pa.array(np.isin(found.column("forward_id").to_numpy(), ids)))

    def _sealed_now(self) -> bool:
        """Seal the trace if its writer is gone; whether that was done."""
        try:
            return seal_if_abandoned(self.path, self.meta)
        except StreamSealedError as error:
            raise TraceError(f"{error}: corrupt trace: sealed, but meta.json does not say so") from error

    def _read_meta(self) -> None:
        self.meta = read_meta(self.path)

    def _open_sealed(self) -> None:
        seal = self.meta["sealed"]
        if not isinstance(seal, dict) or not isinstance(seal.get("torn_bytes"), int):
            raise TraceError(f'{self.path / META_NAME}: "sealed" is not as sealing writes it')
        index = read_index(self.path, str(seal.get("index_crc32")))
        self.ranks = index.ranks
        self._parts = {(entry.rank, entry.table): SealedTable(self.path, entry) for entry in index.files}
        self._tables.clear()

    def _follow(self) -> bool:
        try:
            return self._extend_streams()
        except StreamSealedError as error:
            self._read_meta()
            if not self.sealed:
                raise TraceError(f"{error}: corrupt trace: sealed, but meta.json does not say so") from error
            self._open_sealed()
            return True

    def _extend_streams(self) -> bool:
        grown = False
        try:
            self.ranks = tuple(ranks_in(self.path))
        except OSError as error:
            raise TraceError(f"{self.path}: {error.strerror}: the trace cannot be read") from error
        for rank in self.ranks:
            for name in TABLES:
                part = self._parts.get((rank, name))
                if part is None:
                    part = self._parts[rank, name] = GrowingTable(self.path / stream_label(rank, name), name)
                assert isinstance(part, GrowingTable)
                if part.extend():
                    self._tables.pop(name, None)
                    grown = True
        return grown


def _whole(
    name: str, part: SealedTable | GrowingTable, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The batches of a part, of requests only the last versions; `columns` at least, where they are named."""
    if name != "requests":
        return part.all_batches()
    kept = list(dict.fromkeys(("rid", *(TABLES[name].names if columns is None else columns))))
    kept = [column for column in TABLES[name].names if column in kept]
    schema = pa.schema([TABLES[name].field(column) for column in kept])
    versions = pa.Table.from_batches((batch.select(kept) for batch in part.all_batches()), schema=schema)
    return iter(versions.take(pa.array(_last_versions(versions))).to_batches())


def _last_versions(versions: pa.Table) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Index of the last row of each rid, in order of rid; rows without a rid are all kept, at the end."""
    rids = versions.column("rid").fill_null(0).to_numpy()
    known = versions.column("rid").is_valid().to_numpy()
    latest_first = np.flatnonzero(known)[::-1]
    _, first_seen = np.unique(rids[latest_first], return_index=True)
    return np.concatenate([latest_first[first_seen], np.flatnonzero(~known)])
