"""An engine that is watched: the rules are held at each round, and at the end against all that it told."""

from dataclasses import asdict

from engine.clock import Clock, MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.protocol import Executor
from engine.observer import EngineObserver, Event, ForwardRecord, NullObserver
from engine.request import Request
from profiler.invariants.check import check_trace
from profiler.invariants.live.broken import NOWHERE, InvariantError, Place, hold
from profiler.invariants.live.kept_trace import KeptTrace
from profiler.invariants.live.pool import hold_pool
from profiler.invariants.live.records import HeldRecords
from profiler.invariants.live.scheduler import hold_scheduler
from profiler.invariants.report import CheckReport, Status, Violation
from profiler.recorder import Recorder

__all__ = ["EngineCheck"]


class EngineCheck:
    """Runs an engine for a test and raises InvariantError, out of `engine.step`, where a rule does not hold.

    Use `engine` as any other, then call `finish`:

        check = EngineCheck(config, executor)
        check.engine.run(requests)
        check.finish()

    It looks at every page at every round, so it is for small pools. What was told is kept: every analysis can
    read `trace`. `observer` is told of all before it is checked.
    """

    def __init__(
        self,
        config: EngineConfig,
        executor: Executor,
        *,
        clock: Clock | None = None,
        observer: EngineObserver | None = None,
        eos_token_ids: frozenset[int] = frozenset(),
        provenance: str = "measured",
    ) -> None:
        clock = clock or MonotonicClock()
        self.trace = KeptTrace({"provenance": provenance, "engine": asdict(config)})
        self._recorder = Recorder(self.trace, None, clock=clock, simulated=provenance == "simulated")
        self._next = observer or NullObserver()
        self._records = HeldRecords(config)
        self._ends: dict[int, int] = {}  # how often a rid's end was told
        self.engine = Engine(config, executor, clock=clock, observer=self, eos_token_ids=eos_token_ids)

    def on_request(self, request: Request) -> None:
        """A request arrived, gave its first token, or ended, which it does once."""
        self._next.on_request(request)
        self._recorder.on_request(request)
        if request.finished:
            ends = self._ends[request.rid] = self._ends.get(request.rid, 0) + 1
            hold("ends_told_once", ends == 1, Place(None, request.name, request.attempt), ends=ends)

    def on_events(self, events: list[Event]) -> None:
        """A round with decisions is over."""
        self._next.on_events(events)
        self._recorder.on_events(events)
        self._hold_engine(NOWHERE)

    def on_forward(self, record: ForwardRecord) -> None:
        """A result has been processed."""
        self._next.on_forward(record)
        self._recorder.on_forward(record)
        self._records.hold(record)
        self._hold_engine(Place(record.batch.forward_id))

    def finish(self) -> CheckReport:
        """Hold what remains when all requests have ended, and every rule against what was told.

        Raises InvariantError with the first rule that is violated; the report names those that the run gave
        nothing to check for.
        """
        self.engine.settle()
        pool = self.engine.cache.pool_state()
        if not self.engine.requests:
            obtainable = pool.free + pool.evictable
            hold("nothing_leaks", obtainable == pool.total, obtainable=obtainable, total=pool.total)
        self._recorder.close(pool)
        report = check_trace(self.trace)
        for rule in report.having(Status.VIOLATED):
            raise InvariantError(rule.name, rule.first or Violation(*NOWHERE, ()))
        return report

    def _hold_engine(self, place: Place) -> None:
        hold_pool(self.engine.cache, list(self.engine.requests.values()), place)
        hold_scheduler(self.engine, place)
