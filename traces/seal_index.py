"""The seal index: for each sealed file its checksums, and for each batch where it lies and what it covers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from traces.errors import TraceError
from traces.layout import INDEX_NAME
from traces.meta import read_document, take_checksum, write_document

__all__ = ["BatchEntry", "FileEntry", "SealIndex", "read_index", "write_index"]


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """One batch: offset and size in bytes, rows, checksum, least and greatest forward id and time."""

    at: int
    size: int
    rows: int
    crc32: int
    ids: tuple[int, int] | None
    times_ns: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One sealed file: whole size, size and checksum before the first batch, checksum after the last."""

    rank: int
    table: str
    size: int
    head_size: int
    head_crc32: int
    tail_crc32: int
    batches: tuple[BatchEntry, ...]

    @property
    def tail_at(self) -> int:
        """Offset of the first byte after the last batch."""
        return self.batches[-1].at + self.batches[-1].size if self.batches else self.head_size


@dataclass(frozen=True, slots=True)
class SealIndex:
    """All sealed files of a trace, and the ranks that recorded."""

    ranks: tuple[int, ...]
    files: tuple[FileEntry, ...]


def write_index(trace: Path, index: SealIndex) -> str:
    """Write the index durably; returns its checksum. OSError as the system gives it."""
    return write_document(trace / INDEX_NAME, asdict(index), durable=True)


def read_index(trace: Path, crc32: str) -> SealIndex:
    """The index whose checksum meta.json names; TraceError if it is another or damaged."""
    path = trace / INDEX_NAME
    content = read_document(path)
    if take_checksum(path, content) != crc32:
        raise TraceError(f"{path}: corrupt trace: not the index that meta.json names")
    try:
        return SealIndex(tuple(content["ranks"]), tuple(_file(entry) for entry in content["files"]))
    except (KeyError, TypeError) as error:
        raise TraceError(f"{path}: corrupt trace: not a seal index") from error


def _file(entry: Mapping[str, Any]) -> FileEntry:
    return FileEntry(**{**entry, "batches": tuple(_batch(batch) for batch in entry["batches"])})


def _batch(entry: Mapping[str, Any]) -> BatchEntry:
    ids, times = entry["ids"], entry["times_ns"]
    return BatchEntry(**{**entry, "ids": ids and tuple(ids), "times_ns": times and tuple(times)})
