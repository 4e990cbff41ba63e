"""A table's stream: appended frame by frame by one process, read while it grows by any other."""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from traces.crc import checksum
from traces.decode import decode_batch, decode_schema
from traces.errors import TraceError
from traces.framing import (
    FILE_MAGIC,
    HEADER_BYTES,
    DamagedFrame,
    Frame,
    FrameEncoder,
    check_frame,
    frame_in_tail,
    metadata_bytes,
    read_tag,
)

__all__ = ["StreamAppender", "StreamReader", "StreamSealedError"]


class StreamSealedError(Exception):
    """A sealed file lies where the stream was: its writer has sealed it meanwhile."""


class StreamAppender:
    """Appends batches to a new stream file; each is with the operating system when `append` returns."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._encoder = FrameEncoder(schema, "stream")
        self._size = 0
        self._failure: OSError | None = None
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def append(self, batch: pa.RecordBatch) -> None:
        """Write one batch. After an OSError the file ends with the batch before, and no more are taken."""
        if self._failure is not None:
            raise self._failure
        frame, data = self._encoder.encode(batch)
        try:
            self._write(data if self._size else bytearray(self._encoder.head) + data)
        except OSError as error:
            self._failure = error
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size = frame.at + frame.size

    def close(self) -> None:
        """Close the file; every batch appended is in it."""
        os.close(self._file)

    def _write(self, data: bytearray) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]


class StreamReader:
    """Reads the whole batches of a stream file, from where the last call ended.

    `unread_bytes` are those after the last whole batch: a torn tail, or a batch being written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.schema: pa.Schema | None = None
        self.unread_bytes = 0
        self._at = 0  # where the next frame starts; 0 until the head has been read
        self._head_crc32 = 0
        self._frames = 0

    def read(self) -> Iterator[pa.RecordBatch]:
        """Batches that have become whole since the last call, in the file's own columns.

        Raises TraceError, naming file and batch, where bytes are not as written, and StreamSealedError.
        """
        if self.path.exists() and not self.path.is_file():  # a pipe would keep us waiting for ever
            raise OSError(errno.EINVAL, "no ordinary file", str(self.path))
        with self.path.open("rb", buffering=0) as file:
            descriptor = file.fileno()
            if os.pread(descriptor, len(FILE_MAGIC), 0) == FILE_MAGIC:
                raise StreamSealedError(str(self.path))
            while (batch := self._next(descriptor)) is not None:
                yield batch
            self.unread_bytes = max(0, _size(descriptor) - self._at)

    def _next(self, file: int) -> pa.RecordBatch | None:
        try:
            start = self._at or _head_size(file)
            data = _whole_frame(file, start)
            if data is None:
                return None
            frame = check_frame(memoryview(data), start)
            batch = decode_batch(pa.py_buffer(data), self.schema or self._read_schema(file, frame), frame)
            if frame.head_crc32 != self._head_crc32:
                raise DamagedFrame("it is of another schema")
        except DamagedFrame as error:
            raise TraceError(f"{self.path}: corrupt trace: batch {self._frames}: {error}") from error
        self._at = start + frame.size
        self._frames += 1
        return batch

    def _read_schema(self, file: int, first: Frame) -> pa.Schema:
        head = os.pread(file, first.at, 0)
        self._head_crc32 = checksum(head)
        if self._head_crc32 != first.head_crc32:
            raise DamagedFrame("checksum mismatch in the schema before it")
        self.schema = decode_schema(pa.py_buffer(head))
        return self.schema


def _head_size(file: int) -> int:
    try:
        return HEADER_BYTES + metadata_bytes(os.pread(file, HEADER_BYTES, 0))
    except DamagedFrame:
        return 0


def _whole_frame(file: int, start: int) -> bytes | None:
    """The bytes of the frame at `start`, unchecked; None if no whole frame follows."""
    left = _size(file) - start
    try:
        metadata = metadata_bytes(os.pread(file, HEADER_BYTES, start))
        size = read_tag(os.pread(file, metadata, start + HEADER_BYTES)).size
    except DamagedFrame:
        size = left + 1
    if size <= left:
        return _read(file, size, start)
    if left > 0 and frame_in_tail(_read(file, left, start), start):
        raise DamagedFrame("unreadable, with whole batches after it")
    return None


def _read(file: int, size: int, start: int) -> bytes:
    """`size` bytes from `start`: one call of the system gives 2 GiB at most."""
    parts = []
    while size > 0 and (part := os.pread(file, size, start)):
        parts.append(part)
        start += len(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _size(file: int) -> int:
    return os.fstat(file).st_size
