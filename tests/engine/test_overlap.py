"""Planning while a result is outstanding: counters, late results, rows past the end, and what stays equal."""

import numpy as np
import pytest

from engine.batch import ForwardMode, Outcome
from engine.engine import Engine
from engine.errors import WorkloadError
from engine.observer import EventKind, ForwardRecord
from engine.request import FinishReason, Request, SamplingParams
from tests.support.engines import Prompts, extents, make_engine, pool_tokens, rows, run_all
from tests.support.hash_executor import VOCAB, HashExecutor, one_shot


def overlapped(pool: int = 100_000, **options: object) -> Engine:
    return make_engine(pool, disable_overlap_schedule=False, **options)  # type: ignore[arg-type]


def counters(engine: Engine, request: Request, rounds: int) -> list[tuple[int, int]]:
    """Of each round: the request's counter right after planning and after the result was processed."""
    seen = []
    plan_round = engine.scheduler.plan

    def plan() -> object:
        planned = plan_round()
        seen.append([request.inflight_middle_chunks])
        return planned

    engine.scheduler.plan = plan  # type: ignore[method-assign,assignment]
    for _ in range(rounds):
        engine.step()
        seen[-1].append(request.inflight_middle_chunks)
    return [(after_plan, after_result) for after_plan, after_result in seen]


def stop_at(prompt: list[int], index: int) -> SamplingParams:
    """Sampling that stops at the output token with this index, where that token comes first."""
    output = one_shot(prompt, index + 1)
    assert output[index] not in output[:index]
    return SamplingParams(100, stop_token_ids=frozenset(output[index:]), ignore_eos=True)


def test_the_counter_of_three_chunks() -> None:
    engine, prompts = overlapped(chunked_prefill_size=64), Prompts()
    engine.submit(request := prompts.request(150, 2))
    assert counters(engine, request, 4) == [(1, 1), (2, 1), (1, 0), (0, 0)]
    assert request.output_len == 1


def test_the_counter_of_three_chunks_in_the_record() -> None:
    engine, prompts = overlapped(chunked_prefill_size=64), Prompts()
    engine.submit(prompts.request(150, 2))
    chunks = run_all(engine)[:3]
    after_plan = [r.plan.inflight_after_plan for r in chunks]
    assert [p.tolist() for p in after_plan if p is not None] == [[1], [2], [1]]
    assert [r.inflight_after_result.tolist() for r in chunks] == [[1], [0], [0]]
    assert [Outcome(r.outcomes[0]).name for r in chunks] == ["MIDDLE_DROPPED", "MIDDLE_DROPPED", "EMITTED"]
    assert [r.overlapped for r in chunks] == [False, True, True]


def test_two_requests_may_have_a_counter() -> None:
    engine, prompts = overlapped(chunked_prefill_size=64), Prompts()
    requests = [prompts.request(150, 5) for _ in range(3)]
    for request in requests:
        engine.submit(request)
    plans, seen = [], []
    plan_round = engine.scheduler.plan

    def plan() -> object:
        planned = plan_round()
        plans.append(tuple(r.inflight_middle_chunks for r in requests))
        assert planned is not None
        assert planned.record.inflight_middle_chunks == sum(plans[-1]), "rows of the forward before count too"
        return planned

    engine.scheduler.plan = plan  # type: ignore[method-assign,assignment]
    for _ in range(8):
        engine.step()
        seen.append(tuple(r.inflight_middle_chunks for r in requests))
    assert plans == [(1, 0, 0), (2, 0, 0), (1, 1, 0), (0, 2, 0), (0, 1, 1), (0, 0, 2), (0, 0, 2), (0, 0, 1)]
    assert seen == [(1, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, 0), (0, 0, 1), (0, 0, 1), (0, 0, 1), (0, 0, 0)]


