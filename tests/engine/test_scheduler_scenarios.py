"""Rounds of the scheduler against the numbers observed in SGLang."""

from dataclasses import replace

import pytest

from engine.batch import ForwardMode, Outcome, StopReason
from engine.decode_memory import reset_for_retract
from engine.engine import Engine
from engine.errors import WorkloadError
from engine.observer import Event, EventKind, ForwardRecord
from engine.request import FinishReason, Request
from tests.support.engines import Prompts, extents, make_engine, pool_tokens, rows, run_all


def _submit(engine: Engine, *requests: Request) -> None:
    for request in requests:
        engine.submit(request)


def _may_end_early(request: Request) -> Request:
    """The same request, weighed by the new-token ratio instead of by its whole length."""
    request.sampling = replace(request.sampling, ignore_eos=False)
    return request


@pytest.mark.parametrize(("page", "left"), [(1, 288), (16, 288), (64, 256)])
def test_a_12000_token_prompt_in_chunks_of_4096(page: int, left: int) -> None:
    engine, prompts = make_engine(chunked_prefill_size=4096, page_size=page), Prompts()
    engine.submit(prompts.request(12_000, 256))
    records = [engine.step() for _ in range(3)]
    assert [rows(r) for r in records] == [[("r0", 0, 4096)], [("r0", 4096, 8192)], [("r0", 8192, 12_000)]]
    last = records[2]
    assert last is not None
    assert last.plan.budget_end is not None
    assert last.plan.budget_end.chunk == left


@pytest.mark.parametrize(
    ("page", "length", "chunks", "left"),
    [
        (1, 4095, [(0, 4095)], 1),
        (1, 4096, [(0, 4096)], 0),
        (1, 4097, [(0, 4096), (4096, 4097)], 4095),
        (1, 8192, [(0, 4096), (4096, 8192)], 0),
        (1, 8193, [(0, 4096), (4096, 8192), (8192, 8193)], 4095),
        (16, 4095, [(0, 4095)], 0),
        (16, 4097, [(0, 4096), (4096, 4097)], 4080),
        (16, 15, [(0, 15)], 4080),
        (16, 16, [(0, 16)], 4080),
        (16, 17, [(0, 17)], 4064),
    ],
)
def test_exact_lengths(page: int, length: int, chunks: list[tuple[int, int]], left: int) -> None:
    engine, prompts = make_engine(chunked_prefill_size=4096, page_size=page), Prompts()
    engine.submit(prompts.request(length, 2))
    records = run_all(engine)
    assert extents(records, "r0") == chunks
    budget = records[len(chunks) - 1].plan.budget_end
    assert budget is not None
    assert budget.chunk == left


def test_budgets_fall_by_what_was_admitted_and_by_no_more() -> None:
    engine, prompts = make_engine(chunked_prefill_size=256), Prompts()
    engine.submit(prompts.request(1000, 4))
    plan = run_all(engine)[0].plan
    start, end = plan.budget_start, plan.budget_end
    assert start is not None
    assert end is not None
    assert start.input - end.input == 256
    assert start.current - end.current == 256 + 1  # and a page of slack for the next token


@pytest.mark.parametrize(("length", "kept"), [(15, 16), (1, 0)])
def test_the_tree_keeps_whole_pages_of_what_has_kv(length: int, kept: int) -> None:
    engine, prompts = make_engine(chunked_prefill_size=4096, page_size=16), Prompts()
    engine.submit(prompts.request(length, 2))
    run_all(engine)
    assert engine.cache.tree.evictable_tokens == kept


@pytest.mark.parametrize(
    ("cached", "length", "chunks"),
    [
        (128, 300, [(128, 192), (192, 256), (256, 300)]),
        (130, 300, [(128, 192), (192, 256), (256, 300)]),
        (127, 300, [(112, 176), (176, 240), (240, 300)]),
        (128, 129, [(128, 129)]),
        (128, 128, [(112, 128)]),  # one token short of the whole, then floored to a page
    ],
)
def test_a_cached_prefix_longer_than_the_chunk(
    cached: int, length: int, chunks: list[tuple[int, int]]
) -> None:
    engine, prompts = make_engine(chunked_prefill_size=64, page_size=16), Prompts()
    engine.submit(prompts.request(cached, 1, share=(1, cached)))
    run_all(engine)
    engine.submit(request := prompts.request(length, 1, share=(1, min(cached, length))))
    records = run_all(engine)
    assert extents(records, "r1") == chunks
    assert [int(r.batch.cached_tokens[0]) for r in records] == [chunks[0][0]] + [0] * (len(chunks) - 1)
    assert request.cached_tokens == chunks[0][0]


