"""Whatever stands in a trace, the check comes to an end and says so of every rule."""

from random import Random

import pytest

from profiler.invariants import RULES, check_trace
from tests.support.corrupt_at_random import corrupt_at_random
from tests.support.corrupt_traces import RUNS, recorded


def check_damaged(seed: int) -> None:
    rng = Random(seed)
    trace = recorded(rng.choice(list(RUNS)))
    corrupt_at_random(trace, rng)
    assert len(check_trace(trace.trace()).rules) == len(RULES)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_trace_is_checked_all_the_same(seed: int) -> None:
    check_damaged(seed)


@pytest.mark.long
def test_many_damaged_traces() -> None:
    for seed in range(12, 2_000):
        check_damaged(seed)