@pytest.mark.parametrize("max_new", [0, 1])
def test_a_request_known_to_end_with_the_outstanding_result_is_not_planned_again(max_new: int) -> None:
    engine, prompts = overlapped(chunked_prefill_size=64), Prompts()
    engine.submit(request := prompts.request(50, max_new))
    records = run_all(engine)
    assert [rows(r) for r in records] == [[("r0", 0, 50)]]
    assert (request.output_len, request.finish_reason) == (1, FinishReason.LENGTH)


@pytest.mark.parametrize("page_size", [1, 4])
def test_a_row_computed_past_a_stop_token_is_dropped_and_leaves_nothing(page_size: int) -> None:
    prompt = [i % VOCAB for i in range(13)]
    plain = make_engine(1000, page_size=page_size, chunked_prefill_size=64)
    engine = overlapped(1000, page_size=page_size, chunked_prefill_size=64)
    for each in (plain, engine):
        each.submit(Request(0, "stops", prompt, stop_at(prompt, 2)))
    stopped = engine.requests[0]
    records = run_all(engine)
    run_all(plain)
    assert [[Outcome(o).name for o in r.outcomes] for r in records] == [["EMITTED"]] * 3 + [
        ["FINISHED_DROPPED"]
    ]
    assert records[-1].token_index.tolist() == [-1]
    assert (stopped.finish_reason, stopped.output_ids) == (FinishReason.STOP, one_shot(prompt, 3))
    assert pool_tokens(engine) == pool_tokens(plain)
    assert engine.cache.pool_state().private == 0


def test_freed_pages_are_handed_out_while_the_forward_that_writes_them_is_in_flight() -> None:
    prompt = [3] * 8
    engine = overlapped(24, page_size=4, chunked_prefill_size=64, disable_radix_cache=True)
    engine.submit(Request(0, "stops", prompt, stop_at(prompt, 0)))
    engine.step()
    waiting = Request(1, "waits", [5] * 15, SamplingParams(2, ignore_eos=True))
    engine.submit(waiting)
    held = set(engine.cache.row_pages(engine.requests[0]))
    records = []
    while waiting.row is None:
        records.append(engine.step())
    assert held & set(engine.cache.row_pages(waiting)), "the pool was meant to be too small for both"
    past_the_end = records[-1]
    assert past_the_end is not None
    assert past_the_end.outcomes.tolist() == [Outcome.FINISHED_DROPPED]
    run_all(engine)
    assert waiting.output_ids == one_shot(waiting.prompt_token_ids, 2)


def _until_planned(engine: Engine, request: Request, outputs: int) -> None:
    while request.output_len < outputs:
        engine.step()


def test_a_late_result_of_a_retracted_attempt_changes_nothing() -> None:
    engine, prompts = overlapped(4096, chunked_prefill_size=512), Prompts()
    victim, other = prompts.request(60, 30, name="victim"), prompts.request(18, 30, name="other")
    for request in (victim, other):
        engine.submit(request)
    _until_planned(engine, victim, 10)
    held = engine.cache.allocator.alloc(engine.cache.allocator.free_pages)
    assert held is not None
    kept = list(victim.tokens)
    record = engine.step()
    assert (victim.retractions, victim.attempt) == (1, 1)
    assert record is not None
    assert [
        (r.name, Outcome(o).name) for r, o in zip(record.batch.requests, record.outcomes, strict=True)
    ] == [
        ("victim", "RETRACTED"),
        ("other", "EMITTED"),
    ]
    assert list(victim.tokens) == kept
    engine.cache.allocator.free(held)
    run_all(engine)
    assert victim.output_ids == one_shot(victim.prompt_token_ids, 30)


def test_an_aborted_request_s_outstanding_chunk_drains_the_counter_and_emits_nothing() -> None:
    engine, prompts = overlapped(page_size=16, chunked_prefill_size=64), Prompts()
    engine.submit(request := prompts.request(300, 8))
    engine.step()
    engine.step()
    assert request.inflight_middle_chunks == 1
    engine.abort(request.rid)
    record = engine.step()
    assert record is not None
    assert [Outcome(o) for o in record.outcomes] == [Outcome.ABORTED]
    assert (request.inflight_middle_chunks, request.output_len) == (0, 0)
    assert request.finish_reason is FinishReason.ABORT
    assert engine.cache.tree.evictable_tokens == 64
    assert engine.cache.private_pages == 0
    assert not engine.has_work


