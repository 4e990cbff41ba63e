"""`Recorder`: writes down what an engine does, while it does it, at little cost to the engine.

It keeps references and a few numbers as things happen, and turns them into columns a flush at a time. It
knows no analysis and no storage format: columns go to a `TraceWriter`.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.clock import Clock
from engine.observer import Event, ForwardRecord, PoolState
from engine.request import Request
from engine.shapes import ModelShape
from profiler.costing import Costing
from profiler.live_meta import LiveMeta
from profiler.page_owners import Extents, PageOwners
from profiler.prefix_hashes import prefix_hashes
from profiler.record_columns import (
    RequestVersion,
    event_columns,
    forward_columns,
    request_columns,
    request_version,
)
from profiler.row_block import Columns, RowBlock, Sums, concatenated

__all__ = ["Recorder", "Writer"]

FLUSH_NS = 250_000_000
FLUSH_FORWARDS = 4096
FLUSH_ROWS = 16384  # a batch of a quarter of that costs a fifth more a row
KEYFRAME_FORWARDS = 1024


class Writer(Protocol):
    """The part of `traces.writer.TraceWriter` that a recorder needs."""

    def append(self, table: str, columns: Mapping[str, Any], num_rows: int) -> None:
        """Write rows at once; an absent column is null, a single value stands for every row."""
        ...

    def update_meta(self, updates: Mapping[str, Any]) -> None:
        """Replace top-level entries of `meta.json`."""
        ...

    def close(self, meta_updates: Mapping[str, Any], *, clean_end: bool) -> None:
        """Seal the trace."""
        ...


class Recorder:
    """An `EngineObserver` that fills a trace; `close` it when the run has ended.

    What was told is written after a forward when 250 ms of the run's time have passed, rows also when 16,384
    of them wait. A TraceError of the writer (a full disk, say) goes through to whoever steps the engine.

    `shape` None leaves FLOPs and bytes unknown; `element_bytes` is the size of a weight and of a KV element.
    `clock` is the engine's. `simulated` says that times come from a cost model. Without `record_pages` the
    `pages` table stays empty.
    """

    def __init__(
        self,
        writer: Writer,
        shape: ModelShape | None,
        *,
        clock: Clock,
        element_bytes: int = 4,
        rank: int = 0,
        simulated: bool = False,
        record_pages: bool = True,
    ) -> None:
        pa.array(np.zeros(1), mask=np.ones(1, dtype=np.bool_))  # at first use Arrow loads modules for 10 ms
        self._writer = writer
        self._costing = Costing(shape, element_bytes) if shape else None
        self._rank = rank
        self._record_pages = record_pages
        self._owners: PageOwners | None = None  # known with the first forward, which tells the pool's size
        self._forwards_seen = 0
        self._records: list[ForwardRecord] = []  # not yet in `forwards`
        self._rowed = 0  # of these, how many are in `rows`
        self._rows_waiting = 0
        self._sums: list[Sums] = []  # of those in `rows`
        self._events: list[Event] = []
        self._versions: list[RequestVersion] = []
        self._hashes: dict[int, NDArray[np.uint64]] = {}  # of requests that have not ended, by rid
        self._flushed_ns = clock.now_ns()
        self._closed = False
        self._meta = LiveMeta(
            writer.update_meta,
            clock,
            rank=rank,
            costs=shape is not None,
            pages=record_pages,
            simulated=simulated,
        )

    def on_request(self, request: Request) -> None:
        """Note a request as it is now."""
        hashes = self._hashes.get(request.rid)
        if hashes is None:
            hashes = self._hashes[request.rid] = prefix_hashes(request.prompt_token_ids)
        if request.finished:
            del self._hashes[request.rid]
        self._versions.append(request_version(request, hashes))

    def on_events(self, events: list[Event]) -> None:
        """Note decisions."""
        self._events += events
        if events:
            self._write_if_due(events[-1].t_ns)

    def on_forward(self, record: ForwardRecord) -> None:
        """Note a forward, and write what waits if it is time."""
        self._records.append(record)
        self._rows_waiting += record.batch.num_rows
        if self._record_pages:
            self._note_pages(record)
        self._write_if_due(record.result_end_ns)

    def write_kernels(self, columns: Columns, num_rows: int) -> None:
        """Write rows of `kernels` at once: `columns` are all but rank, None where unknown throughout."""
        self._append("kernels", columns, num_rows)
        self._meta.note_told("kernels", {**columns, "rank": self._rank})

    def close(self, pool: PoolState | None = None, *, clean_end: bool = True) -> None:
        """Write what waits and seal the trace; `pool`, as the run left it, goes to meta. Once is enough.

        `clean_end` False says that the run broke off somewhere in the middle of a round.
        """
        if not self._closed:
            self._closed = True
            self._write()
            self._writer.close(self._meta.at_end(pool), clean_end=clean_end)

    def _note_pages(self, record: ForwardRecord) -> None:
        if self._owners is None:
            self._owners = PageOwners(record.plan.pool.total)
        keyframe = self._forwards_seen % KEYFRAME_FORWARDS == 0
        if keyframe or record.page_changes:
            self._owners.note(record.batch.forward_id, record.page_changes, keyframe=keyframe)
        self._forwards_seen += 1

    def _write_if_due(self, t_ns: int) -> None:
        if t_ns - self._flushed_ns >= FLUSH_NS or len(self._records) >= FLUSH_FORWARDS:
            self._write()
            self._flushed_ns = t_ns
            self._meta.tick(t_ns)
        elif self._rows_waiting >= FLUSH_ROWS:
            self._write_rows()

    def _write(self) -> None:
        """Rows go before their forwards, they before the requests they change: no claim is ever unmet."""
        self._write_rows()
        self._write_pages()
        self._write_forwards()
        events, self._events = self._events, []
        if events:
            self._append("events", event_columns(events), len(events))
        versions, self._versions = self._versions, []
        if versions:
            self._append("requests", request_columns(versions), len(versions))

    def _write_rows(self) -> None:
        records = self._records[self._rowed :]
        if records:
            block = RowBlock(records)
            columns = block.columns()
            self._append("rows", columns, self._rows_waiting)
            self._meta.note_told("rows", columns)
            self._sums.append(block.sums())
            self._rowed, self._rows_waiting = len(self._records), 0

    def _write_pages(self) -> None:
        extents = self._owners.take() if self._owners else None
        if extents is not None:
            self._append("pages", _page_columns(extents), len(extents.first_page))

    def _write_forwards(self) -> None:
        records, self._records, self._rowed = self._records, [], 0
        sums, self._sums = self._sums, []
        if records:
            columns = forward_columns(records, concatenated(sums), self._costing)
            self._append("forwards", columns, len(records))
            self._meta.note_told("forwards", columns)

    def _append(self, table: str, columns: Columns, num_rows: int) -> None:
        ranks = np.full(num_rows, self._rank, dtype=np.uint32)
        self._writer.append(table, {**columns, "rank": ranks}, num_rows)


def _page_columns(extents: Extents) -> Columns:
    return {
        **extents._asdict(),
        "rid": pa.array(extents.rid.astype(np.uint32), mask=extents.rid < 0),
        "node": pa.array(extents.node.astype(np.uint32), mask=extents.node < 0),
    }
