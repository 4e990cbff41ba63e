"""What an engine tells those who watch it: one object a forward, none a row.

Column names and units are those of the trace (docs/architecture.md): a recorder copies, it computes little.
"""

from array import array
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol

from engine.batch import ByteColumn, ForwardBatch, IntColumn, StopReason
from engine.executors.protocol import ForwardResult
from engine.request import Request

__all__ = [
    "Budgets",
    "EngineObserver",
    "Event",
    "EventKind",
    "ForwardRecord",
    "NullObserver",
    "Owner",
    "PageChange",
    "PlanRecord",
    "PoolState",
]


class EventKind(IntEnum):
    """A scheduler decision; the order is that of the trace's enum."""

    ARRIVE = 0
    ADMIT = 1
    HIT = 2
    TRUNCATE = 3
    CHECKPOINT = 4
    EVICT = 5
    SIT_OUT = 6
    DEFER = 7
    PREEMPT = 8
    RETRACT = 9
    REQUEUE = 10
    ABORT = 11
    SEND_KV = 12
    FINISH = 13


class Owner(IntEnum):
    """Who holds a page."""

    FREE = 0
    ROW = 1
    TREE = 2


class Event(NamedTuple):
    """One scheduler decision. `forward_id` is the forward being planned or processed; None is unknown."""

    t_ns: int
    kind: EventKind
    forward_id: int | None = None
    rid: int | None = None
    attempt: int | None = None
    pages: int | None = None
    tokens: int | None = None
    node: int | None = None
    detail: str | None = None


class PageChange(NamedTuple):
    """Pages, in any order, that have this owner from now on: rows by their rids, the tree by a node."""

    pages: "array[int]"
    owner: Owner
    rids: IntColumn | None = None  # (pages,) the request of each page of a row
    node: int | None = None
    locked: bool = False


@dataclass(slots=True)
class Budgets:
    """The four admission budgets in tokens; None where a budget is off."""

    total: int
    current: int
    input: int
    chunk: int | None


@dataclass(slots=True)
class PoolState:
    """Whole pages by kind, right after this forward's pages were allocated; they sum to `total`."""

    total: int
    free: int
    evictable: int
    protected: int
    private: int


@dataclass(slots=True)
class PlanRecord:
    """What the scheduler knew and decided when it planned a forward; None: it does not apply."""

    pool: PoolState
    running_reqs: int  # before mixing
    absent_decode_reqs: int  # running, but not in this forward
    waiting_reqs: int
    pending_tokens: int  # prompt tokens queued, and the half-done request's rest
    new_token_ratio: float
    budget_start: Budgets | None = None  # after the mixed deduction
    budget_end: Budgets | None = None
    mixed_deducted_tokens: int | None = None
    stop_reason: StopReason | None = None
    blocked_rid: int | None = None  # the request admission stopped at
    evicted_pages: int = 0
    retracted_reqs: int = 0
    chunked_rid: int | None = None
    inflight_middle_chunks: int = 0  # summed over requests, right after planning
    private_pages: IntColumn | None = None  # (rows,) pages held by the row and not by the tree
    inflight_after_plan: ByteColumn | None = None  # (rows,)


@dataclass(slots=True)
class ForwardRecord:
    """One forward from plan to processed result; times in nanoseconds since the run's start."""

    batch: ForwardBatch
    plan: PlanRecord
    result: ForwardResult
    plan_start_ns: int
    plan_end_ns: int
    launch_start_ns: int
    launch_end_ns: int
    result_start_ns: int
    result_end_ns: int
    overlapped: bool
    outcomes: ByteColumn  # (rows,) Outcome
    token_index: IntColumn  # (rows,) index of the emitted token among the request's outputs, -1 if none
    inflight_after_result: ByteColumn  # (rows,)
    page_changes: list[PageChange] = field(default_factory=list)  # since the record before


class EngineObserver(Protocol):
    """Watches an engine. Called on the scheduler's thread: be quick, copy what you keep, raise nothing.

    One that says when requests that decode have to wait for the prefill of others, on a simulated device
    that takes a microsecond a token:

    >>> from engine.clock import VirtualClock
    >>> from engine.config import EngineConfig
    >>> from engine.engine import Engine
    >>> from engine.executors.simulated import SimulatedExecutor
    >>> class Microseconds:
    ...     def forward_ns(self, batch):
    ...         return 1_000 * len(batch.input_ids)
    >>> class Waits(NullObserver):
    ...     def on_forward(self, record):
    ...         if record.plan.absent_decode_reqs:
    ...             ms = (record.result.end_ns - record.result.start_ns) / 1e6
    ...             names = ", ".join(request.name for request in record.batch.requests)
    ...             print(f"{record.plan.absent_decode_reqs} waited {ms} ms for {names}")
    >>> clock = VirtualClock()
    >>> config = EngineConfig(chunked_prefill_size=2048)
    >>> config = config.resolve(max_total_tokens=10_000, context_length=8192)
    >>> executor = SimulatedExecutor(Microseconds(), clock, vocab_size=50)
    >>> engine = Engine(config, executor, clock=clock, observer=Waits())
    >>> stream = engine.stream([1, 2, 3])
    >>> first_token = next(stream)
    >>> [long] = engine.generate([[4] * 3000])
    1 waited 2.048 ms for request-1
    1 waited 0.952 ms for request-1
    """

    def on_request(self, request: Request) -> None:
        """A request arrived, gave its first token, or ended."""
        ...

    def on_events(self, events: list[Event]) -> None:
        """Decisions since the last call, oldest first; the list is the observer's to keep."""
        ...

    def on_forward(self, record: ForwardRecord) -> None:
        """A forward's result has been processed."""
        ...


class NullObserver:
    """Watches nothing, at no cost."""

    def on_request(self, request: Request) -> None:
        """Ignore a request's change."""

    def on_events(self, events: list[Event]) -> None:
        """Ignore decisions."""

    def on_forward(self, record: ForwardRecord) -> None:
        """Ignore a forward."""
