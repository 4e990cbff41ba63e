"""Rounds of the scheduler against the numbers observed in SGLang."""

import pytest

from engine.batch import ForwardMode, Outcome, StopReason
from engine.engine import Engine
from engine.errors import WorkloadError
from engine.request import Request
from tests.support.engines import Prompts, extents, make_engine, pool_tokens, rows, run_all


def _submit(engine: Engine, *requests: Request) -> None:
    for request in requests:
        engine.submit(request)


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


def test_whole_prompts_and_no_radix_cache() -> None:
    engine = make_engine(chunked_prefill_size=-1, disable_radix_cache=True)
    prompts = Prompts()
    _submit(engine, *(prompts.request(500, 2, share=(1, 400)) for _ in range(2)))
    records = run_all(engine)
    assert rows(records[0]) == [("r0", 0, 500), ("r1", 0, 500)]
    assert pool_tokens(engine) == (100_000, 0, 0)