def test_an_aborted_decode_keeps_what_it_had() -> None:
    engine, prompts = overlapped(chunked_prefill_size=64), Prompts()
    engine.submit(request := prompts.request(10, 50))
    _until_planned(engine, request, 5)
    engine.abort(request.rid)
    record = engine.step()
    assert record is not None
    assert record.outcomes.tolist() == [Outcome.ABORTED]
    assert request.output_ids == one_shot(request.prompt_token_ids, 5)
    engine.step()
    assert not engine.has_work


def test_a_token_awaited_in_a_mixed_forward_comes_from_the_right_row() -> None:
    engine, prompts = overlapped(chunked_prefill_size=32, enable_mixed_chunk=True), Prompts()
    requests = [prompts.request(n, 12, name=name) for name, n in (("a", 5), ("b", 9), ("c", 70), ("d", 20))]
    for request in requests:
        engine.submit(request)
    records = run_all(engine)
    mixed = [r for r in records if r.batch.mode is ForwardMode.MIXED]
    assert any(r.batch.awaited_rows is not None and r.batch.awaited_rows.max() > 1 for r in mixed)
    for request in requests:
        assert request.output_ids == one_shot(request.prompt_token_ids, 12)


def test_events_name_the_forward_whose_result_they_come_from() -> None:
    class Keep:
        events: list[object]

        def __init__(self) -> None:
            self.seen: list[tuple[EventKind, int | None]] = []

        def on_request(self, request: Request) -> None:
            """Not needed here."""

        def on_events(self, events: list) -> None:  # type: ignore[type-arg]
            self.seen += [(e.kind, e.forward_id) for e in events]

        def on_forward(self, record: ForwardRecord) -> None:
            """Not needed here."""

    keep = Keep()
    engine, prompts = make_engine(1000, keep, disable_overlap_schedule=False), Prompts()
    engine.submit(prompts.request(10, 3))
    records = run_all(engine)
    assert (EventKind.FINISH, records[-1].batch.forward_id) in keep.seen


def test_the_engine_goes_idle_only_after_the_last_result() -> None:
    engine, prompts = overlapped(chunked_prefill_size=64), Prompts()
    engine.submit(request := prompts.request(10, 2))
    assert [rows(engine.step()) for _ in range(3)] == [[], [("r0", 0, 10)], [("r0", 10, 11)]]
    assert request.finished
    assert engine.scheduler.ratio.current < engine.scheduler.ratio.initial
    assert not engine.has_work
    assert engine.step() is None
    assert engine.scheduler.ratio.current == engine.scheduler.ratio.initial


def test_an_error_in_a_forward_reaches_who_steps() -> None:
    class Broken(HashExecutor):
        def forward(self, batch: object) -> object:  # type: ignore[override]
            raise RuntimeError("device lost")

    engine, prompts = overlapped(1000), Prompts()
    engine._executor = Broken(1000, 1)
    engine.submit(prompts.request(10, 3))
    engine.step()
    with pytest.raises(RuntimeError, match="device lost"):
        engine.step()


def test_a_request_that_never_fits_is_refused_as_in_the_plain_loop() -> None:
    engine, prompts = overlapped(100), Prompts()
    with pytest.raises(WorkloadError, match="never fit"):
        engine.submit(prompts.request(100, 1))


def test_chunks_are_cut_as_in_the_plain_loop() -> None:
    plain, engine = make_engine(chunked_prefill_size=64), overlapped(chunked_prefill_size=64)
    for each in (plain, engine):
        prompts = Prompts()
        for n in (150, 10, 200):
            each.submit(prompts.request(n, 20))
    cut = [[extents(records, f"r{i}") for i in range(3)] for records in (run_all(plain), run_all(engine))]
    assert cut[0] == cut[1]
    assert np.sum([b - a for a, b in cut[0][2]]) == 200
