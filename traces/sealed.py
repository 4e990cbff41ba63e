"""One sealed table of one rank: memory-mapped, its batches read and checked one by one."""

import mmap
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from traces.crc import checksum
from traces.decode import Projection, decode_batch, decode_schema
from traces.errors import TraceError
from traces.framing import FILE_MAGIC, DamagedFrame, check_frame
from traces.layout import SEALING_SUFFIX, stream_label
from traces.seal_index import FileEntry

__all__ = ["SealedTable"]

_CACHED_BATCHES = 8


class SealedTable:
    """Batches of a sealed file, in the table's schema.

    Raises TraceError, naming file and batch, wherever bytes are not as sealed: around the batches when it is
    made, in a batch when that is read.
    """

    def __init__(self, trace: Path, entry: FileEntry) -> None:
        self._entries = entry.batches
        self._path = trace / stream_label(entry.rank, entry.table)
        self._map = _map(self._path, entry.size)
        self._data = memoryview(self._map)
        self._cache: OrderedDict[int, pa.RecordBatch] = OrderedDict()
        head, tail = self._data[: entry.head_size], self._data[entry.tail_at :]
        if checksum(head) != entry.head_crc32 or checksum(tail) != entry.tail_crc32:
            raise TraceError(f"{self._path}: corrupt trace: checksum mismatch before or after the batches")
        try:
            self._schema = decode_schema(pa.py_buffer(head[len(FILE_MAGIC) :]))
        except DamagedFrame as error:
            raise TraceError(f"{self._path}: corrupt trace: {error}") from error
        self._projection = Projection(entry.table, self._schema, self._path)

    def all_batches(self) -> Iterator[pa.RecordBatch]:
        """All batches, in forward order."""
        for number in range(len(self._entries)):
            yield self._read(number)
            self._let_go(number)

    def batches_of_forwards(self, first_id: int, last_id: int) -> Iterator[pa.RecordBatch]:
        """Batches that hold any forward id in [first_id, last_id], by the index."""
        for number, entry in enumerate(self._entries):
            if entry.ids is not None and entry.ids[0] <= last_id and entry.ids[1] >= first_id:
                yield self._read(number)

    def batches_of_times(self, start_ns: int, end_ns: int) -> Iterator[pa.RecordBatch]:
        """Batches whose time touches [start_ns, end_ns), by the index."""
        for number, entry in enumerate(self._entries):
            times = entry.times_ns
            if times is not None and times[0] < end_ns and times[1] >= start_ns:
                yield self._read(number)

    def _read(self, number: int) -> pa.RecordBatch:
        """One batch; the last few read are kept."""
        batch = self._cache.get(number)
        if batch is None:
            batch = self._cache[number] = self._projection.apply(self._decode(number))
            if len(self._cache) > _CACHED_BATCHES:
                self._cache.popitem(last=False)
        self._cache.move_to_end(number)
        return batch

    def _let_go(self, number: int) -> None:
        """Take the file's pages of a batch out of memory: they are read again if they are asked for again."""
        entry = self._entries[number]
        if hasattr(mmap, "MADV_DONTNEED"):
            begin = entry.at // mmap.PAGESIZE * mmap.PAGESIZE
            self._map.madvise(mmap.MADV_DONTNEED, begin, entry.at + entry.size - begin)

    def _decode(self, number: int) -> pa.RecordBatch:
        entry = self._entries[number]
        data = self._data[entry.at : entry.at + entry.size]
        try:
            frame = check_frame(data, entry.at)
            if frame.crc32 != entry.crc32:
                raise DamagedFrame("not the batch that the index names")
            return decode_batch(pa.py_buffer(data), self._schema, frame)
        except DamagedFrame as error:
            raise TraceError(f"{self._path}: corrupt trace: batch {number}: {error}") from error


def _map(path: Path, size: int) -> mmap.mmap:
    """The file's bytes, under the name that sealing gave it last; TraceError if it is not `size` bytes."""
    sealing = path.with_name(path.name + SEALING_SUFFIX)
    with suppress(OSError):
        sealing.replace(path)
    for name in (sealing, path):
        if name.exists() and not name.is_file():
            raise TraceError(f"{path}: corrupt trace: no ordinary file")
        try:
            with name.open("rb", buffering=0) as file:
                found = os.fstat(file.fileno()).st_size
                if found != size:
                    raise TraceError(f"{path}: corrupt trace: {found} bytes instead of {size}")
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror}: the trace cannot be read") from error
    raise TraceError(f"{path}: corrupt trace: the file is missing")
