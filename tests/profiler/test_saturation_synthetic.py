"""Saturation points of noisy sweeps with a known point: benchmarks/saturation_synthetic.py has the sets."""

import pytest

from benchmarks.saturation_synthetic import (
    CALM,
    CURVES,
    LARGEST,
    NOISY,
    found_points,
    least_median_error,
    rising_statuses,
    score,
    sizes_up_to,
    swept,
    true_point,
)
from profiler.saturation import fit_saturation
from profiler.throughput_curve import ParametricCurve
from tests.support.counts import SATURATION_SEEDS

SETS = {
    "8B on a data-centre GPU": (ParametricCurve(5e-4, 6e-3, 25e-6, 8e-10, 4.0), 370),
    "135M on a CPU": (ParametricCurve(3e-3, 4e-2, 1.2e-3, 1.5e-7, 2.0), 91),
    "small model, launch bound": (ParametricCurve(2e-3, 1e-3, 5e-6, 1.5e-10, 3.0), 1734),
}


@pytest.mark.parametrize("name", SETS)
def test_the_sets_are_those_of_the_benchmark(name: str) -> None:
    curve, truth = SETS[name]
    assert curve == CURVES[name]
    assert true_point(curve) == truth


@pytest.mark.parametrize("name", SETS)
def test_points_are_found_through_noise_a_dip_and_outliers(name: str) -> None:
    curve, truth = SETS[name]
    found = found_points(curve, SATURATION_SEEDS, NOISY)
    told = score(found, truth)
    assert told.within_30 >= 0.9
    assert told.median_error < 0.05
    assert told.covered >= 0.85
    assert told.median_width < 2.5


@pytest.mark.parametrize("name", SETS)
def test_nearly_exact_times_give_nearly_exact_points(name: str) -> None:
    curve, truth = SETS[name]
    assert score(found_points(curve, SATURATION_SEEDS, CALM), truth).within_10 >= 0.95


@pytest.mark.parametrize("name", SETS)
def test_a_range_that_ends_before_the_point_is_not_saturated(name: str) -> None:
    assert set(rising_statuses(SETS[name][0], SATURATION_SEEDS)) == {"not_saturated"}


@pytest.mark.parametrize("name", SETS)
def test_the_slow_size_is_marked_as_the_only_dip(name: str) -> None:
    curve, _truth = SETS[name]
    for seed in range(3):
        tokens, times = swept(curve, sizes_up_to(LARGEST), seed)
        slow = max(set(tokens), key=lambda size: sorted((times / curve.time(tokens))[tokens == size])[2])
        (dip,) = fit_saturation(tokens, times, resamples=1).dips
        assert (dip.first, dip.last) == (slow, slow)
        assert dip.depth == pytest.approx(0.2, abs=0.06)


def test_seven_sizes_are_too_few() -> None:
    tokens, times = swept(SETS["135M on a CPU"][0], sizes_up_to(LARGEST, 7), 0)
    assert fit_saturation(tokens, times).status == "too_few_points"


@pytest.mark.parametrize("name", SETS)
def test_no_bound_asks_for_more_than_an_estimator_can_give(name: str) -> None:
    assert 0.01 < least_median_error(SETS[name][0], 0.03) < 0.05
