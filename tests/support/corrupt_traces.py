"""Recorded runs, as rows in memory, that tests corrupt one place at a time."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from engine.batch import Outcome, Role
from engine.config import EngineConfig
from engine.errors import WorkloadError
from engine.observer import EventKind, Owner
from engine.request import SamplingParams
from profiler.invariants.live import EngineCheck
from tests.support.hash_executor import EOS, HashExecutor
from tests.support.recorded import TickClock, TimedExecutor
from tests.support.traces import MemoryTrace
from tests.support.workloads import Arrival
from traces.schema import TABLES

__all__ = ["RUNS", "Broken", "Corruptible", "Corruption", "checked_run", "emits", "recorded"]

MAX_ROUNDS = 5_000

Row = dict[str, Any]


@dataclass
class Corruptible:
    """A recorded trace whose rows may be changed in place."""

    tables: dict[str, list[Row]]
    meta: Mapping[str, Any]

    def trace(self) -> MemoryTrace:
        """The trace as it is now."""
        return MemoryTrace(self.tables, self.meta)

    def forward(self, forward_id: int) -> Row:
        """A forward by its id."""
        return next(row for row in self.tables["forwards"] if row["forward_id"] == forward_id)

    def request(self, rid: int) -> Row:
        """A request by its rid."""
        return next(row for row in self.tables["requests"] if row["rid"] == rid)

    def row(self, role: Role | None = None, where: Callable[[Row], bool] = lambda row: True) -> Row:
        """The first row of this role for which `where` holds."""
        return next(row for row in self.tables["rows"] if role in (None, row["role"]) and where(row))

    def event(self, kind: EventKind, where: Callable[[Row], bool] = lambda row: True) -> Row:
        """The first event of a kind for which `where` holds."""
        return next(row for row in self.tables["events"] if row["kind"] == kind and where(row))

    def extent(self, owner: Owner, where: Callable[[Row], bool] = lambda row: True) -> Row:
        """The first told change of pages to this owner for which `where` holds."""
        told = (row for row in self.tables["pages"] if row["owner"] == owner and not row["keyframe"])
        return next(filter(where, told))

    def name(self, row: Row) -> str:
        """The user's name of the request that a row, or event, is of."""
        return str(self.request(row["rid"])["name"])

    def rows_of(self, forward_id: int) -> list[Row]:
        """A forward's rows."""
        return [row for row in self.tables["rows"] if row["forward_id"] == forward_id]


class Broken(NamedTuple):
    """What a check must say of a corrupted trace; None where a part does not apply."""

    rule: str
    forward_id: int | None = None
    request: str | None = None


class Corruption(NamedTuple):
    """What is done to which run of RUNS; `spoil` returns what must be found."""

    run: str
    spoil: Callable[[Corruptible], Broken]


def emits(row: Row) -> bool:
    """Whether a row gave a token."""
    return bool(row["outcome"] == Outcome.EMITTED)


def checked_run(config: EngineConfig, todo: Sequence[Arrival]) -> EngineCheck:
    """A run on the hash executor to the end of all that arrives; each round is checked, the whole not yet."""
    clock = TickClock()
    assert config.max_total_tokens is not None
    executor = HashExecutor(config.max_total_tokens // config.page_size, config.page_size)
    check = EngineCheck(config, TimedExecutor(executor, clock), clock=clock, eos_token_ids=EOS)
    engine = check.engine
    last = max((arrival.round for arrival in todo), default=0)
    for round_ in range(MAX_ROUNDS):
        for rid, arrival in enumerate(todo):
            if arrival.round == round_:
                with suppress(WorkloadError):  # it could never be served
                    engine.submit(arrival.request(rid, clock.now_ns()))
            if round_ - arrival.round == arrival.abort_after:
                engine.abort(rid)
        engine.step()
        if round_ > last and not engine.has_work:
            return check
    raise AssertionError("requests are stuck")


def recorded(name: str) -> Corruptible:
    """A new copy of a run of RUNS, of which every rule holds."""
    return deepcopy(_recorded(name))


@cache
def _recorded(name: str) -> Corruptible:
    check = checked_run(*RUNS[name])
    check.finish()
    return Corruptible({table: check.trace.table(table).to_pylist() for table in TABLES}, check.trace.meta)


def _config(pool: int, **options: Any) -> EngineConfig:
    return EngineConfig(max_total_tokens=pool, **options).resolve(max_total_tokens=pool, context_length=4096)


def _prompt(length: int, salt: int, shared: int = 0) -> tuple[int, ...]:
    return (7,) * shared + tuple((salt * 11 + i) % 50 for i in range(length - shared))


def _tokens(most: int, *, ignore_eos: bool = True) -> SamplingParams:
    return SamplingParams(max_new_tokens=most, ignore_eos=ignore_eos)


RUNS: Mapping[str, tuple[EngineConfig, list[Arrival]]] = {
    # two decodes, a prompt of four chunks that they ride along with, one that hits its prefix, a queue
    "plain": (
        _config(
            160,
            page_size=4,
            chunked_prefill_size=16,
            enable_mixed_chunk=True,
            disable_overlap_schedule=True,
            max_running_requests=4,
        ),
        [
            Arrival(0, _prompt(5, 1), _tokens(16)),
            Arrival(0, _prompt(6, 2), _tokens(14)),
            Arrival(2, _prompt(50, 3, shared=20), _tokens(6)),
            Arrival(3, _prompt(30, 4, shared=20), _tokens(6)),
            Arrival(3, _prompt(9, 5), _tokens(1)),
            Arrival(4, _prompt(12, 6), _tokens(9), abort_after=2),
        ],
    ),
    # chunks in flight beside each other, requests that end by EOS, a deferral, an abort in mid-chunk
    "overlap": (
        _config(400, chunked_prefill_size=16, prefill_decode_interval=2),
        [
            Arrival(0, _prompt(5, 1), _tokens(30)),
            Arrival(1, _prompt(40, 2), _tokens(8)),
            Arrival(1, _prompt(40, 3), _tokens(40, ignore_eos=False)),
            Arrival(3, _prompt(60, 4), _tokens(5), abort_after=12),
            Arrival(6, _prompt(40, 2), _tokens(3)),
        ],
    ),
    # decodes that outgrow the pool, so that some give their KV back
    "crowd": (
        _config(80, chunked_prefill_size=8, schedule_conservativeness=0.01, enable_mixed_chunk=True),
        [Arrival(at, _prompt(12, at), _tokens(30, ignore_eos=False)) for at in range(5)],
    ),
    # few slots, and requests that grow more urgent
    "rivals": (
        _config(
            200,
            chunked_prefill_size=16,
            max_running_requests=2,
            enable_priority_scheduling=True,
            priority_scheduling_preemption_threshold=0,
        ),
        [Arrival(3 * at, _prompt(14, at), _tokens(20), priority=at) for at in range(4)],
    ),
}
"""By name, an engine's options and what arrives at it."""
