"""The scheduler: plans one forward a round, prefill first, with at most one half-done request.

It knows requests, budgets and pages, not tensors or devices. `Scheduler.plan` is the round, top to bottom.
Under overlap it plans while the result of the forward before is outstanding: what that will sample is not
known, only how many tokens it adds.
"""

import numpy as np

from engine.admission import AddResult, PrefillAdder
from engine.batch import ForwardBatch, ForwardMode, Role, StopReason
from engine.batching import build_batch
from engine.cache import KVCache
from engine.config import EngineConfig
from engine.decode_memory import check_decode_mem
from engine.event_log import EventLog
from engine.new_token_ratio import NewTokenRatio
from engine.observer import EventKind, PlanRecord
from engine.plan import Plan, private_pages
from engine.prefill_interval import PrefillInterval
from engine.priority import PriorityRules
from engine.queue_order import QueueOrder
from engine.request import Request
from engine.reserve import Reserve
from engine.retraction import Retraction
from engine.waiting_queue import WaitingQueue

__all__ = ["Plan", "Scheduler"]


class Scheduler:
    """Holds the queue, the running requests and the one half-done request between rounds."""

    def __init__(self, config: EngineConfig, cache: KVCache, events: EventLog) -> None:
        assert config.max_running_requests is not None, "the config must be resolved"
        self.waiting = WaitingQueue()
        self.running: list[Request] = []  # decoding, in batch order
        self.chunked_req: Request | None = None
        self.ratio = NewTokenRatio(config.schedule_conservativeness)
        self.reserve = Reserve()  # of all that decode, whether running or in a forward
        self.retraction = Retraction(cache, self.reserve, events)
        self._order = QueueOrder(config, cache.tree)
        self._priorities = PriorityRules.of(config)
        self._interval = PrefillInterval(
            config.prefill_decode_interval, config.prefill_decode_interval_min_bs
        )
        self._config = config
        self._cache = cache
        self._events = events
        self._slots = config.max_running_requests
        self._last: ForwardBatch | None = None  # planned in the round before
        self._with_chunks: list[Request] = []  # whose counter of middle chunks in flight may not be 0
        self._batch_is_full = False
        self._next_forward_id = 0
        self._refused: tuple[StopReason, Request] | None = None  # why this round admitted nobody

    def enqueue(self, request: Request) -> None:
        """Put a new request at the end of the queue."""
        self.waiting.append(request)

    def plan(self) -> Plan | None:
        """One round: the next forward with its pages allocated, or None when there is nothing to run."""
        self.retraction.start_round()
        self._refused = None
        self._events.forward_id = self._next_forward_id
        self._stash_chunk()
        self._merge_last()
        self._drop_finished()
        deferred = self._interval.defers(self._decodable())
        plan = None if deferred else self._plan_prefill()
        if plan is not None:
            self._interval.arm()
        else:
            plan = self._plan_decode()
            self._note_refusal(plan)
        if deferred:
            self._note_deferral(plan)
        self._last = plan.batch if plan else None
        if plan:
            self._next_forward_id += 1
        return plan

    def remove(self, request: Request) -> None:
        """Take an aborted request out, between two rounds; its KV is given back without being kept."""
        if request in self.waiting:
            self.waiting.remove(request)
        if request is self.chunked_req:
            self.chunked_req = None
        self.reserve.leave(request)
        if request.row is not None:
            self._cache.release(request, keep=False)

    # -- carrying the last forward over ------------------------------------------------------------------

    def _stash_chunk(self) -> None:
        """Hand the half-done request's new KV to the tree and advance its cursor."""
        request = self.chunked_req
        if request is not None and request.extend_end > request.prefix_len:
            self._cache.checkpoint(request, request.extend_end)
            self._events.add(EventKind.CHECKPOINT, request, tokens=request.protected_len)
            request.prefix_len = request.extend_end

    def _merge_last(self) -> None:
        """Requests that finished their prefill start to decode; the half-done one is left out."""
        if self._last is None or self._last.mode is ForwardMode.DECODE:
            return
        rows = [r for r in self._last.requests if not r.finished and r is not self.chunked_req]
        if len(rows) < self._last.num_rows or (rows and not self.running):
            self._batch_is_full = False
        self.running.extend(rows)
        for request in rows:
            self.reserve.join(request)

    def _decodable(self) -> int:
        """Running requests, or 0 if the outstanding result ends them all."""
        return len(self.running) if any(not r.ends_with_next_token for r in self.running) else 0

    def _drop_finished(self) -> None:
        before = len(self.running)
        self.running = [r for r in self.running if not r.finished]
        if len(self.running) < before or not self.running:
            self._batch_is_full = False

    # -- prefill -----------------------------------------------------------------------------------------

    def _plan_prefill(self) -> Plan | None:
        """A forward with the half-done request's next chunk and whatever else fits the budgets."""
        if self._priorities.preempt:
            self._batch_is_full = False  # somebody may give way
        if not self.waiting and self.chunked_req is None:
            return None
        if self._batch_is_full and self.chunked_req is None:
            self._refused = StopReason.BATCH_FULL, self.waiting.head
            return None
        if self._slots <= len(self.running) and self.chunked_req is None and not self._priorities.preempt:
            self._batch_is_full = True
            self._refused = StopReason.SLOTS, self.waiting.head
            return None
        self._order.apply(self.waiting)
        mixed = len(self.running) if self._config.enable_mixed_chunk else 0
        adder = PrefillAdder(self._config, self._cache, self.running, self.reserve, self.ratio.current, mixed)
        start = adder.budgets()
        continued = self.chunked_req
        parked = continued is not None and not adder.add_chunked(continued)
        blocked = None if parked else self._admit(adder)
        self._requeue(self.retraction.preempted)
        if not adder.admitted:
            refused = continued if parked else blocked
            self._refused = (adder.stop_reason, refused) if refused else None
            return None
        self.chunked_req = adder.chunked_req
        if self.chunked_req is not None:
            self.chunked_req.inflight_middle_chunks += 1
            self._with_chunks.append(self.chunked_req)
        running_reqs = len(self.running)
        end = adder.budgets()  # before placing, which takes the same tokens from the pool
        batch = self._place_prefill(adder.admitted, continued)
        record = self._record(batch, running_reqs)
        record.budget_start, record.budget_end = start, end
        record.mixed_deducted_tokens = mixed
        record.stop_reason = adder.stop_reason if blocked else StopReason.QUEUE_EMPTY
        record.blocked_rid = blocked.rid if blocked else None
        return Plan(batch, record)

    def _admit(self, adder: PrefillAdder) -> Request | None:
        """Admit from the head of the queue, skipping none; returns the request that had to wait, if any."""
        while self.waiting:
            request = self.waiting.head
            if adder.state() is AddResult.OTHER:
                return request
            if len(adder.admitted) >= self._slots - len(self.running):
                self._batch_is_full = True
            if self._batch_is_full and not self._make_way(adder, request):
                adder.stop_reason = StopReason.SLOTS
                return request
            self._cache.match(request)  # again: making way may have evicted what was matched
            before = len(adder.admitted)
            verdict = adder.add(request)
            if len(adder.admitted) > before:
                self.waiting.remove(request)
            if verdict is AddResult.NO_TOKEN:
                self._batch_is_full = bool(adder.admitted or self.running)
            if verdict is not AddResult.CONTINUE:
                return self.waiting.head if self.waiting else None
        return None

    def _make_way(self, adder: PrefillAdder, request: Request) -> bool:
        """Take slots and KV from less urgent running requests, which must make room for the whole request."""
        if not self._priorities.preempt:
            return False
        self._cache.match(request)
        victims = adder.preempt_for(request, self._priorities)
        if victims:
            self.running[:] = self.retraction.preempt(self.running, victims, by=request)
        return bool(victims)

    def _place_prefill(self, admitted: list[Request], continued: Request | None) -> ForwardBatch:
        """Allocate pages, and let the running requests ride along when mixing is on and their KV fits."""
        cached = []
        for request in admitted:
            cached.append(max(0, request.prefix_len - request.computed_len))
            request.cached_tokens += cached[-1]
            request.computed_len = max(request.computed_len, request.extend_end)
            if request is not continued:
                request.kept_tokens = request.output_len
                self._cache.attach(request)
                self._note_admission(request)
        self._cache.grow(admitted, [r.extend_end for r in admitted])
        decode = self._take_decode_rows() if self._config.enable_mixed_chunk else []
        roles = [self._role(r, r is continued) for r in admitted]
        return build_batch(self._next_forward_id, admitted, decode, roles, cached, self._cache, self._last)

    def _take_decode_rows(self) -> list[Request]:
        """The running requests, to ride along in a prefill forward; none where their KV does not fit."""
        self._drop_ending()
        if not check_decode_mem(self._cache, self.running):
            for request in self.running:
                self._events.add(EventKind.SIT_OUT, request)
            return []
        decode, self.running = self.running, []
        self._cache.grow_decode(decode)
        return decode

    def _drop_ending(self) -> None:
        """Leave out requests that the outstanding result brings to their length."""
        self.running = [r for r in self.running if not r.ends_with_next_token]

    def _role(self, request: Request, continued: bool) -> Role:
        if request is self.chunked_req:
            return Role.MIDDLE if continued else Role.FIRST
        return Role.LAST if continued else Role.WHOLE

    def _note_admission(self, request: Request) -> None:
        extend = request.extend_end - request.prefix_len
        self._events.add(EventKind.ADMIT, request, tokens=extend)
        if request.prefix_len:
            self._events.add(EventKind.HIT, request, tokens=request.prefix_len)
        if request is self.chunked_req:
            self._events.add(EventKind.TRUNCATE, request, tokens=len(request.tokens) - request.extend_end)

    # -- decode ------------------------------------------------------------------------------------------

    def _plan_decode(self) -> Plan | None:
        """A forward with every running request; some are retracted first when their tokens do not fit."""
        before = len(self.running)
        self._drop_ending()
        if len(self.running) < before:
            self._batch_is_full = False
        if not self.running:
            return None
        if check_decode_mem(self._cache, self.running):
            self.ratio.decay()
        else:
            self._retract()
        if not self.running:
            return None
        running_reqs = len(self.running)
        self._cache.grow_decode(self.running)
        batch = build_batch(self._next_forward_id, [], self.running, [], [], self._cache, self._last)
        record = self._record(batch, running_reqs)
        record.retracted_reqs = len(self.retraction.retracted)
        return Plan(batch, record)

    def _retract(self) -> None:
        """Take the KV of some requests so that the others can go on."""
        self.running, self.chunked_req = self.retraction.retract(self.running, self.chunked_req)
        self._batch_is_full = False
        self.ratio.on_retract(self.running)
        self._requeue(self.retraction.retracted)

    def _requeue(self, requests: list[Request]) -> None:
        for request in requests:
            self.waiting.append(request)
            self._events.add(EventKind.REQUEUE, request, tokens=request.output_len)

    # -- record ------------------------------------------------------------------------------------------

    def _record(self, batch: ForwardBatch, running_reqs: int) -> PlanRecord:
        rest = self.chunked_req and len(self.chunked_req.tokens) - self.chunked_req.extend_end
        rows = batch.requests
        self._with_chunks = [r for r in self._with_chunks if r.inflight_middle_chunks]
        evicted = self._cache.take_evicted()
        if evicted:
            self._events.add(EventKind.EVICT, pages=evicted)
        return PlanRecord(
            pool=self._cache.pool_state(),
            running_reqs=running_reqs,
            absent_decode_reqs=0 if batch.mode is ForwardMode.DECODE else len(self.running),
            waiting_reqs=len(self.waiting),
            pending_tokens=self.waiting.pending_tokens + (rest or 0),
            new_token_ratio=self.ratio.current,
            evicted_pages=evicted,
            chunked_rid=self.chunked_req.rid if self.chunked_req else None,
            inflight_middle_chunks=sum(r.inflight_middle_chunks for r in {*self._with_chunks}),
            private_pages=private_pages(self._cache, rows),
            inflight_after_plan=np.array([r.inflight_middle_chunks for r in rows], dtype=np.uint8),
        )

    def _note_refusal(self, plan: Plan | None) -> None:
        """Say in a decode forward why no prompt was admitted, and which request came first."""
        if plan is not None and self._refused is not None:
            plan.record.stop_reason, refused = self._refused
            plan.record.blocked_rid = refused.rid

    def _note_deferral(self, plan: Plan | None) -> None:
        """Say which request the interval kept from being prefilled in this round, if any."""
        held = self.chunked_req or (self.waiting.head if self.waiting else None)
        if plan is None:
            self._events.forward_id = None  # the next id is another round's
        if held is not None:
            self._events.add(EventKind.DEFER, held)
            if plan is not None:
                plan.record.stop_reason = StopReason.INTERVAL
                plan.record.blocked_rid = held.rid
