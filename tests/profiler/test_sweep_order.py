"""The order of a sweep: random passes, repeats where they are needed, and an end in time."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.sweep_cases import SweepCase, geometric_sizes
from profiler.sweep_order import ENOUGH_REPEATS, Timings, budgeted, num_sizes_for, repeated

SIZES = [SweepCase(size) for size in geometric_sizes(1, 2048, 20)]


class Device:
    """Takes 50 ms up to 64 tokens and in proportion above, times a random factor; counts its time."""

    def __init__(self, noise: Callable[[SweepCase], float], seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.noise = noise
        self.spent_s = self.last_s = 0.0
        self.order: list[SweepCase] = []

    def run(self, case: SweepCase) -> float:
        time_s = 0.05 * max(1.0, case.tokens / 64) * float(np.exp(self.rng.normal(0, self.noise(case))))
        self.spent_s += time_s
        self.last_s = time_s
        self.order.append(case)
        return time_s


def swept(device: Device, budget_s: float, cases: list[SweepCase] = SIZES, seed: int = 0) -> Timings:
    timings = Timings()
    timings.note(cases[0], 0.05)
    for case in budgeted(cases, timings, np.random.default_rng(seed), lambda: budget_s - device.spent_s):
        time_s = device.run(case)
        timings.note(case, time_s, time_s)
    return timings


def test_the_first_pass_has_every_size_once_in_random_order() -> None:
    device = Device(lambda case: 0.05)
    swept(device, 200)
    first = device.order[: len(SIZES)]
    assert sorted(first) == SIZES
    assert first != SIZES


def test_all_sizes_are_repeated_and_cheap_ones_more_often() -> None:
    timings = swept(Device(lambda case: 0.05), 60)
    repeats = [timings.repeats(case) for case in SIZES]
    assert min(repeats) >= 2
    assert repeats[0] >= 3 * repeats[-1]


def test_later_passes_mix_the_sizes() -> None:
    """No size has its repeats in one stretch: each comes in both halves of the time."""
    device = Device(lambda case: 0.05)
    swept(device, 60)
    half = len(device.order) // 2
    assert set(device.order[:half]) == set(device.order[half:]) == set(SIZES)


def test_a_disturbed_size_is_repeated_more_often() -> None:
    disturbed = SIZES[-4]
    calm = swept(Device(lambda case: 0.02), 200)
    found = swept(Device(lambda case: 0.3 if case == disturbed else 0.02), 200)
    assert found.repeats(disturbed) > 2 * calm.repeats(disturbed)


def test_it_ends_early_when_all_are_known_well() -> None:
    device = Device(lambda case: 0.0005)
    timings = swept(device, 10_000)
    assert device.spent_s < 100
    assert min(timings.repeats(case) for case in SIZES) >= ENOUGH_REPEATS
    assert all(timings.known_well(SIZES))


@settings(max_examples=30)
@given(st.floats(0.01, 60), st.integers(0, 1_000))
def test_the_budget_is_exceeded_by_less_than_one_forward(budget_s: float, seed: int) -> None:
    device = Device(lambda case: 0.2, seed)
    swept(device, budget_s, seed=seed)
    assert device.spent_s - device.last_s <= budget_s


def test_sizes_that_never_fit_do_not_keep_the_others_from_being_repeated() -> None:
    small, large = SIZES[0], SIZES[-1]
    timings = swept(Device(lambda case: 0.1), 1.5, [small, large])
    assert timings.repeats(large) == 0
    assert timings.repeats(small) > 20


@pytest.mark.parametrize(
    ("budget_s", "layouts", "count"), [(10_000, 1, 24), (60, 1, 16), (100, 1, 19), (60, 2, 12)]
)
def test_there_are_as_many_sizes_as_three_passes_have_time_for(
    budget_s: float, layouts: int, count: int
) -> None:
    timings = Timings()
    timings.note(SweepCase(1), 0.004)

    def cases_of(number: int) -> list[SweepCase]:
        return [SweepCase(size) for size in geometric_sizes(1, 2048, number)] * layouts

    assert num_sizes_for(cases_of, timings, budget_s, layouts=layouts) == count


def test_what_a_case_may_cost_comes_from_smaller_ones_of_its_kind() -> None:
    timings = Timings()
    assert timings.cost_s(SweepCase(100)) == 0
    for case, cost_s in (
        (SweepCase(10), 1.0),
        (SweepCase(50), 2.0),
        (SweepCase(50, 4096), 3.0),
        (SweepCase(90, 99, decode=True), 7.0),
    ):
        timings.note(case, cost_s)
    assert timings.cost_s(SweepCase(50)) == 2
    assert timings.cost_s(SweepCase(100)) == 4
    assert timings.cost_s(SweepCase(100, 8192)) == 6
    assert timings.cost_s(SweepCase(5)) == 0
    assert timings.cost_s(SweepCase(180, 99, decode=True)) == 14
    assert timings.cost_s(SweepCase(50, 99, decode=True)) == 2 * 5  # by the prompts of 50 tokens


def test_repeats_are_passes_that_go_on_where_they_stopped() -> None:
    timings, rng = Timings(), np.random.default_rng(3)
    timings.note(SIZES[2], 1.0, 1.0)
    seen = []
    for case in repeated(SIZES[:5], timings, rng, 2):
        timings.note(case, 1.0, 1.0)
        seen.append(case)
    assert Counter(seen) == {**dict.fromkeys(SIZES[:5], 2), SIZES[2]: 1}
    assert SIZES[2] not in seen[:4]
