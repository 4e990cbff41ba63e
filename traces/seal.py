"""Sealing: a trace's streams become compressed, indexed Arrow files, in forward order.

Each sealed table is written beside its stream, then the index, then meta.json, which names the index: that is
the moment of sealing. Last, each sealed file takes its stream's place. A process killed anywhere leaves a
readable trace: before that moment the streams, after it the sealed files by either name.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from traces.crc import checksum
from traces.decode import Projection
from traces.framing import FrameEncoder
from traces.layout import SEALING_SUFFIX, rank_directory, ranks_in, stream_label
from traces.meta import META_NAME, read_meta, sync_directory, write_document
from traces.ownership import DirectoryLock, written_on_this_boot
from traces.ranges import bounds
from traces.schema import TABLES
from traces.seal_index import BatchEntry, FileEntry, SealIndex, write_index
from traces.stream import StreamReader

__all__ = ["SEALED_BATCH_ROWS", "seal_held", "seal_if_abandoned"]

SEALED_BATCH_ROWS = 65_536
_ORDER = {  # requests stay as appended: a request's last version counts
    "forwards": "forward_id",
    "rows": "forward_id",
    "kernels": "forward_id",
    "events": "t_ns",
    "pages": "forward_id",
}


def seal_held(trace: Path, meta: Mapping[str, Any], *, clean_end: bool) -> None:
    """Seal a trace whose directory lock the caller holds, and put `meta` into force.

    TraceError if a stream is corrupt; OSError as the system gives it. Either way nothing has changed.
    """
    ranks = ranks_in(trace)
    written: list[Path] = []
    try:
        files, torn_bytes = _seal_streams(trace, ranks, written)
        index = SealIndex(tuple(ranks), tuple(files))
        seal = {"index_crc32": write_index(trace, index), "clean_end": clean_end, "torn_bytes": torn_bytes}
        write_document(trace / META_NAME, {**meta, "sealed": seal}, durable=True)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    for path in written:
        with suppress(OSError):  # readers find it by either name, and try again
            path.replace(path.with_suffix(""))


def seal_if_abandoned(trace: Path, meta: Mapping[str, Any]) -> bool:
    """Seal a trace whose writer is known to be gone; False if it may live or the directory is read-only.

    TraceError if a stream is corrupt.
    """
    if not written_on_this_boot(meta) or not os.access(trace, os.W_OK | os.X_OK):
        return False
    try:
        lock = DirectoryLock(trace)
    except OSError:
        return False
    try:
        if not lock.held:
            return False
        meta = read_meta(trace)  # another reader may have been quicker
        if "sealed" not in meta:
            seal_held(trace, meta, clean_end=False)
    except OSError:
        return False
    finally:
        lock.release()
    return True


def _seal_streams(trace: Path, ranks: Iterable[int], written: list[Path]) -> tuple[list[FileEntry], int]:
    files, torn_bytes = [], 0
    for rank in ranks:
        for table in TABLES:
            path = trace / stream_label(rank, table)
            if not path.exists():
                continue
            source = _Source(path, table)
            torn_bytes += source.torn_bytes
            if source.schema is not None:
                written.append(path.with_name(path.name + SEALING_SUFFIX))
                files.append(_write_sealed(written[-1], rank, table, source))
        sync_directory(rank_directory(trace, rank))
    return files, torn_bytes


class _Source:
    """A stream's batches in forward order; read once beforehand to learn whether they already are."""

    def __init__(self, path: Path, table: str) -> None:
        self._path = path
        self._key = _ORDER.get(table)
        reader = StreamReader(path)
        self._in_order = _in_order(table, self._key, reader)
        self.schema = reader.schema
        self.torn_bytes = reader.unread_bytes

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of the sealed size; only an unordered stream is held in memory as a whole."""
        stream = StreamReader(self._path).read()
        if self._in_order:
            return _resized(stream)
        whole = pa.Table.from_batches(stream).sort_by([(self._key, "ascending")])
        return _resized(whole.to_batches())


def _in_order(table: str, key: str | None, reader: StreamReader) -> bool:
    """Whether the key, null last, never falls from row to row; reads all batches either way."""
    in_order, nulls_seen, last = True, False, None
    for batch in reader.read():
        projected = Projection(table, batch.schema, reader.path).apply(batch)
        if key is None:
            continue
        column = projected.column(key)
        keys = column.drop_null().to_numpy()
        if len(keys):
            nulls_last = column[: len(keys)].null_count == 0
            rising = (last is None or keys[0] >= last) and bool((keys[1:] >= keys[:-1]).all())
            in_order = in_order and not nulls_seen and nulls_last and rising
            last = keys[-1]
        nulls_seen = nulls_seen or column.null_count > 0
    return in_order


def _resized(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= SEALED_BATCH_ROWS:
            whole = pa.Table.from_batches(held).combine_chunks()
            full = rows - rows % SEALED_BATCH_ROWS
            yield from whole.slice(0, full).to_batches(SEALED_BATCH_ROWS)
            held, rows = whole.slice(full).to_batches(), rows - full
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def _write_sealed(path: Path, rank: int, table: str, source: _Source) -> FileEntry:
    encoder = FrameEncoder(source.schema, "file", compression="lz4")
    projection = Projection(table, source.schema, path)
    entries = []
    with path.open("wb") as file:
        file.write(encoder.head)
        for batch in source.batches():
            frame, data = encoder.encode(batch)
            file.write(data)
            ids, times_ns = bounds(table, projection.apply(batch))
            entries.append(BatchEntry(frame.at, frame.size, frame.rows, frame.crc32, ids, times_ns))
        tail = encoder.finish()
        file.write(tail)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    head_crc32, tail_crc32 = checksum(encoder.head), checksum(tail)
    return FileEntry(rank, table, size, len(encoder.head), head_crc32, tail_crc32, tuple(entries))
