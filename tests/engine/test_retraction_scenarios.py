"""Requests that give their KV back: for lack of memory, to eviction, or because they were aborted."""

from dataclasses import replace

import pytest

from engine.batch import ForwardMode
from engine.decode_memory import reset_for_retract
from engine.engine import Engine
from engine.observer import EventKind
from engine.request import FinishReason, Request
from tests.support.engines import Prompts, make_engine, rows, run_all
from tests.support.hash_executor import one_shot
from tests.support.told import Told


def _submit(engine: Engine, *requests: Request) -> None:
    for request in requests:
        engine.submit(request)


def _may_end_early(request: Request) -> Request:
    """The same request, weighed by the new-token ratio instead of by its whole length."""
    request.sampling = replace(request.sampling, ignore_eos=False)
    return request


def test_decode_rows_without_room_sit_out_and_come_back() -> None:
    told = Told()
    engine = make_engine(
        42, told, chunked_prefill_size=8, enable_mixed_chunk=True, schedule_conservativeness=0.01
    )
    prompts = Prompts()
    _submit(engine, *(_may_end_early(prompts.request(4, 16)) for _ in range(2)))
    engine.step()
    engine.submit(prompts.request(26, 1, name="long"))
    run_all(engine)
    sat_out = [r for r in told.records if r.batch.mode is ForwardMode.EXTEND and r.plan.absent_decode_reqs]
    assert sat_out, "the pool was meant to be too small for chunk and decode rows together"
    assert told.kinds().count(EventKind.SIT_OUT) == sum(r.plan.absent_decode_reqs for r in sat_out)
    assert EventKind.RETRACT not in told.kinds()[: told.kinds().index(EventKind.SIT_OUT)]


@pytest.mark.parametrize(("page", "outputs", "again"), [(1, 22, (60, 82)), (16, 31, (48, 91))])
def test_a_retracted_request_keeps_its_output_and_its_prompt_in_the_tree(
    page: int, outputs: int, again: tuple[int, int]
) -> None:
    engine, prompts = make_engine(4096, page_size=page, chunked_prefill_size=512), Prompts()
    _submit(engine, prompts.request(60, 100, name="victim"), prompts.request(18, 100, name="other"))
    victim, other = engine.requests[0], engine.requests[1]
    while victim.output_len < outputs:
        engine.step()
    held = engine.cache.allocator.alloc(engine.cache.allocator.free_pages)  # the pool is suddenly full
    assert held is not None
    evictable = engine.cache.tree.evictable_tokens
    assert evictable == 0
    while not victim.retractions:
        engine.step()
    assert other.retractions == 0
    kept = victim.output_len
    assert kept == outputs
    engine.cache.allocator.free(held)
    cached_before = victim.cached_tokens
    record = engine.step()
    assert rows(record) == [("victim", again[0], 60 + kept)]
    assert victim.cached_tokens == cached_before
    assert victim.output_len == kept + 1
    run_all(engine)
    assert (victim.finish_reason, victim.output_len) == (FinishReason.LENGTH, 100)


def test_the_victim_has_least_output_then_the_longest_prompt_then_the_last_row() -> None:
    engine, prompts = make_engine(600, chunked_prefill_size=256), Prompts()
    _submit(engine, prompts.request(10, 90), prompts.request(30, 90), prompts.request(30, 90))
    engine.step()
    engine.step()
    engine.submit(prompts.request(5, 90))
    while not engine.scheduler.running or engine.requests[3].output_len < 2:
        engine.step()
    engine.cache.allocator.alloc(engine.cache.allocator.free_pages - 1)
    engine.step()
    assert [r.name for r in engine.scheduler.retraction.retracted] == ["r3"]
    engine.cache.allocator.alloc(engine.cache.allocator.free_pages)
    engine.step()
    assert [r.name for r in engine.scheduler.retraction.retracted][:1] == ["r2"]


def test_a_request_that_not_even_alone_can_go_on_is_aborted_with_a_reason() -> None:
    engine, prompts = make_engine(200, chunked_prefill_size=64), Prompts()
    engine.submit(request := prompts.request(20, 50))
    engine.step()
    engine.cache.allocator.alloc(engine.cache.allocator.free_pages)
    engine.step()
    assert request.finish_reason is FinishReason.ABORT
    assert request.abort_detail == "the KV pool cannot hold its next token"
    assert engine.scheduler.reserve.tokens(1.0) == 0
    assert not engine.has_work
    assert engine.scheduler.ratio.current == engine.scheduler.ratio.initial


