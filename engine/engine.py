"""`Engine`: submit requests and `step` until they have ended, or let `run`, `generate` and `stream` do that.

The loop is `Engine.step`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from engine.cache import KVCache
from engine.clock import Clock, MonotonicClock
from engine.config import EngineConfig
from engine.errors import WorkloadError
from engine.event_log import EventLog
from engine.executors.protocol import Executor, ForwardResult, PendingForward
from engine.generation import Output, TokenStream, generate
from engine.limits import check_request
from engine.observer import EngineObserver, EventKind, ForwardRecord, NullObserver
from engine.request import FinishReason, Request, SamplingParams
from engine.results import Results, process_results
from engine.scheduler import Plan, Scheduler

__all__ = ["Engine"]


@dataclass(frozen=True, slots=True)
class _Flight:
    """A forward between its launch and its result; times in nanoseconds of the engine's clock."""

    plan: Plan
    pending: PendingForward
    plan_start_ns: int
    plan_end_ns: int
    launch_start_ns: int
    launch_end_ns: int
    overlapped: bool  # planned while the result of the forward before was outstanding


class Engine:
    """One scheduler, one KV pool, one executor.

    `config` must be resolved. `observer` is told of every forward; without one nothing is collected.
    """

    def __init__(
        self,
        config: EngineConfig,
        executor: Executor,
        *,
        clock: Clock | None = None,
        observer: EngineObserver | None = None,
        eos_token_ids: frozenset[int] = frozenset(),
    ) -> None:
        if (
            config.max_total_tokens is None
            or config.context_length is None
            or config.max_running_requests is None
        ):
            raise TypeError("the config has open options: call EngineConfig.resolve first")
        self.config = config
        self.clock = clock or MonotonicClock()
        self.requests: dict[int, Request] = {}  # not yet ended, by rid
        self.cache = KVCache(
            config.max_total_tokens,
            config.page_size,
            config.max_running_requests,
            disable_radix_cache=config.disable_radix_cache,
        )
        self._observer = observer or NullObserver()
        self._events = EventLog(self.clock, enabled=observer is not None)
        self.cache.log.enabled = observer is not None
        self.scheduler = Scheduler(config, self.cache, self._events)
        self._executor = executor
        self._eos_token_ids = eos_token_ids
        self._aborts: dict[int, str] = {}
        self._next_rid = 0
        self._in_flight: _Flight | None = None  # under overlap, from one step to the next

    @property
    def has_work(self) -> bool:
        """Whether any request has not ended, or a forward's result is outstanding."""
        return bool(self.requests) or self._in_flight is not None

    def check(self, request: Request) -> None:
        """Lower `max_new_tokens` to what fits; raises WorkloadError when the request can never be served."""
        check_request(request, self.config)

    def submit(self, request: Request) -> None:
        """Queue a request. Raises WorkloadError when it could never be served."""
        self.check(request)
        if request.rid in self.requests:
            raise WorkloadError(f"request {request.name!r} is already queued: give each request its own rid")
        if request.finished or request.first_scheduled_ns is not None:
            raise WorkloadError(f"request {request.name!r} has run before: submit its fresh() copy")
        request.begin()
        self._next_rid = max(self._next_rid, request.rid + 1)
        self.requests[request.rid] = request
        self.scheduler.enqueue(request)
        self._events.add(EventKind.ARRIVE, request, tokens=request.prompt_len, t_ns=request.arrival_ns)
        self._observer.on_request(request)

    def abort(self, rid: int, why: str = "aborted by the caller") -> None:
        """End a request before the next forward is planned, keeping its output; an unknown rid is ignored."""
        if rid in self.requests:
            self._aborts[rid] = why

    def run(
        self, requests: Iterable[Request], on_step: Callable[[ForwardRecord], None] | None = None
    ) -> None:
        """Submit each request at its arrival and step until all have ended; keeps none that has."""
        todo = deque(sorted(requests, key=lambda r: r.arrival_ns))
        while todo or self.has_work:
            while todo and todo[0].arrival_ns <= self.clock.now_ns():
                self.submit(todo.popleft())
            record = self.step()
            if record is not None and on_step is not None:
                on_step(record)
            if record is None and not self.has_work and todo:
                self.clock.wait_until(todo[0].arrival_ns)

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: SamplingParams | Sequence[SamplingParams] | None = None,
    ) -> list[Output]:
        """Run prompts of token ids together to their ends; outputs are in the order of the prompts.

        `sampling` is one for all or one for each. Raises WorkloadError, and queues nothing, when one of the
        prompts can never be served.
        """
        return generate(self, prompts, sampling)

    def stream(self, prompt: Sequence[int], sampling: SamplingParams | None = None) -> TokenStream:
        """Queue a prompt of token ids; its tokens come as the stream is read. Raises as `submit` does."""
        request = self.new_request(prompt, sampling)
        self.submit(request)
        return TokenStream(self, request)

    def new_request(self, prompt: Sequence[int], sampling: SamplingParams | None = None) -> Request:
        """A request that arrives now, with a rid that no other of this engine had; it is not queued."""
        rid, self._next_rid = self._next_rid, self._next_rid + 1
        return Request(rid, f"request-{rid}", prompt, sampling or SamplingParams(), self.clock.now_ns())

    def land(self) -> None:
        """Process the outstanding result, if there is one, and plan nothing more for now."""
        previous, self._in_flight = self._in_flight, None
        self._process(previous)
        self._flush_events()

    def settle(self) -> None:
        """Process the result that is outstanding after the last request's end; else do nothing."""
        while self.has_work and not self.requests:
            self.step()

    def step(self) -> ForwardRecord | None:
        """One round; returns the forward whose result it processed, None when there was none."""
        self._apply_aborts()
        overlap = not self.config.disable_overlap_schedule
        record = self._step_overlapped() if overlap else self._step_plain()
        if record is None and not self.has_work:
            self.scheduler.ratio.reset()
        self._flush_events()
        return record

    def _step_plain(self) -> ForwardRecord | None:
        """Plan a forward, run it, process its result."""
        flight = self._launch()
        return self._process(flight)

    def _step_overlapped(self) -> ForwardRecord | None:
        """Plan a forward and start it, then process the result of the one before, which ran meanwhile."""
        previous = self._in_flight
        self._in_flight = self._launch(overlapped=previous is not None)
        return self._process(previous)

    def _launch(self, *, overlapped: bool = False) -> _Flight | None:
        """Plan and start a forward; None when nothing can run."""
        plan_start_ns = self.clock.now_ns()
        plan = self.scheduler.plan()
        plan_end_ns = self.clock.now_ns()
        self._end_aborted()
        if plan is None:
            return None
        for request in plan.batch.requests[: plan.batch.num_extend_seqs]:
            if request.first_scheduled_ns is None:
                request.first_scheduled_ns = plan_end_ns
        launch_start_ns = self.clock.now_ns()
        pending = self._executor.launch(plan.batch)
        launch_end_ns = self.clock.now_ns()
        return _Flight(plan, pending, plan_start_ns, plan_end_ns, launch_start_ns, launch_end_ns, overlapped)

    def _process(self, flight: _Flight | None) -> ForwardRecord | None:
        """Wait for a forward and apply its result."""
        if flight is None:
            return None
        result = flight.pending.result()
        batch = flight.plan.batch
        self._events.forward_id = batch.forward_id
        result_start_ns = self.clock.now_ns()
        results = process_results(
            batch, result, self.cache, self.scheduler.reserve, self._events, self._eos_token_ids
        )
        return self._tell(flight, result, results, result_start_ns)

    def _tell(
        self, flight: _Flight, result: ForwardResult, results: Results, result_start_ns: int
    ) -> ForwardRecord:
        """Stamp the requests that changed, and hand the forward to the observer."""
        record = ForwardRecord(
            flight.plan.batch,
            flight.plan.record,
            result,
            plan_start_ns=flight.plan_start_ns,
            plan_end_ns=flight.plan_end_ns,
            launch_start_ns=flight.launch_start_ns,
            launch_end_ns=flight.launch_end_ns,
            result_start_ns=result_start_ns,
            result_end_ns=self.clock.now_ns(),
            overlapped=flight.overlapped,
            outcomes=results.outcomes,
            token_index=results.token_index,
            inflight_after_result=results.inflight_after_result,
            page_changes=self.cache.log.take(),
        )
        for request in results.changed:
            if request.first_token_ns is None:
                request.first_token_ns = record.result_end_ns
            if request.finished:
                self._end(request, record.result_end_ns)
            else:
                self._observer.on_request(request)
        self._observer.on_forward(record)
        return record

    def _apply_aborts(self) -> None:
        for rid, why in self._aborts.items():
            request = self.requests.get(rid)
            if request is not None:
                self.scheduler.remove(request)
                request.finish_reason = FinishReason.ABORT
                request.abort_detail = why
                self._end_with_abort(request)
        self._aborts.clear()

    def _end_aborted(self) -> None:
        for request in self.scheduler.retraction.aborted:
            self._end_with_abort(request)

    def _end_with_abort(self, request: Request) -> None:
        self._events.add(EventKind.ABORT, request, detail=request.abort_detail)
        self._end(request, self.clock.now_ns())

    def _end(self, request: Request, t_ns: int) -> None:
        request.finish_ns = t_ns
        del self.requests[request.rid]
        self._observer.on_request(request)

    def _flush_events(self) -> None:
        events = self._events.take()
        if events:
            self._observer.on_events(events)
