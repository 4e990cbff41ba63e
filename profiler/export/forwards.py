"""Forwards as spans of their rank, with what was planned, computed and charged as arguments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from engine.batch import ForwardMode, Role, StopReason
from profiler.export.counters import KV_PAGES, counters_of
from profiler.roofline import roofline_points
from profiler.tables import frame, request_names
from profiler.timeline.timeline import Timeline
from profiler.wording import count
from traces.drawing import Item, Slice, Track
from traces.reader import Trace

__all__ = ["EVERY", "Forwards", "extent_text"]

EVERY = 1 << 40  # columns: more than anything has items, so that nothing is reduced

_BLOCK = 4096  # forwards read at once
_ON_TOP = 0
_PLAIN = (
    *("num_extend_seqs", "num_decode_seqs", "extend_tokens", "decode_tokens", "prefix_tokens", "kv_tokens"),
    *("mixed_deducted_tokens", "running_reqs", "absent_decode_reqs", "waiting_reqs", "pending_tokens"),
    *("evicted_pages", "retracted_reqs", "memory_allocated_bytes", "memory_peak_bytes"),
)
_BUDGETS = ("chunk", "input", "current", "total")


@dataclass(frozen=True, slots=True)
class _Block:
    """A few forwards as a trace of their own."""

    tables: Mapping[str, pa.Table]
    meta: Mapping[str, Any]
    torn_bytes: int = 0

    def table(self, name: str) -> pa.Table:
        """One of the tables."""
        return self.tables[name]


class Forwards:
    """The forwards of a range. `items` draws them; what requests need of them is known after that."""

    def __init__(self, timeline: Timeline, start_ns: int, end_ns: int) -> None:
        strip = timeline.strip(start_ns, end_ns, EVERY)
        self.strip = strip
        self.rank = np.zeros(len(strip.forward_id), dtype=np.int64)
        self.last_result_ns = start_ns
        self._trace: Trace = timeline.trace
        self._names = request_names(timeline.trace)
        self._by_id = np.argsort(strip.forward_id)
        self._extents: dict[tuple[int, int], tuple[int, int]] = {}

    def position(self, forward_id: int) -> int | None:
        """Where a forward stands in the strip; None if it is not in the range."""
        ids = self.strip.forward_id
        at = int(np.searchsorted(ids, forward_id, sorter=self._by_id))
        if at == len(ids) or ids[self._by_id[at]] != forward_id:
            return None
        return int(self._by_id[at])

    def interval(self, position: int) -> tuple[int, int]:
        """Start and end of a forward as it is drawn."""
        return int(self.strip.start_ns[position]), int(self.strip.end_ns[position])

    def extent(self, forward_id: int, rid: int) -> tuple[int, int] | None:
        """[prefix_len, extend_end) of the chunk of a prompt that a forward of the range computed."""
        return self._extents.get((forward_id, rid))

    def items(self) -> Iterator[Item]:
        """A span for each, in time order, and the values of its rank's counters from then on."""
        for first in range(0, len(self.rank), _BLOCK):
            yield from self._items_of(np.arange(first, min(first + _BLOCK, len(self.rank))))

    def _items_of(self, positions: "np.ndarray[Any, np.dtype[np.int64]]") -> Iterator[Item]:
        ids = self.strip.forward_id[positions]
        block = self._read(int(ids.min()), int(ids.max()))
        known = {row["forward_id"]: row for row in frame(block, "forwards").iter_rows(named=True)}
        costs = {row["forward_id"]: row for row in roofline_points(block).iter_rows(named=True)}
        prompts = self._prompts(frame(block, "rows").filter(pl.col("forward_id").is_in(ids.tolist())))
        for position, forward_id in zip(positions.tolist(), ids.tolist(), strict=True):
            row = known[forward_id]
            rank = self.rank[position] = row["rank"] or 0
            start_ns, end_ns = self.interval(position)
            self.last_result_ns = max(self.last_result_ns, row["result_end_ns"] or start_ns)
            args = self._args(row, costs[forward_id], prompts.get(forward_id, []))
            yield Slice(Track(rank, _ON_TOP, "forwards"), _name(row), start_ns, end_ns, args)
            yield from counters_of(row, rank, start_ns)

    def _read(self, first_id: int, last_id: int) -> _Block:
        tables = {name: self._trace.read_forwards(name, first_id, last_id) for name in ("forwards", "rows")}
        return _Block(tables, self._trace.meta)

    def _prompts(self, rows: pl.DataFrame) -> dict[int, list[str]]:
        """Whose prompts each forward computed, and which part of them; each part is kept."""
        texts: dict[int, list[str]] = {}
        extend = rows.filter(pl.col("role") != Role.DECODE.value).select(
            "forward_id", "rid", "prefix_len", end=pl.col("prefix_len") + pl.col("extend_len")
        )
        for forward_id, rid, prefix, end in extend.drop_nulls().iter_rows():
            self._extents[forward_id, rid] = prefix, end
            texts.setdefault(forward_id, []).append(f"{self._name(rid)} {extent_text(prefix, end)}")
        return texts

    def _name(self, rid: int | None) -> str | None:
        return None if rid is None else self._names.get(rid, str(rid))

    def _args(self, row: Mapping[str, Any], costs: Mapping[str, Any], prompts: list[str]) -> dict[str, Any]:
        reason = row["stop_reason"]
        on_device = row["start_ns"] is not None and row["end_ns"] is not None
        return _known(
            {
                "forward_id": row["forward_id"],
                "mode": costs["mode"],
                **{name: row[name] for name in _PLAIN},
                "prompts": prompts or None,
                "flops": costs["flops"],
                "bytes": costs["bytes"],
                "flop_per_byte": costs["intensity"],
                "stop_reason": None if reason is None else StopReason(reason).name,
                "blocked": self._name(row["blocked_rid"]),
                "half_done": self._name(row["chunked_rid"]),
                "inflight_middle_chunks": row["inflight_middle_chunks"],
                "budgets_tokens": _known({name: _budget(row, name) for name in _BUDGETS}),
                "kv_pages": _known({kind: row[column] for kind, column in KV_PAGES.items()}),
                "drawn": None if on_device else "over the host's interval: the device's is unknown",
            }
        )


def extent_text(prefix: int, end: int) -> str:
    """A part of a prompt: [2,048, 4,096)."""
    return f"[{count(prefix)}, {count(end)})"


def _name(row: Mapping[str, Any]) -> str:
    """Mode and tokens: EXTEND 2,048, MIXED 250 + 6, DECODE 6."""
    mode = None if row["mode"] is None else ForwardMode(row["mode"])
    name = "forward" if mode is None else mode.name
    extend, decode = row["extend_tokens"], row["decode_tokens"]
    if extend is None or decode is None:
        return name
    if mode is ForwardMode.MIXED:
        return f"{name} {count(extend)} + {count(decode)}"
    return f"{name} {count(extend + decode)}"


def _budget(row: Mapping[str, Any], name: str) -> dict[str, int] | None:
    return _known({edge: row[f"{name}_budget_{edge}_tokens"] for edge in ("start", "end")}) or None


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is unknown, and without groups of nothing."""
    return {key: value for key, value in values.items() if value is not None and value != {}}
