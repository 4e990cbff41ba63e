"""`Recorder`: writes down what an engine does, while it does it, at little cost to the engine.

It keeps references and a few numbers as things happen, and turns them into columns a flush at a time. It
knows no analysis and no storage format: columns go to a `TraceWriter`.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from engine.clock import Clock
from engine.observer import Event, ForwardRecord, PoolState
from engine.request import Request
from engine.shapes import ModelShape
from profiler.column_states import TOLD_BY_SOME, column_states
from profiler.page_owners import Extents, PageOwners
from profiler.prefix_hashes import prefix_hashes
from profiler.record_columns import (
    Columns,
    Costing,
    RequestVersion,
    RowBlock,
    event_columns,
    forward_columns,
    request_columns,
    request_version,
)

__all__ = ["Recorder", "Writer"]

FLUSH_NS = 250_000_000
FLUSH_ROWS = 4096
KEYFRAME_FORWARDS = 1024
ANCHOR_NS = 60_000_000_000


class Writer(Protocol):
    """The part of `traces.writer.TraceWriter` that a recorder needs."""

    def append(self, table: str, columns: Mapping[str, Any], num_rows: int) -> None:
        """Write rows at once; an absent column is null, a single value stands for every row."""
        ...

    def update_meta(self, updates: Mapping[str, Any]) -> None:
        """Replace top-level entries of `meta.json`."""
        ...

    def close(self, meta_updates: Mapping[str, Any]) -> None:
        """Seal the trace."""
        ...


class Recorder:
    """An `EngineObserver` that fills a trace; `close` it when the run has ended.

    What was told is written after a forward when 250 ms of the run's time have passed or 4,096 rows wait. A
    TraceError of the writer (a full disk, say) goes through to whoever steps the engine.

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
        self._writer = writer
        self._costing = Costing(shape, element_bytes) if shape else None
        self._clock = clock
        self._rank = rank
        self._simulated = simulated
        self._record_pages = record_pages
        self._owners: PageOwners | None = None  # known with the first forward, which tells the pool's size
        self._forwards_seen = 0
        self._records: list[ForwardRecord] = []
        self._rows_waiting = 0
        self._events: list[Event] = []
        self._versions: list[RequestVersion] = []
        self._hashes: dict[int, Any] = {}  # of requests that have not ended, by rid
        self._told: set[tuple[str, str]] = set()
        self._flushed_ns = self._anchored_ns = clock.now_ns()
        self._anchors = [self._now()]
        self._closed = False
        writer.update_meta({"clock_anchors": self._anchors, "columns": self._states()})

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
            self._flush_if_due(events[-1].t_ns)

    def on_forward(self, record: ForwardRecord) -> None:
        """Note a forward; flushes when it is time."""
        self._records.append(record)
        self._rows_waiting += record.batch.num_rows
        if self._record_pages:
            self._note_pages(record)
        self._flush_if_due(record.result_end_ns)

    def close(self, pool: PoolState | None = None) -> None:
        """Write what waits and seal the trace; `pool`, as the run left it, goes to meta. Once is enough."""
        if self._closed:
            return
        self._closed = True
        self._flush()
        self._anchors.append(self._now())
        self._writer.close(
            {
                "clock_anchors": self._anchors,
                "columns": self._states(),
                "pool_at_end": asdict(pool) if pool else None,
            }
        )

    def _flush_if_due(self, t_ns: int) -> None:
        if self._rows_waiting >= FLUSH_ROWS or t_ns - self._flushed_ns >= FLUSH_NS:
            self._flush()
            self._flushed_ns = t_ns
            if t_ns - self._anchored_ns >= ANCHOR_NS:
                self._anchored_ns = t_ns
                self._anchors.append(self._now())
                self._writer.update_meta({"clock_anchors": self._anchors})

    def _flush(self) -> None:
        """Rows go before their forwards, they before the requests they change: no claim is ever unmet."""
        records, self._records, self._rows_waiting = self._records, [], 0
        events, self._events = self._events, []
        versions, self._versions = self._versions, []
        if records:
            block = RowBlock(records)
            rows = block.columns()
            self._writer.append("rows", rows, len(rows["forward_id"]))
            extents = self._owners.take() if self._owners else None
            if extents is not None:
                self._writer.append("pages", _page_columns(extents), len(extents.first_page))
            forwards = forward_columns(records, block.sums(), self._costing)
            self._writer.append("forwards", forwards, len(records))
            self._note_told(rows=rows, forwards=forwards)
        if events:
            self._writer.append("events", event_columns(events), len(events))
        if versions:
            self._writer.append("requests", request_columns(versions), len(versions))

    def _note_pages(self, record: ForwardRecord) -> None:
        if self._owners is None:
            self._owners = PageOwners(record.plan.pool.total)
        keyframe = self._forwards_seen % KEYFRAME_FORWARDS == 0
        if keyframe or record.page_changes:
            self._owners.note(record.batch.forward_id, record.page_changes, keyframe=keyframe)
        self._forwards_seen += 1

    def _note_told(self, **tables: Columns) -> None:
        """Say in meta, once, that a column which may be unknown is told in this run."""
        new = {
            (table, name)
            for table, names in TOLD_BY_SOME.items()
            for name in names
            if (table, name) not in self._told and _any_known(tables[table][name])
        }
        if new:
            self._told |= new
            self._writer.update_meta({"columns": self._states()})

    def _states(self) -> dict[str, dict[str, str]]:
        return column_states(
            self._told, costs=self._costing is not None, pages=self._record_pages, simulated=self._simulated
        )

    def _now(self) -> dict[str, int]:
        """One moment on the run's clock, the host's monotonic clock and the wall clock."""
        return {
            "rank": self._rank,
            "run_ns": self._clock.now_ns(),
            "monotonic_ns": time.monotonic_ns(),
            "wall_ns": time.time_ns(),
        }


def _page_columns(extents: Extents) -> Columns:
    return {
        **extents._asdict(),
        "rid": pa.array(extents.rid.astype(np.uint32), mask=extents.rid < 0),
        "node": pa.array(extents.node.astype(np.uint32), mask=extents.node < 0),
    }


def _any_known(values: Any) -> bool:
    return values is not None
