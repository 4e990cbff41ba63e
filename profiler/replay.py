"""The scheduler's state at a cursor, as the trace tells it: who runs, waits, is half-done, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from engine.batch import ForwardMode, Outcome, Role, StopReason
from profiler.forward_table import UNKNOWN_TIME, ForwardTable
from profiler.request_rows import RequestRows
from profiler.scheduler_state import (
    Budget,
    ExtendRow,
    ForwardState,
    HalfDone,
    KvPages,
    RequestState,
    SchedulerState,
)
from profiler.tables import TraceLike
from profiler.timeline.lifecycle import Lifecycle, Phase
from profiler.timeline.requests import Requests

__all__ = ["Replay"]

Ints = NDArray[np.int64]

_RECORDED = (
    "stop_reason",
    "blocked",
    "kv",
    "inflight_middle_chunks",
    "running_reqs",
    "waiting_reqs",
    "pending_tokens",
)
_BUDGETS = ("chunk", "input", "current", "total")
_FLOPS = ("flops_linear", "flops_attention_extend", "flops_attention_decode", "flops_head")


class RangedTrace(TraceLike, Protocol):
    """A trace that can be read by forward."""

    def read_forwards(self, name: str, first_id: int, last_id: int) -> pa.Table:
        """Rows of a table whose forward id lies in the range, both ends included."""
        ...


@dataclass(frozen=True, slots=True)
class Replay:
    """Answers `at` for any time of one trace."""

    trace: RangedTrace
    forwards: ForwardTable
    rows: RequestRows
    requests: Requests
    lifecycle: Lifecycle
    origin_ns: int

    def at(self, t_ns: int) -> SchedulerState:
        """The state at a time: who is there, and what was recorded of the forward shown.

        That is the one on the device, or where none is the one planned last by then.
        """
        planned = self._planned_by(t_ns)
        runs = self._on_device(t_ns, planned)
        shown = planned if runs is None else runs
        running = self._states(Phase.DECODING, t_ns, shown, planned)
        waiting = self._states(Phase.WAITING, t_ns, shown, planned)
        if planned < 0:
            unknown: dict[str, Any] = dict.fromkeys(_RECORDED)
            return SchedulerState(
                t_ns, None, running, waiting, half_done=None, budgets=(), **unknown, origin_ns=self.origin_ns
            )
        record, rows = self._record(shown), self._rows(shown)
        blocked = record["blocked_rid"]
        return SchedulerState(
            t_ns=t_ns,
            planned=self._forward(record if planned == shown else self._record(planned), planned),
            running=running,
            waiting=waiting,
            half_done=self._half_done(record, rows, shown),
            budgets=_budgets(record),
            stop_reason=None if record["stop_reason"] is None else StopReason(record["stop_reason"]).name,
            blocked=None if blocked is None else self.requests.name(blocked),
            kv=_kv_pages(record),
            inflight_middle_chunks=record["inflight_middle_chunks"],
            running_reqs=record["running_reqs"],
            waiting_reqs=record["waiting_reqs"],
            pending_tokens=record["pending_tokens"],
            origin_ns=self.origin_ns,
            on_device=None if runs is None else self._forward(record, runs),
            extend_rows=self._extend_rows(rows),
        )

    def _planned_by(self, t_ns: int) -> int:
        """Position of the forward planned last by then, -1 for none. Those of several ranks are unordered."""
        by_then = np.flatnonzero(self.forwards.plan_end_ns <= t_ns)
        if not len(by_then):
            return -1
        latest_first = self.forwards.plan_end_ns[by_then][::-1]
        return int(by_then[len(by_then) - 1 - int(latest_first.argmax())])

    def _on_device(self, t_ns: int, planned: int) -> int | None:
        """Position of the forward that runs at a time on the rank of the one planned last."""
        if planned < 0:
            return None
        forwards = self.forwards
        runs = (forwards.start_ns <= t_ns) & (t_ns < forwards.end_ns)
        at = np.flatnonzero(runs & (forwards.rank == forwards.rank[planned]))
        return int(at[-1]) if len(at) else None

    def _record(self, position: int) -> dict[str, Any]:
        forward_id = int(self.forwards.forward_id[position])
        found = pl.from_arrow(self.trace.read_forwards("forwards", forward_id, forward_id))
        assert isinstance(found, pl.DataFrame)
        return found.row(0, named=True)

    def _rows(self, position: int) -> pl.DataFrame:
        forward_id = int(self.forwards.forward_id[position])
        found = pl.from_arrow(self.trace.read_forwards("rows", forward_id, forward_id))
        assert isinstance(found, pl.DataFrame)
        return found

    def _extend_rows(self, rows: pl.DataFrame) -> tuple[ExtendRow, ...]:
        extends = rows.filter(pl.col("rid").is_not_null() & (pl.col("role") != Role.DECODE.value))
        ends = pl.col("prefix_len") + pl.col("extend_len")
        return tuple(
            ExtendRow(rid, self.requests.name(rid), Role(role).name, prefix_len, extend_end)
            for rid, role, prefix_len, extend_end in extends.select(
                "rid", "role", "prefix_len", ends.alias("extend_end")
            ).iter_rows()
        )

    def _forward(self, record: Mapping[str, Any], position: int) -> ForwardState:
        flops = [record[name] for name in _FLOPS]
        return ForwardState(
            forward_id=record["forward_id"],
            mode=None if record["mode"] is None else ForwardMode(record["mode"]).name,
            start_ns=int(self.forwards.start_ns[position]),
            end_ns=int(self.forwards.end_ns[position]),
            extend_tokens=record["extend_tokens"],
            decode_tokens=record["decode_tokens"],
            num_extend_seqs=record["num_extend_seqs"],
            num_decode_seqs=record["num_decode_seqs"],
            flops=None if None in flops else sum(flops),
            evicted_pages=record["evicted_pages"],
            retracted_reqs=record["retracted_reqs"],
        )

    def _half_done(self, record: Mapping[str, Any], rows: pl.DataFrame, position: int) -> HalfDone | None:
        rid = record["chunked_rid"]
        if rid is None:
            return None
        mine = self.rows.of(rid)
        upto = int(np.searchsorted(self.rows.forward[mine], position, side="right"))
        if not upto:
            return None
        at = mine.start + upto - 1
        number, of = self.rows.chunk_number(rid, position)
        prefix_len = int(self.rows.prefix_len[at])
        return HalfDone(
            rid=rid,
            name=self.requests.name(rid),
            prefix_len=prefix_len,
            extend_end=prefix_len + int(self.rows.extend_len[at]),
            prompt_tokens=self.requests.prompt_tokens(rid),
            number=number,
            of=of,
            inflight_middle_chunks=_in_flight(rid, record, rows),
        )

    def _states(self, phase: Phase, t_ns: int, shown: int, planned: int) -> tuple[RequestState, ...]:
        return tuple(
            self._request(int(at), t_ns, shown, planned, waits=phase is Phase.WAITING)
            for at in self.lifecycle.at(phase, t_ns)
        )

    def _request(self, at: int, t_ns: int, shown: int, planned: int, *, waits: bool) -> RequestState:
        rid = int(self.lifecycle.rid[at])
        mine = self.rows.of(rid)
        forward = self.rows.forward[mine].astype(np.int64)
        results = self.forwards.result_end_ns[forward]
        given = (self.rows.token_index[mine] >= 0) & (results <= t_ns) & (results != UNKNOWN_TIME)
        return RequestState(
            rid=rid,
            name=self.requests.name(rid),
            prompt_tokens=self.requests.prompt_tokens(rid),
            output_tokens=int(given.sum()),
            waited_ns=t_ns - int(self.lifecycle.since_ns[at]) if waits else None,
            in_forward=bool((forward == shown).any()),
            ending=not waits and self._ends(at, mine, forward, planned),
        )

    def _ends(self, at: int, mine: slice, forward: Ints, planned: int) -> bool:
        """Whether the token of its last row, in a forward before the one planned last, ends this decoding."""
        if not len(forward) or forward[-1] >= planned:
            return False
        emitted = self.rows.outcome[mine][-1] == Outcome.EMITTED.value
        return bool(emitted and self.lifecycle.to_ns[at] <= self.forwards.result_end_ns[forward[-1]])


def _in_flight(rid: int, record: Mapping[str, Any], rows: pl.DataFrame) -> int | None:
    """A request's middle chunks in flight after planning; without a row, what the rows leave over."""
    own: list[int | None] = rows.filter(pl.col("rid") == rid)["inflight_after_plan"].to_list()
    total: int | None = record["inflight_middle_chunks"]
    if own or total is None:
        return own[0] if own else None
    return total - int(rows["inflight_after_plan"].sum())


def _budgets(record: Mapping[str, Any]) -> tuple[Budget, ...]:
    budgets = tuple(
        Budget(name, record[f"{name}_budget_start_tokens"], record[f"{name}_budget_end_tokens"])
        for name in _BUDGETS
    )
    return budgets if any(b.start_tokens is not None for b in budgets) else ()


def _kv_pages(record: Mapping[str, Any]) -> KvPages | None:
    kinds = [record[f"pages_{kind}"] for kind in ("total", "protected", "private", "evictable", "free")]
    return None if all(kind is None for kind in kinds) else KvPages(*kinds)
