"""A run of an engine on the hash executor that is watched: what must hold at each round is checked there."""

from collections.abc import Sequence

from engine.batch import ForwardMode, Outcome, Role
from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import WorkloadError
from engine.observer import Event, ForwardRecord
from engine.request import FinishReason, Request
from tests.support.hash_executor import EOS, HashExecutor, one_shot
from tests.support.pool_checks import check_idle, check_pool
from tests.support.workloads import Arrival

MAX_ROUNDS = 20_000


class Watch:
    """Checks each forward against the rules as it happens."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.overlap = not config.disable_overlap_schedule
        self.cursor: dict[tuple[int, int], int] = {}
        self.pairs: dict[tuple[int, int], int] = {}
        self.start: dict[tuple[int, int], int] = {}
        self.emitted: dict[int, int] = {}
        self.ended: list[Request] = []

    def on_request(self, request: Request) -> None:
        if request.finished:
            self.ended.append(request)

    def on_events(self, events: list[Event]) -> None:
        assert events

    def on_forward(self, record: ForwardRecord) -> None:
        batch = record.batch
        chunked = [i for i in range(batch.num_rows) if batch.is_middle[i]]
        assert len(chunked) <= 1
        assert record.plan.inflight_after_plan is not None
        most = 2 if self.overlap else 1
        assert record.plan.inflight_after_plan.max() <= most
        assert record.inflight_after_result.max() < most
        assert record.overlapped <= self.overlap
        pool = record.plan.pool
        assert pool.free + pool.evictable + pool.protected + pool.private == pool.total
        assert record.plan.private_pages is not None
        assert record.plan.private_pages.sum() <= pool.private
        for i in range(batch.num_rows):
            rid, prefix, extend = (int(c[i]) for c in (batch.rids, batch.prefix_lens, batch.extend_lens))
            assert extend >= 1
            if i < batch.num_extend_seqs:
                self._extend((rid, int(batch.attempts[i])), prefix, extend, Role(batch.roles[i]))
            else:
                assert (extend, batch.roles[i]) == (1, Role.DECODE)
            if record.outcomes[i] == Outcome.EMITTED:
                assert record.token_index[i] == self.emitted.get(rid, 0)
                self.emitted[rid] = self.emitted.get(rid, 0) + 1
            else:
                assert record.token_index[i] == -1

    def _extend(self, key: tuple[int, int], prefix: int, extend: int, role: Role) -> None:
        page_size = self.config.page_size
        drained = self.config.disable_radix_cache  # such a cut may lie between pages
        assert role is not Role.FIRST or drained or (prefix + extend) % page_size == 0, "a ragged first chunk"
        first = key not in self.cursor
        assert first == (role in (Role.WHOLE, Role.FIRST))
        assert first or self.cursor[key] == prefix, "the cursor jumped"
        self.start.setdefault(key, prefix)
        self.cursor[key] = end = prefix + extend
        self.pairs[key] = self.pairs.get(key, 0) + extend * prefix + extend * (extend + 1) // 2
        matched = self.start[key]
        assert self.pairs[key] == (end * (end + 1) - matched * (matched + 1)) // 2


def watched_run(config: EngineConfig, todo: Sequence[Arrival]) -> list[Request]:
    """The requests that were queued, all ended; raises AssertionError where something does not hold."""
    assert config.max_total_tokens is not None
    watch = Watch(config)
    executor = HashExecutor(config.max_total_tokens // config.page_size, config.page_size)
    engine = Engine(config, executor, observer=watch, eos_token_ids=EOS)
    queued: list[Request] = []
    for round_ in range(MAX_ROUNDS):
        for rid, arrival in enumerate(todo):
            if arrival.round == round_:
                request = arrival.request(rid, arrival_ns=round_)
                try:
                    engine.submit(request)
                except WorkloadError:
                    continue
                queued.append(request)
            if round_ - arrival.round == arrival.abort_after:
                engine.abort(rid)
        record = engine.step()
        check_pool(engine.cache, engine.requests.values())
        waiting = engine.scheduler.waiting
        assert waiting.pending_tokens == sum(len(request.tokens) for request in waiting)
        if record is not None:
            assert record.plan.running_reqs >= (record.batch.mode is ForwardMode.DECODE)
        if round_ > 70 and not engine.has_work:
            break
    assert not engine.has_work, "requests are stuck"
    engine.step()
    check_idle(engine.cache)
    assert sorted(r.rid for r in watch.ended) == sorted(r.rid for r in queued)
    for request in queued:
        if request.finish_reason is not FinishReason.ABORT:
            last = watch.cursor[request.rid, request.attempt]
            assert last == request.prompt_len + request.kept_tokens
    return queued


def check_output(request: Request) -> None:
    """Its output is what it gets alone and whole, or the beginning of that if it was aborted."""
    output, reason = _alone(request)
    if request.finish_reason is FinishReason.ABORT:
        assert request.abort_detail
        assert request.output_ids == output[: request.output_len]
    else:
        assert (request.output_ids, request.finish_reason) == (output, reason)


def _alone(request: Request) -> tuple[list[int], FinishReason]:
    limit = max(1, request.max_new_tokens)
    output = one_shot(request.prompt_token_ids, limit)
    for i, token in enumerate(output):
        if i + 1 == limit:
            break
        if token in request.sampling.stop_token_ids:
            return output[: i + 1], FinishReason.STOP
        if token in EOS and not request.sampling.ignore_eos:
            return output[: i + 1], FinishReason.EOS
    return output, FinishReason.LENGTH
