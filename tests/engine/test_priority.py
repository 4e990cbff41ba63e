"""Victims of preemption against the numbers observed in SGLang."""

import pytest

from engine.config import EngineConfig
from engine.priority import PriorityRules
from engine.request import FinishReason, Request, SamplingParams

SMALL_FIRST = PriorityRules(enabled=True, preempt=True, low_values_first=True, threshold=0)
FIVE = ((0, 50), (1, 75), (2, 100), (2, 125), (2, 125))


def _request(rid: int, priority: int, max_new: int, arrival_ns: int = 0) -> Request:
    return Request(rid, f"r{rid}", [1], SamplingParams(max_new), arrival_ns=arrival_ns, priority=priority)


def _victims(rules: PriorityRules, running: list[Request], priority: int, need: int) -> list[int]:
    """What each victim had reserved."""
    candidate = _request(99, priority, need)
    return [v.max_new_tokens for v in rules.victims(candidate, running, need, lambda r: r.max_new_tokens)]


@pytest.mark.parametrize(
    ("need", "victims"),
    [
        (75, [100]),
        (100, [100]),
        (101, [100, 125]),
        (200, [100, 125]),
        (350, [100, 125, 125]),
        (351, []),
    ],
)
def test_victims_are_the_least_urgent_in_batch_order(need: int, victims: list[int]) -> None:
    running = [_request(i, *kind) for i, kind in enumerate(FIVE)]
    assert _victims(SMALL_FIRST, running, 1, need) == victims


def test_of_equally_urgent_ones_the_last_that_arrived_goes_first() -> None:
    running = [_request(i, *kind, arrival_ns=i) for i, kind in enumerate(FIVE)]
    assert _victims(SMALL_FIRST, running, 1, 200) == [125, 125]


@pytest.mark.parametrize(("need", "victims"), [(50, [50]), (51, [])])
def test_the_need_must_be_met_whole(need: int, victims: list[int]) -> None:
    rules = PriorityRules(enabled=True, preempt=True, low_values_first=False, threshold=0)
    running = [_request(i, *kind) for i, kind in enumerate(((0, 50), (1, 75), (2, 100)))]
    assert _victims(rules, running, 1, need) == victims


@pytest.mark.parametrize(("priority", "victims"), [(10, []), (11, [50])])
def test_a_victim_is_less_urgent_by_more_than_the_threshold(priority: int, victims: list[int]) -> None:
    rules = PriorityRules.of(EngineConfig(enable_priority_scheduling=True))
    assert _victims(rules, [_request(0, 0, 50)], priority, 20) == victims


def test_one_victim_is_taken_even_where_memory_would_do() -> None:
    assert _victims(SMALL_FIRST, [_request(i, 5, 50) for i in range(2)], 0, -1000) == [50]


def test_nobody_gives_way_twice() -> None:
    ended = _request(0, 9, 500)
    ended.finish_reason = FinishReason.LENGTH
    assert _victims(SMALL_FIRST, [ended, _request(1, 9, 50)], 0, 20) == [50]


def test_preemption_needs_priorities_and_can_be_switched_off() -> None:
    assert not PriorityRules.of(EngineConfig()).preempt
    on = EngineConfig(enable_priority_scheduling=True)
    assert PriorityRules.of(on).preempt
    off = EngineConfig(enable_priority_scheduling=True, disable_priority_preemption=True)
    assert (PriorityRules.of(off).enabled, PriorityRules.of(off).preempt) == (True, False)