@pytest.mark.parametrize(
    ("max_new", "output", "decodes", "left"), [(0, 1, 0, 100), (1, 1, 0, 100), (2, 2, 1, 101)]
)
def test_max_new_tokens_0_and_1_end_at_the_prefill(
    max_new: int, output: int, decodes: int, left: int
) -> None:
    engine, prompts = make_engine(chunked_prefill_size=64), Prompts()
    engine.submit(request := prompts.request(100, max_new))
    records = run_all(engine)
    assert request.output_len == output
    assert sum(r.batch.mode is ForwardMode.DECODE for r in records) == decodes
    assert engine.cache.tree.evictable_tokens == left


@pytest.mark.parametrize(("max_new", "pool"), [(0, 102), (1, 103)])
def test_admission_to_the_smallest_pool(max_new: int, pool: int) -> None:
    engine, prompts = make_engine(pool, chunked_prefill_size=64), Prompts()
    engine.submit(prompts.request(100, max_new))
    assert len(run_all(engine)) == 2


@pytest.mark.parametrize(
    ("pool", "page", "length", "clipped"),
    [(1000, 1, 100, 898), (1024, 16, 100, 895), (1024, 16, 96, 911), (192, 64, 100, 0)],
)
def test_max_new_tokens_is_clipped_at_arrival(pool: int, page: int, length: int, clipped: int) -> None:
    engine, prompts = make_engine(pool, page_size=page), Prompts()
    engine.submit(request := prompts.request(length, 100_000))
    assert request.max_new_tokens == clipped
    assert rows(engine.step()) == [("r0", 0, length)]


def test_a_prompt_that_never_fits_is_refused_at_arrival() -> None:
    engine, prompts = make_engine(128, page_size=64, chunked_prefill_size=64), Prompts()
    with pytest.raises(WorkloadError, match=r"r0.*100 prompt tokens never fit 128 KV tokens"):
        engine.submit(prompts.request(100, 1))
    assert not engine.has_work


@pytest.mark.parametrize(("pool", "admitted"), [(1157, False), (1158, True)])
def test_a_request_s_own_prefix_is_no_longer_evictable(pool: int, admitted: bool) -> None:
    engine, prompts = make_engine(pool, chunked_prefill_size=4096), Prompts()
    for request in (prompts.request(500, 1, share=(1, 500)), prompts.request(400, 1)):
        engine.submit(request)
        run_all(engine)
    assert pool_tokens(engine) == (pool - 900, 900, 0)
    engine.submit(request := prompts.request(900, 256, share=(1, 500)))
    request.max_new_tokens = 256  # arrival clipped it to what an empty pool holds
    record = engine.step()
    assert rows(record) == ([("r2", 500, 900)] if admitted else [])
    if record is not None:
        assert record.plan.pool.free == 258
        assert record.plan.evicted_pages == 400


