"""Runs on the hash executor, recorded: into a trace, and as the objects that the recorder was handed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine.batch import ForwardBatch
from engine.clock import Clock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import WorkloadError
from engine.executors.protocol import ForwardResult
from engine.observer import EngineObserver, Event, ForwardRecord
from engine.request import Request
from engine.shapes import ModelShape
from profiler.recorder import Recorder
from tests.support.hash_executor import EOS, HashExecutor, HashForward
from tests.support.workloads import Arrival
from traces.reader import Trace, open_trace
from traces.writer import TraceWriter

TINY = ModelShape(
    architecture="llama",
    name="tiny",
    num_layers=2,
    hidden_size=8,
    num_heads=4,
    num_kv_heads=2,
    head_dim=2,
    intermediate_size=16,
    vocab_size=50,
    max_position_embeddings=1 << 16,
    rope_theta=1e4,
    rms_norm_eps=1e-5,
)
MAX_ROUNDS = 5_000
FORWARD_TICKS, TOKENS_A_TICK = 5, 2  # a decode of few rows takes the host about as long as the device


class TickClock:
    """Each look at it is a tick later."""

    def __init__(self, tick_ns: int = 1_000) -> None:
        self.t_ns = 0
        self._tick_ns = tick_ns

    def now_ns(self) -> int:
        self.t_ns += self._tick_ns
        return self.t_ns

    def wait_until(self, t_ns: int) -> None:
        self.t_ns = max(self.t_ns, t_ns)


class TimedExecutor:
    """A hash executor as a device with a queue: forwards run one after the other, each for its tokens' time.

    Like a device it computes while the host goes on, as late as it may; who asks for a result waits for it.
    """

    def __init__(self, executor: HashExecutor, clock: Clock, tick_ns: int = 1_000) -> None:
        self._executor = executor
        self._clock = clock
        self._tick_ns = tick_ns
        self._free_ns = 0

    def launch(self, batch: ForwardBatch) -> "TimedForward":
        start_ns = max(self._clock.now_ns(), self._free_ns)
        self._free_ns = start_ns + self._tick_ns * (FORWARD_TICKS + len(batch.input_ids) // TOKENS_A_TICK)
        return TimedForward(self._executor.launch(batch), self._clock, start_ns, self._free_ns)


class TimedForward:
    """A forward in the device's queue."""

    def __init__(self, pending: HashForward, clock: Clock, start_ns: int, end_ns: int) -> None:
        self._pending = pending
        self._clock = clock
        self._start_ns = start_ns
        self._end_ns = end_ns

    def result(self) -> ForwardResult:
        result = self._pending.result()
        self._clock.wait_until(self._end_ns)
        result.start_ns, result.end_ns = self._start_ns, self._end_ns
        return result


class Kept:
    """Keeps all that it is told, after handing it on."""

    def __init__(self, next_one: EngineObserver) -> None:
        self.records: list[ForwardRecord] = []
        self.events: list[Event] = []
        self.requests: dict[int, Request] = {}
        self._next = next_one

    def on_request(self, request: Request) -> None:
        self._next.on_request(request)
        self.requests[request.rid] = request

    def on_events(self, events: list[Event]) -> None:
        self._next.on_events(events)
        self.events += events

    def on_forward(self, record: ForwardRecord) -> None:
        self._next.on_forward(record)
        self.records.append(record)


def record_run(
    path: Path,
    config: EngineConfig,
    todo: Sequence[Arrival],
    *,
    tick_ns: int = 1_000,
    after_round: Callable[[], None] = lambda: None,
) -> tuple[Trace, Kept]:
    """The sealed trace of a run to the end of all that arrives, and what was told of it."""
    return _record(path, config, lambda engine: _drive(engine, todo, after_round), tick_ns)


def record_timed_run(path: Path, config: EngineConfig, requests: Sequence[Request]) -> tuple[Trace, Kept]:
    """The same, of requests that arrive by the clock, whatever the engine is at."""
    return _record(path, config, lambda engine: engine.run(requests), tick_ns=1_000)


def _record(
    path: Path, config: EngineConfig, drive: Callable[[Engine], None], tick_ns: int
) -> tuple[Trace, Kept]:
    clock = TickClock(tick_ns)
    recorder = Recorder(TraceWriter(path, {"provenance": "measured"}), TINY, clock=clock, element_bytes=2)
    kept = Kept(recorder)
    assert config.max_total_tokens is not None
    executor = HashExecutor(config.max_total_tokens // config.page_size, config.page_size)
    timed = TimedExecutor(executor, clock, tick_ns)
    engine = Engine(config, timed, clock=clock, observer=kept, eos_token_ids=EOS)
    drive(engine)
    recorder.close(engine.cache.pool_state())
    return open_trace(path), kept


def rows_of(trace: Trace, table: str) -> list[dict[str, Any]]:
    """A table's rows as dictionaries."""
    rows: list[dict[str, Any]] = trace.table(table).to_pylist()
    return rows


def _drive(engine: Engine, todo: Sequence[Arrival], after_round: Callable[[], None]) -> None:
    last = max((arrival.round for arrival in todo), default=0)
    for round_ in range(MAX_ROUNDS):
        for rid, arrival in enumerate(todo):
            if arrival.round == round_:
                _submit(engine, arrival.request(rid, engine.clock.now_ns()))
            if round_ - arrival.round == arrival.abort_after:
                engine.abort(rid)
        engine.step()
        after_round()
        if round_ > last and not engine.has_work:
            return
    raise AssertionError("requests are stuck")


def _submit(engine: Engine, request: Request) -> None:
    try:
        engine.submit(request)
    except WorkloadError:
        assert request.rid not in engine.requests
