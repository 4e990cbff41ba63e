"""`Engine`: submit requests, `step` until they have ended. The loop is `Engine.step`."""

from collections.abc import Callable, Iterable

from engine.cache import KVCache
from engine.clock import Clock, MonotonicClock
from engine.config import EngineConfig
from engine.decode_memory import clip_max_new_tokens
from engine.errors import WorkloadError
from engine.event_log import EventLog
from engine.executors.protocol import Executor, ForwardResult
from engine.observer import EngineObserver, EventKind, ForwardRecord, NullObserver
from engine.request import FinishReason, Request
from engine.results import Results, process_results
from engine.scheduler import Plan, Scheduler

__all__ = ["Engine"]


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

    @property
    def has_work(self) -> bool:
        """Whether any request has not ended."""
        return bool(self.requests)

    def submit(self, request: Request) -> None:
        """Queue a request. Raises WorkloadError when it could never be served."""
        self._check_fits(request)
        if request.rid in self.requests:
            raise WorkloadError(f"request {request.name!r} is already queued: give each request its own rid")
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
        """Submit each request at its arrival and step until all have ended."""
        todo = sorted(requests, key=lambda r: r.arrival_ns)
        at = 0
        while at < len(todo) or self.has_work:
            while at < len(todo) and todo[at].arrival_ns <= self.clock.now_ns():
                self.submit(todo[at])
                at += 1
            record = self.step()
            if record is not None and on_step is not None:
                on_step(record)
            if record is None and not self.has_work and at < len(todo):
                self.clock.wait_until(todo[at].arrival_ns)

    def step(self) -> ForwardRecord | None:
        """One round: plan, launch, process. None when nothing could run."""
        self._apply_aborts()
        plan_start_ns = self.clock.now_ns()
        plan = self.scheduler.plan()
        plan_end_ns = self.clock.now_ns()
        self._end_aborted()
        if plan is None:
            self._idle()
            return None
        launch_start_ns = self.clock.now_ns()
        result = self._executor.forward(plan.batch)
        result_start_ns = self.clock.now_ns()
        results = process_results(plan.batch, result, self.cache, self._events, self._eos_token_ids)
        result_end_ns = self.clock.now_ns()
        times = (plan_start_ns, plan_end_ns, launch_start_ns, result_start_ns, result_start_ns, result_end_ns)
        return self._tell(plan, result, results, times)

    def _tell(
        self, plan: Plan, result: ForwardResult, results: Results, times: tuple[int, int, int, int, int, int]
    ) -> ForwardRecord:
        """Stamp the requests that changed, and hand the forward to the observer."""
        record = ForwardRecord(
            plan.batch,
            plan.record,
            result,
            *times,
            overlapped=False,
            outcomes=results.outcomes,
            token_index=results.token_index,
            inflight_after_result=results.inflight_after_result,
            page_changes=self.cache.log.take(),
        )
        for request in plan.batch.requests[: plan.batch.num_extend_seqs]:
            if request.first_scheduled_ns is None:
                request.first_scheduled_ns = record.plan_end_ns
        for request in results.changed:
            if request.first_token_ns is None:
                request.first_token_ns = record.result_end_ns
            if request.finished:
                self._end(request, record.result_end_ns)
            else:
                self._observer.on_request(request)
        self._observer.on_forward(record)
        self._flush_events()
        return record

    def _idle(self) -> None:
        if not self.has_work:
            self.scheduler.ratio.reset()
        self._flush_events()

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
        for request in self.scheduler.aborted:
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

    def _check_fits(self, request: Request) -> None:
        assert self.config.max_total_tokens is not None
        assert self.config.context_length is not None
        page_size = self.config.page_size
        pool = self.config.max_total_tokens // page_size * page_size
        if request.prompt_len < 1:
            raise WorkloadError(f"request {request.name!r} has an empty prompt: give at least one token")
        if request.prompt_len >= self.config.context_length:
            raise WorkloadError(
                f"request {request.name!r}: {request.prompt_len} prompt tokens reach the context length "
                f"{self.config.context_length}: shorten the prompt"
            )
        if request.prompt_len + page_size >= pool:
            raise WorkloadError(
                f"request {request.name!r}: {request.prompt_len} prompt tokens never fit {pool} KV tokens: "
                "raise --max-total-tokens or shorten the prompt"
            )
        request.max_new_tokens = clip_max_new_tokens(request, pool, page_size, self.config.context_length)