def test_a_mixed_chunk_leaves_its_tail_in_the_row() -> None:
    engine, prompts = make_engine(page_size=16, chunked_prefill_size=48, enable_mixed_chunk=True), Prompts()
    _submit(engine, *(prompts.request(5, 50) for _ in range(3)))
    engine.step()
    engine.submit(long := prompts.request(150, 8, name="L"))
    records, private = [], []
    while long.output_len == 0:
        records.append(engine.step())
        private.append(
            -(-long.kv_len // 16) * 16 - long.protected_len if long.output_len == 0 else None,
        )
    forwards = [r for r in records if r is not None]
    assert extents(forwards, "L") == [(0, 32), (32, 77), (77, 122), (122, 150)]
    assert [r.batch.mode for r in forwards] == [ForwardMode.MIXED] * 4
    assert [r.plan.pool.protected * 16 for r in forwards[1:]] == [32, 64, 112]
    assert engine.cache.pool_state().protected * 16 == 144
    assert private[1:3] == [48, 64]


def test_rows_keep_the_order_of_merging() -> None:
    engine, prompts = make_engine(chunked_prefill_size=64, enable_mixed_chunk=True), Prompts()
    _submit(engine, prompts.request(5, 50, name="a"), prompts.request(5, 50, name="b"))
    engine.step()
    engine.submit(prompts.request(5, 50, name="c"))
    assert [name for name, _, _ in rows(engine.step())] == ["c", "a", "b"]
    engine.submit(prompts.request(5, 50, name="d"))
    assert [name for name, _, _ in rows(engine.step())] == ["d", "c", "a", "b"]
    assert [name for name, _, _ in rows(engine.step())] == ["d", "c", "a", "b"]


def test_new_rows_are_appended_without_mixing() -> None:
    engine, prompts = make_engine(chunked_prefill_size=64), Prompts()
    _submit(engine, prompts.request(5, 50, name="a"), prompts.request(5, 50, name="b"))
    engine.step()
    engine.submit(prompts.request(5, 50, name="c"))
    engine.step()
    assert [name for name, _, _ in rows(engine.step())] == ["a", "b", "c"]


def test_a_full_pool_is_not_asked_again_until_a_request_leaves() -> None:
    engine, prompts = make_engine(1000, chunked_prefill_size=64), Prompts()
    engine.submit(prompts.request(100, 30, name="A"))
    engine.step()
    engine.step()
    _submit(engine, prompts.request(900, 1, name="big"), prompts.request(10, 1, name="small"))
    seen = [rows(engine.step()) for _ in range(29)]
    assert all([name for name, _, _ in row] == ["A"] for row in seen)
    assert rows(engine.step()) == [("big", 0, 64)]


def test_request_rows_limit_admission() -> None:
    engine, prompts = make_engine(chunked_prefill_size=64, max_running_requests=2), Prompts()
    _submit(engine, *(prompts.request(n, 4, name=name) for n, name in ((100, "A"), (10, "B"), (10, "C"))))
    assert rows(engine.step()) == [("A", 0, 64)]
    record = engine.step()
    assert rows(record) == [("A", 64, 100), ("B", 0, 10)]
    assert record is not None
    assert (record.plan.stop_reason, record.plan.blocked_rid) == (StopReason.SLOTS, 2)
    names = [[name for name, _, _ in rows(engine.step())] for _ in range(4)]
    assert names == [["A", "B"]] * 3 + [["C"]]


def test_request_rows_are_taken_from_the_end() -> None:
    engine, prompts = make_engine(chunked_prefill_size=64, max_running_requests=4), Prompts()
    _submit(engine, *(prompts.request(5, new) for new in (2, 9, 9)))
    engine.step()
    assert [r.row for r in engine.requests.values()] == [3, 2, 1]
    engine.step()
    engine.submit(following := prompts.request(5, 9))
    engine.step()
    assert following.row == 3


@pytest.mark.parametrize(
    ("page", "after_prefill", "at_end"), [(1, (1500, 0, 100), 102), (16, (1472, 0, 96), 96)]
)
def test_the_same_prompt_twice_is_kept_once(
    page: int, after_prefill: tuple[int, int, int], at_end: int
) -> None:
    engine, prompts = make_engine(1600, page_size=page, chunked_prefill_size=512), Prompts()
    _submit(engine, *(prompts.request(100, 3, share=(1, 100)) for _ in range(2)))
    record = engine.step()
    assert record is not None
    assert record.batch.num_rows == 2
    assert pool_tokens(engine) == after_prefill
    run_all(engine)
    assert engine.cache.tree.evictable_tokens == at_end


def test_the_counter_without_overlap() -> None:
    engine, prompts = make_engine(chunked_prefill_size=64), Prompts()
    engine.submit(prompts.request(150, 2))
    records = run_all(engine)[:3]
    plan = [int(r.plan.inflight_after_plan[0]) for r in records if r.plan.inflight_after_plan is not None]
    assert plan == [1, 1, 0]
    assert [int(r.inflight_after_result[0]) for r in records] == [0, 0, 0]
    assert [Outcome(r.outcomes[0]).name for r in records] == ["MIDDLE_DROPPED", "MIDDLE_DROPPED", "EMITTED"]


class Events:
    """Keeps what an engine tells."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.records: list[ForwardRecord] = []

    def on_request(self, request: Request) -> None:
        """Not needed here."""

    def on_events(self, events: list[Event]) -> None:
        self.events += events

    def on_forward(self, record: ForwardRecord) -> None:
        self.records.append(record)

    def kinds(self) -> list[EventKind]:
        return [e.kind for e in self.events]


def test_decode_rows_without_room_sit_out_and_come_back() -> None:
    events = Events()
    engine = make_engine(
        42, events, chunked_prefill_size=8, enable_mixed_chunk=True, schedule_conservativeness=0.01
    )
    prompts = Prompts()
    _submit(engine, *(_may_end_early(prompts.request(4, 16)) for _ in range(2)))
    engine.step()
    engine.submit(prompts.request(26, 1, name="long"))
    run_all(engine)
    sat_out = [r for r in events.records if r.batch.mode is ForwardMode.EXTEND and r.plan.absent_decode_reqs]
    assert sat_out, "the pool was meant to be too small for chunk and decode rows together"
    assert events.kinds().count(EventKind.SIT_OUT) == sum(r.plan.absent_decode_reqs for r in sat_out)
    assert EventKind.RETRACT not in events.kinds()[: events.kinds().index(EventKind.SIT_OUT)]


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


def test_whole_prompts_and_no_radix_cache() -> None:
    engine = make_engine(chunked_prefill_size=-1, disable_radix_cache=True)
    prompts = Prompts()
    _submit(engine, *(prompts.request(500, 2, share=(1, 400)) for _ in range(2)))
    records = run_all(engine)
    assert rows(records[0]) == [("r0", 0, 500), ("r1", 0, 500)]
    assert pool_tokens(engine) == (100_000, 0, 0)
