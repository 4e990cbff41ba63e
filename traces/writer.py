"""Writes a trace while a run goes on; readers may follow, a killed process loses at most its last call."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from traces.columns import build_batch
from traces.errors import TraceError
from traces.layout import SUFFIX, rank_directory, stream_label
from traces.meta import META_NAME, as_json, check_meta, write_document
from traces.ownership import DirectoryLock, this_process
from traces.schema import SCHEMA_VERSION, TABLES
from traces.seal import seal_held
from traces.stream import StreamAppender

__all__ = ["TraceWriter"]


class TraceWriter:
    """A new trace directory, written by one thread.

    Args:
        path: `NAME.chunkscope`, which must not exist, in a directory that does.
        meta: content of meta.json; the version, the writer's process, the seal and the checksum are added.
        rank: the rank whose forwards this process records; fills the column `rank` where that is absent.

    Raises TraceError, in one line, for a path that exists or cannot be written, and for content that does not
    fit. Nothing that exists is ever overwritten.
    """

    def __init__(self, path: Path, meta: Mapping[str, Any], rank: int = 0) -> None:
        self.path = Path(path)
        self._rank = rank
        self._streams: dict[str, StreamAppender] = {}
        self._closed = False
        self._meta = self._checked({**meta, "schema_version": SCHEMA_VERSION, "writer": this_process()})
        _create(self.path)
        try:
            self._lock = DirectoryLock(self.path)  # before meta.json: whoever finds a trace finds it locked
            rank_directory(self.path, rank).mkdir()
            write_document(self.path / META_NAME, self._meta)
        except OSError as error:
            shutil.rmtree(self.path, ignore_errors=True)
            raise TraceError(f"{self.path}: cannot be written: {error.strerror}") from error

    def append(self, table: str, columns: Mapping[str, Any], num_rows: int) -> None:
        """Write rows as one checksummed batch and hand it to the operating system.

        A column is a numpy array (a masked array's mask is null), an Arrow array, a list or a scalar, which
        repeats; absent columns are null. TraceError if it does not fit the table or cannot be written.
        """
        self._check_open()
        if table not in TABLES:
            raise TraceError(f"no table {table!r}: give one of {', '.join(TABLES)}")
        if num_rows == 0:
            return
        if "rank" not in columns:
            columns = {**columns, "rank": self._rank}
        batch = build_batch(table, columns, num_rows)
        try:
            stream = self._streams.get(table)
            if stream is None:
                file = self.path / stream_label(self._rank, table)
                stream = self._streams[table] = StreamAppender(file, TABLES[table])
            stream.append(batch)
        except OSError as error:
            raise TraceError(f"{self.path}: cannot write {table}: {error.strerror}") from error

    def update_meta(self, updates: Mapping[str, Any]) -> None:
        """Replace top-level fields of meta.json, at once for every reader."""
        self._check_open()
        self._meta = self._checked({**self._meta, **updates})
        try:
            write_document(self.path / META_NAME, self._meta)
        except OSError as error:
            raise TraceError(f"{self.path}: cannot write {META_NAME}: {error.strerror}") from error

    def close(self, meta_updates: Mapping[str, Any] | None = None, *, clean_end: bool = True) -> None:
        """Seal the trace, by default as that of a run that ended cleanly. Does nothing when already closed.

        TraceError if the trace cannot be sealed; it is then complete and readable as it is.
        """
        self._seal(meta_updates or {}, clean_end=clean_end)

    def __enter__(self) -> "TraceWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._seal({}, clean_end=error is None)

    def _seal(self, meta_updates: Mapping[str, Any], *, clean_end: bool) -> None:
        if self._closed:
            return
        try:
            self.update_meta(meta_updates)
            self._close_streams()
            seal_held(self.path, self._meta, clean_end=clean_end)
        except OSError as error:
            raise TraceError(
                f"{self.path}: cannot be sealed: {error.strerror}; what was recorded is readable"
            ) from error
        finally:
            self._close_streams()
            self._lock.release()
            self._closed = True

    def _close_streams(self) -> None:
        while self._streams:
            self._streams.popitem()[1].close()

    def _check_open(self) -> None:
        if self._closed:
            raise TraceError(f"{self.path}: already closed")

    def _checked(self, meta: Mapping[str, Any]) -> dict[str, Any]:
        content = as_json(self.path / META_NAME, meta)
        content.pop("crc32", None)
        content.pop("sealed", None)
        check_meta(self.path / META_NAME, content)
        return content


def _create(path: Path) -> None:
    if path.suffix != SUFFIX:
        raise TraceError(f"{path}: a trace's name ends in {SUFFIX}: give {path.name or 'NAME'}{SUFFIX}")
    try:
        path.mkdir()
    except FileExistsError:
        raise TraceError(f"{path}: already exists: give another name, or remove it first") from None
    except FileNotFoundError:
        raise TraceError(f"{path}: there is no directory {path.parent}: make it first") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte
        reason = getattr(error, "strerror", None) or error
        raise TraceError(f"{path}: cannot be written: {reason}: give another place") from None
