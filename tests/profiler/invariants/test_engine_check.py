"""A running engine under the rules: whole it keeps them all, broken it is stopped with the rule's name."""

import pytest
from hypothesis import given, settings

from engine import admission, engine, results, retraction, scheduler
from engine.admission import PrefillAdder
from engine.cache import kv_cache
from engine.cache.kv_cache import KVCache
from engine.cache.radix import RadixTree
from engine.config import EngineConfig
from engine.request import SamplingParams
from engine.scheduler import Scheduler
from profiler.invariants import Status
from profiler.invariants.live import EngineCheck, InvariantError, hold_pool
from tests.support import corrupt_traces
from tests.support.corrupt_traces import checked_run
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.hash_executor import HashExecutor
from tests.support.mutations import Mutation
from tests.support.recorded import TickClock, TimedExecutor
from tests.support.seeded_workloads import seeded_workload
from tests.support.told import Told
from tests.support.workloads import Arrival, scenarios

USERS = (admission, engine, kv_cache, retraction, scheduler)  # modules that import what is broken
MOST_ROUNDS = 600  # of a broken engine that gets stuck

# The rule that names it, the seed of a workload in whose run it is found, and what is broken.
BROKEN = (
    ("inflight_bounds", 0, Mutation("a counter that no result lowers", results, "process_results",
        "inflight_middle_chunks -= 1", "inflight_middle_chunks -= 0")),
    ("middle_never_emits", 1, Mutation("a middle chunk that emits", results, "_outcome",
        "Outcome.MIDDLE_DROPPED", "Outcome.EMITTED")),
    ("one_owner_per_page", 0, Mutation("a page handed out while it is owned", KVCache, "checkpoint",
        "row[first : known // self.page_size]", "row[first:last]")),
    ("no_page_lost", 2, Mutation("duplicate pages never freed", KVCache, "checkpoint",
        "self._free(row[first : known // self.page_size])", "pass")),
    ("pool_counted", 0, Mutation("private pages counted wrong", KVCache, "checkpoint",
        "self.private_pages -= last - first", "self.private_pages -= last")),
    ("locks_counted", 0, Mutation("a lock on one node only", RadixTree, "_path",
        "node = node.parent", "return")),
    ("budgets_charged", 0, Mutation("a chunk budget not charged", PrefillAdder, "_commit",
        "self._chunk -= paged", "self._chunk -= 0")),
    ("cursor_contiguous", 1, Mutation("a chunk computed twice", Scheduler, "_stash_chunk",
        "request.prefix_len = request.extend_end", "pass")),
    ("rows_counted", 2, Mutation("a row that is never free again", KVCache, "release",
        "self._free_rows.append(request.row)", "pass")),
)  # fmt: skip


@settings(max_examples=ENGINE_EXAMPLES // 5, deadline=None)
@given(scenarios())
def test_any_run_keeps_every_rule(scenario: tuple[EngineConfig, list[Arrival]]) -> None:
    check = checked_run(*scenario)
    report = check.finish()
    assert report.having(Status.VIOLATED) == ()
    assert report.clean_end
    if check.trace.table("forwards").num_rows:
        unchecked = {rule.name for rule in report.having(Status.NOT_CHECKABLE)}
        untried = {"middle_never_emits", "cursor_completed", "token_sequence"}
        assert unchecked <= untried


@pytest.mark.parametrize(("rule", "seed", "mutation"), BROKEN, ids=[m.what for *_, m in BROKEN])
def test_a_broken_engine_is_stopped(
    rule: str, seed: int, mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corrupt_traces, "MAX_ROUNDS", MOST_ROUNDS)
    mutation.apply(monkeypatch, *USERS)
    with pytest.raises(InvariantError) as stopped:
        checked_run(*seeded_workload(seed)).finish()
    assert stopped.value.rule == rule
    assert stopped.value.violation.numbers
    assert str(stopped.value).startswith(f"{rule} at ")


def test_the_error_says_where_and_what() -> None:
    config = EngineConfig(disable_overlap_schedule=True).resolve(max_total_tokens=40, context_length=100)
    check = EngineCheck(config, HashExecutor(40, 1))
    check.engine.cache.allocator.alloc(3)
    with pytest.raises(InvariantError, match=r"^no_page_lost at the engine: page 1$"):
        hold_pool(check.engine.cache, [])
    with pytest.raises(InvariantError, match=r"^pool_conservation at forward 0: parts 37, total 40$"):
        check.engine.generate([[1, 2, 3]], SamplingParams(max_new_tokens=3))


def test_another_observer_is_told_of_everything_before_the_check() -> None:
    config = EngineConfig(chunked_prefill_size=8).resolve(max_total_tokens=100, context_length=100)
    told = Told()
    clock = TickClock()
    executor = TimedExecutor(HashExecutor(100, 1), clock)
    check = EngineCheck(config, executor, clock=clock, observer=told)
    check.engine.generate([[1] * 20, [2] * 3], SamplingParams(max_new_tokens=4))
    check.finish()
    assert len(told.records) == check.trace.table("forwards").num_rows > 0
    assert len(told.events) == check.trace.table("events").num_rows > 0