def test_a_parked_half_done_request_gives_way_before_the_last_decoding_one() -> None:
    engine, prompts = make_engine(400, page_size=1, chunked_prefill_size=32), Prompts()
    engine.submit(decoding := prompts.request(10, 100, name="decoding"))
    engine.step()
    engine.submit(long := prompts.request(200, 5, name="long"))
    engine.step()
    taken = engine.cache.allocator.alloc(engine.cache.allocator.free_pages)
    assert taken is not None
    assert rows(engine.step()) == [("decoding", 10, 11)]
    assert (long.retractions, decoding.retractions) == (1, 0)
    engine.cache.allocator.free(taken)
    run_all(engine)
    assert (long.output_len, decoding.output_len) == (5, 100)


def test_eviction_after_a_retraction_frees_twenty_steps_for_who_remains() -> None:
    engine, prompts = make_engine(400, chunked_prefill_size=256), Prompts()
    engine.submit(prompts.request(160, 1, name="cached"))
    run_all(engine)
    _submit(engine, *(prompts.request(20, 60) for _ in range(3)))
    engine.step()
    engine.cache.allocator.alloc(engine.cache.allocator.free_pages - 39)
    assert engine.cache.private_pages == 0, (
        "the prompts lie in the tree: the retraction frees nothing by itself"
    )
    reset_for_retract(engine.cache, engine.requests[3], remaining=2)
    assert engine.cache.available_tokens == 199


def test_a_decode_asks_the_tree_for_a_page_a_row_even_when_none_opens() -> None:
    engine, prompts = make_engine(640, page_size=16, chunked_prefill_size=64), Prompts()
    engine.submit(prompts.request(32, 1, name="cached"))
    run_all(engine)
    engine.submit(prompts.request(36, 20))
    engine.step()
    engine.step()
    engine.cache.allocator.alloc(engine.cache.allocator.free_pages)
    before = engine.cache.tree.evictable_tokens
    record = engine.step()
    assert record is not None
    assert record.plan.evicted_pages == 2
    assert before - engine.cache.tree.evictable_tokens == 32


def test_the_ratio_decays_only_in_plain_decode_rounds() -> None:
    engine, prompts = make_engine(chunked_prefill_size=64, enable_mixed_chunk=True), Prompts()
    engine.submit(prompts.request(10, 50))
    engine.step()
    first = engine.scheduler.ratio.current
    engine.step()
    second = engine.scheduler.ratio.current
    assert second == pytest.approx(first - engine.scheduler.ratio.step)
    engine.submit(prompts.request(100, 50))
    record = engine.step()
    assert record is not None
    assert record.batch.mode is ForwardMode.MIXED
    assert engine.scheduler.ratio.current == second


def test_an_aborted_half_done_prompt_leaves_its_stashed_chunk_in_the_tree() -> None:
    engine, prompts = make_engine(page_size=16, chunked_prefill_size=64), Prompts()
    engine.submit(request := prompts.request(300, 8))
    engine.step()
    engine.step()
    engine.abort(request.rid)
    assert rows(engine.step()) == []
    assert (request.finish_reason, request.output_len) == (FinishReason.ABORT, 0)
    assert engine.cache.tree.evictable_tokens == 64
    assert engine.cache.private_pages == 0


def test_who_has_left_has_nothing_reserved() -> None:
    engine, prompts = make_engine(chunked_prefill_size=64, disable_overlap_schedule=False), Prompts()
    stopped, aborted, goes_on = (prompts.request(10, 50) for _ in range(3))
    third = one_shot(stopped.prompt_token_ids, 3)[2]
    stopped.sampling = replace(stopped.sampling, stop_token_ids=frozenset({third}))
    _submit(engine, stopped, aborted, goes_on)
    for _ in range(6):
        engine.step()
    assert stopped.finish_reason is FinishReason.STOP
    engine.abort(aborted.rid)
    engine.step()
    assert engine.scheduler.reserve.tokens(1.0) == 50 - goes_on.output_len
    run_all(engine)
    assert engine.scheduler.reserve.tokens(1.0) == 0


def test_aborting_a_queued_and_a_decoding_request() -> None:
    engine, prompts = make_engine(chunked_prefill_size=64, max_running_requests=1), Prompts()
    _submit(engine, prompts.request(10, 50, name="decoding"), prompts.request(10, 50, name="queued"))
    decoding, queued = engine.requests[0], engine.requests[1]
    for _ in range(3):
        engine.step()
    engine.abort(queued.rid, "the user left")
    engine.abort(decoding.rid)
    engine.step()
    assert (queued.abort_detail, queued.output_len) == ("the user left", 0)
    assert (decoding.finish_reason, decoding.output_len) == (FinishReason.ABORT, 3)
    assert not engine.has_work
