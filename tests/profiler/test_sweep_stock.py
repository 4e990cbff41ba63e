"""Prefixes and decode batches of a sweep: every measured forward is exactly what was asked for."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.batch import ForwardBatch, ForwardMode
from engine.clock import VirtualClock
from engine.engine import Engine
from engine.errors import ConfigError
from engine.executors.simulated import SimulatedExecutor
from engine.observer import EngineObserver, ForwardRecord, NullObserver
from engine.request import FinishReason
from profiler.sweep import Sweep
from profiler.sweep_cases import SweepCase
from profiler.sweep_plan import SweepPlan

CONTEXT = 100_000


class Microseconds:
    """A microsecond a token, and ten a forward."""

    def forward_ns(self, batch: ForwardBatch) -> int:
        return 10_000 + 1_000 * len(batch.input_ids)


class Watcher(NullObserver):
    """Keeps what it is told of forwards, and the pages of their rows as they were then."""

    def __init__(self) -> None:
        self.records: list[ForwardRecord] = []
        self.pages: list[list[list[int]]] = []

    def on_forward(self, record: ForwardRecord) -> None:
        self.records.append(record)
        self.pages.append([list(row) for row in record.batch.pages])


def swept(plan: SweepPlan, vocab_size: int = 500, *, sizes: int = 4) -> tuple[Sweep, Watcher, Engine]:
    """The sweep on a virtual clock, what was seen of it, and its engine."""
    clock, watcher = VirtualClock(), Watcher()
    executor = SimulatedExecutor(Microseconds(), clock, vocab_size)
    config = plan.config().resolve(max_total_tokens=plan.pool_tokens, context_length=CONTEXT)

    def build(observer: EngineObserver | None) -> Engine:
        return Engine(config, executor, clock=clock, observer=observer)

    sweep = Sweep(plan, vocab_size=vocab_size, num_sizes=sizes, now_s=lambda: clock.now_ns() / 1e9)
    sweep.prepare(build)
    return sweep, watcher, sweep.record(build, watcher)


def case_of(record: ForwardRecord) -> SweepCase | None:
    """What a forward measures; None for one of the set-up."""
    batch = record.batch
    if batch.mode is ForwardMode.DECODE:
        return SweepCase(batch.num_rows, int(batch.prefix_lens[0]), decode=True)
    if batch.num_rows == 1:
        return SweepCase(int(batch.extend_lens[0]), int(batch.prefix_lens[0]))
    return None


@settings(max_examples=15)
@given(
    low=st.integers(1, 20),
    more=st.integers(0, 60),
    prefixes=st.sets(st.integers(0, 300), min_size=1, max_size=3),
    vocab_size=st.integers(2, 50),
)
def test_every_prompt_finds_its_prefix_and_no_more(
    low: int, more: int, prefixes: set[int], vocab_size: int
) -> None:
    plan = SweepPlan((low, low + more), tuple(sorted(prefixes)), repeats=2)
    sweep, watcher, _ = swept(plan, vocab_size)
    seen = Counter(case for record in watcher.records if (case := case_of(record)) is not None)
    assert seen == dict.fromkeys(sweep.cases, 2)


def test_decode_rows_have_kv_of_their_own_and_as_much_as_stated() -> None:
    plan = SweepPlan(None, batch=(1, 9), kv_tokens=40, repeats=2)
    sweep, watcher, _ = swept(plan)
    for record, pages in zip(watcher.records, watcher.pages, strict=True):
        if record.batch.mode is ForwardMode.DECODE:
            own = [set(row[1:]) for row in pages]  # all begin with the same token
            assert sum(map(len, own)) == len(set.union(*own))
    decodes = [case for record in watcher.records if (case := case_of(record)) is not None]
    assert Counter(case.tokens for case in decodes) == {case.tokens: 2 * 4 for case in sweep.cases}
    assert {case.prefix_tokens for case in decodes} == {40, 41, 42, 43}


def test_a_visit_of_one_decode_row_leaves_no_forward_of_one_prompt() -> None:
    _, watcher, _ = swept(SweepPlan(None, batch=(1, 1), kv_tokens=16, repeats=1))
    assert all(record.batch.num_rows > 1 for record in watcher.records if record.batch.num_extend_seqs)


def test_the_stock_is_computed_once_and_nothing_leaks() -> None:
    plan = SweepPlan((1, 64), (0, 5_000), batch=(1, 8), kv_tokens=3_000, repeats=3)
    _, watcher, engine = swept(plan)
    setup = [record for record in watcher.records if case_of(record) is None]
    computed = sum(int(record.batch.extend_lens.sum()) for record in setup)
    visits = sum(record.batch.num_rows + 1 for record in setup if record.batch.num_rows <= 9)
    assert plan.stock_tokens <= computed <= plan.stock_tokens + visits + len(setup) + 9
    assert max(int(record.batch.extend_lens.sum()) for record in setup) <= plan.setup_tokens + 1
    state = engine.cache.pool_state()
    assert state.free + state.evictable == state.total
    for record in watcher.records:
        for request in record.batch.requests:
            assert request.finish_reason is FinishReason.LENGTH


def test_a_budget_that_ends_in_the_set_up_measures_what_it_reached() -> None:
    plan = SweepPlan((1, 8), (0, 50_000), repeats=None, budget_s=0.02)
    sweep, watcher, _ = swept(plan)
    assert {case.prefix_tokens for case in sweep.uncovered} == {50_000}
    assert {case.prefix_tokens for record in watcher.records if (case := case_of(record))} == {0}


def test_a_plan_comes_back_from_json() -> None:
    plan = SweepPlan((1, 64), (0, 4096), (1, 8), kv_tokens=100, repeats=None, budget_s=9.5)
    cases = plan.cases(5)
    assert SweepPlan.from_json(plan.as_json(cases)) == (plan, cases)
    plan = SweepPlan(None, batch=(1, 8))
    assert SweepPlan.from_json(plan.as_json(plan.cases(3))) == (plan, plan.cases(3))


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (SweepPlan((1, 4096)), "--tokens: 4096 is beyond the model's context of 4096"),
        (SweepPlan((1, 96), (0, 4000)), "--tokens: 96 behind a prefix of 4000 is beyond"),
        (SweepPlan(None, batch=(1, 2), kv_tokens=4090), "--kv-tokens 4090 is beyond"),
    ],
)
def test_what_is_beyond_the_context_is_named(plan: SweepPlan, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        plan.check(4096)
    plan.check(5000)
