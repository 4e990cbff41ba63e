"""Record batches as checksummed frames: what a trace's Arrow files consist of.

A frame is one encapsulated Arrow IPC message. Its custom metadata holds, under the key "chunkscope", a tag of
fixed width: the frame's offset in the file, its size, its rows, the CRC-32 of the file's head (all before the
first frame: the schema) and the CRC-32 of the whole frame, taken with these last eight digits as zeros. It
covers schema, row count and every buffer, and is checked on the raw bytes: Arrow never parses a damaged
message. To every other tool the files are ordinary Arrow IPC streams and files.
"""

import re
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from traces.crc import checksum

__all__ = [
    "FILE_MAGIC",
    "HEADER_BYTES",
    "DamagedFrame",
    "Frame",
    "FrameEncoder",
    "check_frame",
    "frame_in_tail",
    "metadata_bytes",
    "read_tag",
]

FILE_MAGIC = b"ARROW1\0\0"
HEADER_BYTES = 8  # continuation marker and metadata length, before each message's metadata
_CONTINUATION = b"\xff\xff\xff\xff"
_MAX_METADATA_BYTES = 1 << 24
_BUFFER_BYTES = 1 << 18  # Arrow writes each column's buffer by itself; a call into Python for each is slow
_TAG_KEY = "chunkscope"
_TAG = re.compile(rb"at=(\d{15}) bytes=(\d{15}) rows=(\d{10}) head=([0-9a-f]{8}) crc32=([0-9a-f]{8})")
_NO_CRC = b"00000000"


class DamagedFrame(Exception):
    """Bytes that are no frame, or a frame whose checksum does not match."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a frame's tag says: offset and size in bytes, rows, checksums of the file's head and the frame."""

    at: int
    size: int
    rows: int
    head_crc32: int
    crc32: int


class FrameEncoder:
    """Turns record batches of one schema into the bytes of an Arrow IPC stream or file, frame by frame.

    `head` is what comes before the first frame.
    """

    def __init__(
        self, schema: pa.Schema, kind: Literal["stream", "file"], compression: str | None = None
    ) -> None:
        self._sink = _Sink()
        self._buffer = pa.BufferedOutputStream(pa.PythonFile(self._sink, mode="w"), _BUFFER_BYTES)
        new_writer = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        options = pa.ipc.IpcWriteOptions(compression=compression)
        self._writer = new_writer(self._buffer, schema, options=options)
        self.head = (b"" if kind == "stream" else FILE_MAGIC) + schema.serialize().to_pybytes()
        self._head_crc32 = checksum(self.head)
        self._begun = False

    def encode(self, batch: pa.RecordBatch) -> tuple[Frame, bytearray]:
        """The batch's frame; the caller writes it right after the one before."""
        at, rows = self._sink.position if self._begun else len(self.head), batch.num_rows
        tag = f"at={at:015d} bytes={0:015d} rows={rows:010d} head={self._head_crc32:08x} crc32="
        self._writer.write_batch(batch, custom_metadata={_TAG_KEY: tag + _NO_CRC.decode()})
        data = self._take()
        match = _TAG.search(data)
        assert match is not None
        size_at, crc_at = match.start(2), match.start(5)
        data[size_at : size_at + 15] = b"%015d" % len(data)
        crc32 = checksum(data)
        data[crc_at : crc_at + 8] = b"%08x" % crc32
        return Frame(at, len(data), rows, self._head_crc32, crc32), data

    def finish(self) -> bytearray:
        """What follows the last frame: the end mark, and in a file the footer."""
        self._writer.close()
        return self._take()

    def _take(self) -> bytearray:
        """What Arrow has written since, without the head, which it writes before the first batch."""
        self._buffer.flush()
        data = self._sink.take()
        if not self._begun:
            assert data.startswith(self.head)
            del data[: len(self.head)]
            self._begun = True
        return data


class _Sink:
    """The file object that Arrow writes to; holds what has not been taken yet."""

    closed = False

    def __init__(self) -> None:
        self.position = 0
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(data)
        self.position += len(data)
        return len(data)

    def take(self) -> bytearray:
        parts, self._parts = self._parts, []
        return bytearray(parts[0]) if len(parts) == 1 else bytearray().join(parts)

    def tell(self) -> int:
        return self.position

    def flush(self) -> None:
        """All is taken by hand."""

    def close(self) -> None:
        """Arrow closes its sink; the bytes stay to be taken."""


def metadata_bytes(header: bytes) -> int:
    """Length in bytes of the message metadata that follows a header; DamagedFrame if this is none."""
    size = int.from_bytes(header[4:HEADER_BYTES], "little")
    if header[:4] != _CONTINUATION or not 0 < size <= _MAX_METADATA_BYTES:
        raise DamagedFrame("no message header")
    return size


def read_tag(message_start: "bytes | memoryview") -> Frame:
    """The tag in a message's metadata, unchecked; DamagedFrame unless there is exactly one."""
    matches = list(_TAG.finditer(message_start))
    if len(matches) != 1:
        raise DamagedFrame("no frame tag")
    return _frame(matches[0])


def check_frame(data: "bytes | memoryview", at: int) -> Frame:
    """The frame that `data` is, at offset `at` of its file; DamagedFrame if any byte is not as written."""
    metadata = metadata_bytes(bytes(data[:HEADER_BYTES]))
    match = _TAG.search(data, HEADER_BYTES, HEADER_BYTES + metadata)
    if match is None:
        raise DamagedFrame("no frame tag")
    frame = _frame(match)
    crc_at = match.start(5)
    crc32 = checksum(data[:crc_at])
    crc32 = checksum(_NO_CRC, crc32)
    crc32 = checksum(data[crc_at + 8 :], crc32)
    if crc32 != frame.crc32 or frame.at != at or frame.size != len(data):
        raise DamagedFrame("checksum mismatch")
    return frame


def frame_in_tail(tail: bytes, at: int) -> bool:
    """Whether a whole frame lies anywhere in `tail`, the file's bytes from offset `at` to its end."""
    for match in _TAG.finditer(tail):
        frame = _frame(match)
        start = frame.at - at
        if 0 <= start < match.start() and start + frame.size <= len(tail):
            try:
                check_frame(memoryview(tail)[start : start + frame.size], frame.at)
            except DamagedFrame:
                continue
            return True
    return False


def _frame(match: "re.Match[bytes]") -> Frame:
    at, size, rows, head, crc32 = match.groups()
    return Frame(int(at), int(size), int(rows), int(head, 16), int(crc32, 16))
