"""One table of one rank while its stream grows: the whole batches so far, in memory."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from traces.decode import Projection
from traces.errors import TraceError
from traces.stream import StreamReader

__all__ = ["GrowingTable"]


class GrowingTable:
    """Batches of a stream in the table's schema; `extend` reads what has been appended since."""

    def __init__(self, path: Path, table: str) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._table = table
        self._stream = StreamReader(path)
        self._projection: Projection | None = None

    @property
    def unread_bytes(self) -> int:
        """Bytes after the last whole batch."""
        return self._stream.unread_bytes

    def extend(self) -> bool:
        """Read new whole batches; whether there were any. TraceError and StreamSealedError as the stream."""
        known = len(self._batches)
        try:
            with suppress(FileNotFoundError):  # not begun
                for batch in self._stream.read():
                    if self._projection is None:
                        self._projection = Projection(self._table, batch.schema, self._stream.path)
                    self._batches.append(self._projection.apply(batch))
        except OSError as error:
            raise TraceError(f"{self._stream.path}: {error.strerror}: the trace cannot be read") from error
        return len(self._batches) > known

    def all_batches(self) -> Iterator[pa.RecordBatch]:
        """All batches, as appended."""
        return iter(self._batches)

    def batches_of_forwards(self, first_id: int, last_id: int) -> Iterator[pa.RecordBatch]:
        """Batches that may hold these forwards: all of them, as a stream has no index."""
        return iter(self._batches)

    def batches_of_times(self, start_ns: int, end_ns: int) -> Iterator[pa.RecordBatch]:
        """Batches that may hold these times: all of them, as a stream has no index."""
        return iter(self._batches)
