"""The scheduler's state at a cursor, as the trace tells it: who runs, waits, is half-done, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from engine.batch import ForwardMode, StopReason
from profiler.forward_table import UNKNOWN_TIME, ForwardTable
from profiler.request_rows import RequestRows
from profiler.tables import TraceLike
from profiler.timeline.lifecycle import Lifecycle, Phase
from profiler.timeline.requests import Requests

__all__ = [
    "Budget",
    "ForwardState",
    "HalfDone",
    "KvPages",
    "Replay",
    "RequestState",
    "SchedulerState",
]

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


@dataclass(frozen=True, slots=True)
class ForwardState:
    """The forward at the cursor."""

    forward_id: int
    mode: str | None
    start_ns: int
    end_ns: int
    extend_tokens: int | None
    decode_tokens: int | None
    num_extend_seqs: int | None
    num_decode_seqs: int | None
    flops: int | None
    evicted_pages: int | None
    retracted_reqs: int | None
    on_device: bool  # the cursor lies in its device interval


@dataclass(frozen=True, slots=True)
class HalfDone:
    """The one request whose prompt is cut, and its chunk in this forward, or its last one before it."""

    rid: int
    name: str
    prefix_len: int
    extend_end: int
    prompt_tokens: int | None
    number: int  # k of chunk k/n
    of: int | None  # None while the trace does not hold its last chunk
    inflight_middle_chunks: int | None


@dataclass(frozen=True, slots=True)
class Budget:
    """An admission budget before and after planning; None where it is off."""

    name: str
    start_tokens: int | None
    end_tokens: int | None


@dataclass(frozen=True, slots=True)
class KvPages:
    """Pages by kind, right after this forward's were allocated."""

    total: int | None
    locked: int | None
    private: int | None
    evictable: int | None
    free: int | None


@dataclass(frozen=True, slots=True)
class RequestState:
    """A request that waits or decodes."""

    rid: int
    name: str
    prompt_tokens: int | None
    output_tokens: int  # given by the cursor's time
    waited_ns: int | None  # since it arrived or was retracted; None when it does not wait
    in_forward: bool  # has a row in the forward at the cursor


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """What the scheduler knew at `t_ns`; recorded numbers are those of the forward at the cursor."""

    t_ns: int
    forward: ForwardState | None
    running: tuple[RequestState, ...]
    waiting: tuple[RequestState, ...]
    half_done: HalfDone | None
    budgets: tuple[Budget, ...]  # empty when no adder ran
    stop_reason: str | None
    blocked: str | None
    kv: KvPages | None
    inflight_middle_chunks: int | None
    running_reqs: int | None
    waiting_reqs: int | None
    pending_tokens: int | None
    origin_ns: int = 0  # when the run began: views count from there


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
        """The state at a time: that of the forward last planned by then, with who has come and gone since."""
        position = self._planned_by(t_ns)
        running = self._states(Phase.DECODING, t_ns, position)
        waiting = self._states(Phase.WAITING, t_ns, position)
        if position < 0:
            unknown = dict.fromkeys(_RECORDED)
            return SchedulerState(
                t_ns, None, running, waiting, half_done=None, budgets=(), **unknown, origin_ns=self.origin_ns
            )
        record = self._record(position)
        blocked = record["blocked_rid"]
        return SchedulerState(
            t_ns=t_ns,
            forward=self._forward(record, position, t_ns),
            running=running,
            waiting=waiting,
            half_done=self._half_done(record, position),
            budgets=_budgets(record),
            stop_reason=None if record["stop_reason"] is None else StopReason(record["stop_reason"]).name,
            blocked=None if blocked is None else self.requests.name(blocked),
            kv=_kv_pages(record),
            inflight_middle_chunks=record["inflight_middle_chunks"],
            running_reqs=record["running_reqs"],
            waiting_reqs=record["waiting_reqs"],
            pending_tokens=record["pending_tokens"],
            origin_ns=self.origin_ns,
        )

    def _planned_by(self, t_ns: int) -> int:
        """Position of the forward planned last by then, -1 for none. Those of several ranks are unordered."""
        by_then = np.flatnonzero(self.forwards.plan_end_ns <= t_ns)
        if not len(by_then):
            return -1
        latest_first = self.forwards.plan_end_ns[by_then][::-1]
        return int(by_then[len(by_then) - 1 - int(latest_first.argmax())])

    def _record(self, position: int) -> dict[str, Any]:
        forward_id = int(self.forwards.forward_id[position])
        found = pl.from_arrow(self.trace.read_forwards("forwards", forward_id, forward_id))
        assert isinstance(found, pl.DataFrame)
        return found.row(0, named=True)

    def _forward(self, record: Mapping[str, Any], position: int, t_ns: int) -> ForwardState:
        flops = [record[name] for name in _FLOPS]
        start_ns, end_ns = int(self.forwards.start_ns[position]), int(self.forwards.end_ns[position])
        return ForwardState(
            forward_id=record["forward_id"],
            mode=None if record["mode"] is None else ForwardMode(record["mode"]).name,
            start_ns=start_ns,
            end_ns=end_ns,
            extend_tokens=record["extend_tokens"],
            decode_tokens=record["decode_tokens"],
            num_extend_seqs=record["num_extend_seqs"],
            num_decode_seqs=record["num_decode_seqs"],
            flops=None if None in flops else sum(flops),
            evicted_pages=record["evicted_pages"],
            retracted_reqs=record["retracted_reqs"],
            on_device=start_ns <= t_ns < end_ns,
        )

    def _half_done(self, record: Mapping[str, Any], position: int) -> HalfDone | None:
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
            inflight_middle_chunks=record["inflight_middle_chunks"],
        )

    def _states(self, phase: Phase, t_ns: int, position: int) -> tuple[RequestState, ...]:
        return tuple(
            self._request(int(at), t_ns, position, waits=phase is Phase.WAITING)
            for at in self.lifecycle.at(phase, t_ns)
        )

    def _request(self, at: int, t_ns: int, position: int, *, waits: bool) -> RequestState:
        rid = int(self.lifecycle.rid[at])
        mine = self.rows.of(rid)
        forward = self.rows.forward[mine]
        results = self.forwards.result_end_ns[forward]
        given = (self.rows.token_index[mine] >= 0) & (results <= t_ns) & (results != UNKNOWN_TIME)
        return RequestState(
            rid=rid,
            name=self.requests.name(rid),
            prompt_tokens=self.requests.prompt_tokens(rid),
            output_tokens=int(given.sum()),
            waited_ns=t_ns - int(self.lifecycle.since_ns[at]) if waits else None,
            in_forward=bool((forward == position).any()),
        )


def _budgets(record: Mapping[str, Any]) -> tuple[Budget, ...]:
    budgets = tuple(
        Budget(name, record[f"{name}_budget_start_tokens"], record[f"{name}_budget_end_tokens"])
        for name in _BUDGETS
    )
    return budgets if any(b.start_tokens is not None for b in budgets) else ()


def _kv_pages(record: Mapping[str, Any]) -> KvPages | None:
    kinds = [record[f"pages_{kind}"] for kind in ("total", "protected", "private", "evictable", "free")]
    return None if all(kind is None for kind in kinds) else KvPages(*kinds)
