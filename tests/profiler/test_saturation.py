"""Saturation points of curves whose answer is known, and of a trace's forwards."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.batch import ForwardMode
from profiler.points import Layout, Rows, prefill_points
from profiler.saturation import LAYOUT, Saturation, fit_saturation, saturation
from profiler.throughput_curve import ParametricCurve
from profiler.throughput_fit import fit_parametric
from profiler.throughput_smoother import fit_smoother
from tests.support.traces import MemoryTrace, forward, prefill_trace

TEN = np.unique(np.round(np.geomspace(8, 1024, 10)))
FORTY = np.unique(np.round(np.geomspace(1, 4096, 40)))
CPU_RATES = [150, 230, 340, 480, 640, 780, 860, 800, 770, 745]  # rises to about 200 tokens, then falls

FITS = settings(max_examples=min(settings().max_examples // 8, 200))  # an example takes 100 ms


def cpu_time(tokens: np.ndarray) -> np.ndarray:
    return tokens / np.exp(np.interp(np.log(tokens), np.log(TEN), np.log(CPU_RATES)))


def roofline(knee: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda tokens: np.maximum(1.0, tokens / knee)


def measured(
    sizes: np.ndarray, time: Callable[[np.ndarray], np.ndarray], noise: float = 0.0, repeats: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    tokens = np.repeat(sizes, repeats)
    return tokens, time(tokens) * np.exp(np.random.default_rng(7).normal(0, noise, len(tokens)))


def test_the_knee_of_a_roofline() -> None:
    found = fit_saturation(*measured(TEN, roofline(100)))
    assert found.status == "ok"
    assert found.fit_kind == "parametric"
    assert found.tokens == pytest.approx(95, abs=2)
    assert (found.first_reach, found.last_below) == (119, 69)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
def test_fixed_cost_memory_compute_and_attention(noise: float) -> None:
    def time(tokens: np.ndarray) -> np.ndarray:
        return 0.3 + np.maximum(1, tokens / 200) + tokens**2 / 3e6

    grid = np.arange(1, 4097)
    rates = grid / time(grid)
    truth = int(grid[rates >= 0.95 * rates.max()][0])
    found = fit_saturation(*measured(FORTY, time, noise))
    assert found.fit_kind == "parametric"
    assert found.tokens == pytest.approx(truth, rel=0.02 + 4 * noise)
    assert found.low is not None
    assert found.high is not None
    assert found.low * 0.98 <= truth <= found.high * 1.02


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_curve_that_peaks_and_falls_needs_the_smoother(noise: float) -> None:
    found = fit_saturation(*measured(TEN, cpu_time, noise))
    grid = np.arange(8, 1025)
    rates = grid / cpu_time(grid)
    truth = int(grid[rates >= 0.95 * rates.max()][0])
    assert found.fit_kind == "smoother"
    assert found.tokens == pytest.approx(truth, rel=0.08)
    assert found.last_below == 1024
    assert found.plateau is not None
    assert found.plateau.low < found.plateau.tokens_per_s < found.plateau.high
    assert found.plateau.tokens_per_s == pytest.approx(rates.max(), rel=0.04)
    assert found.curve is not None
    peak = grid[np.argmax(found.curve.throughput(grid.astype(float)))]
    assert 119 <= peak <= 348


@pytest.mark.parametrize("time", [lambda t: 1 + 0 * t, lambda t: 1 + t / 4000, roofline(900)])
@pytest.mark.parametrize("sizes", [TEN, np.arange(24, 1025, 8)])
def test_throughput_that_still_rises_is_not_saturated(
    time: Callable[[np.ndarray], np.ndarray], sizes: np.ndarray
) -> None:
    found = fit_saturation(*measured(sizes, time))
    assert found.status == "not_saturated"
    assert found.fit_kind is not None
    assert (found.tokens, found.low, found.high, found.first_reach, found.last_below) == (None,) * 5
    assert found.plateau is None


def test_wave_quantisation_does_not_move_the_point() -> None:
    """Work is done in tiles of 128 tokens; without tiles the forward would cost half a tile more."""

    def tiled(tokens: np.ndarray) -> np.ndarray:
        return 0.05 + np.maximum(1.0, np.ceil(tokens / 128) / 4)

    def untiled(tokens: np.ndarray) -> np.ndarray:
        return 0.05 + np.maximum(1.0, (tokens + 64) / 512)

    sizes = np.unique(np.round(np.geomspace(16, 4096, 60)))
    with_dips = fit_saturation(*measured(sizes, tiled, 0.002))
    without = fit_saturation(*measured(sizes, untiled, 0.002))
    assert with_dips.fit_kind == "smoother"
    assert with_dips.tokens == pytest.approx(without.tokens, rel=0.15)
    assert with_dips.low is not None
    assert with_dips.high is not None
    assert without.tokens is not None
    assert with_dips.low * 0.95 <= without.tokens <= with_dips.high * 1.05


def test_one_dip_does_not_move_the_smoother() -> None:
    tokens, times = measured(TEN, cpu_time)
    plain = fit_saturation(tokens, times, resamples=1)
    dipped = fit_saturation(tokens, np.where(tokens == TEN[4], times * 1.15, times), resamples=1)
    assert dipped.tokens == pytest.approx(plain.tokens, rel=0.1)


def test_an_outlier_among_repeats_does_not_move_the_point() -> None:
    tokens, times = measured(TEN, roofline(100), 0.01)
    spoilt = times.copy()
    spoilt[::3] *= 3
    plain = fit_saturation(tokens, times, resamples=1)
    assert fit_saturation(tokens, spoilt, resamples=1).tokens == pytest.approx(plain.tokens, rel=0.1)


def test_more_noise_widens_the_interval() -> None:
    def width(noise: float) -> int:
        found = fit_saturation(*measured(FORTY, lambda t: 1 + t / 100, noise), resamples=60)
        assert found.low is not None
        assert found.high is not None
        assert found.tokens is not None
        assert found.low <= found.tokens <= found.high
        return found.high - found.low

    assert width(0.0) < width(0.02) < width(0.08)


def test_a_machine_that_changed_within_the_sweep_widens_the_interval() -> None:
    """The same times, once as measured and once shuffled among the repeats of each size."""
    passes, rng = 10, np.random.default_rng(5)
    tokens = np.tile(FORTY, passes)
    late = np.repeat(np.arange(passes), len(FORTY)) >= 5
    times = 0.3 + np.maximum(1, tokens / 200) + tokens**2 / 3e6
    times *= np.exp(rng.normal(0, 0.02, len(tokens)))
    times[late & (tokens < 500)] *= 1.10  # a neighbour takes memory bandwidth, which small forwards live on
    shuffled = times.copy()
    for size in FORTY:
        shuffled[tokens == size] = rng.permutation(times[tokens == size])

    def width(times: np.ndarray) -> float:
        found = fit_saturation(tokens, times)
        assert found.low is not None
        assert found.high is not None
        return found.high / found.low

    assert width(times) > 1.08 * width(shuffled)


def test_points_without_repeats_still_have_an_interval() -> None:
    found = fit_saturation(*measured(FORTY, lambda t: 1 + t / 100, 0.03, repeats=1))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.high


def test_thousands_of_sizes_are_fitted_in_groups() -> None:
    tokens = np.random.default_rng(3).integers(1, 4097, 4000).astype(float)
    found = fit_saturation(tokens, 1 + np.maximum(1, tokens / 300), resamples=20)
    assert found.num_sizes > 1000
    rates = np.arange(1, 4097) / (1 + np.maximum(1, np.arange(1, 4097) / 300))
    assert found.tokens == pytest.approx(np.argmax(rates >= 0.95 * rates.max()) + 1, rel=0.03)


def test_a_dip_at_the_largest_size_is_no_saturation() -> None:
    tokens, times = measured(TEN, lambda t: 1 + t / 4000, 0.01)
    times[tokens == TEN[-1]] *= 1.25
    found = fit_saturation(tokens, times, resamples=1)
    assert found.status == "not_saturated"


@pytest.mark.parametrize("sizes", [[], [8] * 20, list(range(8, 15))])
def test_fewer_than_eight_sizes_are_too_few(sizes: list[int]) -> None:
    found = fit_saturation(np.array(sizes, dtype=float), np.ones(len(sizes)))
    assert found == Saturation("too_few_points", 0.95, num_points=len(sizes), num_sizes=len(set(sizes)))


def test_a_smaller_share_is_reached_earlier() -> None:
    points = measured(FORTY, lambda t: 1 + t / 100)
    shares = [fit_saturation(*points, q=q, resamples=1).tokens for q in (0.5, 0.8, 0.9, 0.95)]
    assert None not in shares
    assert shares == sorted(shares)  # type: ignore[type-var]
    assert shares[0] == pytest.approx(95, abs=2)  # half of the best at 4,096 tokens


@FITS
@given(
    scale=st.floats(1e-6, 1e6),
    seed=st.integers(0, 2**32),
    noise=st.sampled_from([0.0, 0.01]),
    time=st.sampled_from([roofline(100), cpu_time, lambda t: 1 + t / 50]),
)
def test_units_of_time_and_order_of_points_do_not_matter(
    scale: float, seed: int, noise: float, time: Callable[[np.ndarray], np.ndarray]
) -> None:
    tokens, times = measured(TEN, time, noise)
    order = np.random.default_rng(seed).permutation(len(tokens))
    plain = fit_saturation(tokens, times, resamples=1)
    for again in (
        fit_saturation(tokens[order], times[order], resamples=1),
        fit_saturation(tokens, times * scale, resamples=1),
    ):
        assert (again.status, again.fit_kind) == (plain.status, plain.fit_kind)
        assert (again.first_reach, again.last_below) == (plain.first_reach, plain.last_below)
        assert again.tokens == pytest.approx(plain.tokens, rel=0.01, abs=1)


@FITS
@given(
    times=st.lists(st.floats(1e-9, 1e9), min_size=20, max_size=20),
    q=st.sampled_from([0.5, 0.95, 1.0]),
    layout=st.sampled_from([Layout(), Layout(low=4096, high=8000), Layout(Rows.DECODE, None, None)]),
)
def test_any_times_have_an_answer(times: list[float], q: float, layout: Layout) -> None:
    found = fit_saturation(np.tile(TEN, 2), np.array(times), q, resamples=5, layout=layout)
    if found.tokens is None:
        assert found.status == "not_saturated"
        return
    assert found.low is not None
    assert found.high is not None
    assert found.plateau is not None
    assert TEN[0] <= found.low <= found.tokens <= found.high <= TEN[-1]
    assert found.plateau.low <= found.plateau.tokens_per_s <= found.plateau.high < np.inf


@FITS
@given(st.lists(st.floats(1e-3, 1e3), min_size=10, max_size=10))
def test_the_smoother_rises_concave_then_never_rises_again(times: list[float]) -> None:
    curve, _weights = fit_smoother(TEN, np.array(times), np.full(10, 0.01))
    rates = np.array(curve.log_throughput)
    slopes = np.diff(rates) / np.diff(curve.log_tokens)
    assert np.all(slopes[: curve.peak] >= -1e-6)
    assert np.all(np.diff(slopes[: curve.peak]) <= 1e-6)
    assert np.all(slopes[curve.peak :] <= 1e-6)


@given(
    st.tuples(st.floats(1e-3, 1), st.floats(1e-2, 10), st.floats(1e-4, 1e-1), st.floats(1e-9, 1e-5)),
    st.floats(1, 32),
)
def test_sensitivity_is_the_derivative_of_log_time(
    terms: tuple[float, float, float, float], sharpness: float
) -> None:
    values = [*terms, sharpness]
    step = 1e-6
    for i, column in enumerate(ParametricCurve(*values).sensitivity(TEN).T):
        up, down = list(values), list(values)
        up[i] *= np.exp(step)
        down[i] *= np.exp(-step)
        slope = np.log(ParametricCurve(*up).time(TEN) / ParametricCurve(*down).time(TEN)) / (2 * step)
        assert column == pytest.approx(slope, rel=1e-3, abs=1e-6)


def test_the_parametric_fit_finds_its_own_parameters() -> None:
    truth = ParametricCurve(fixed=0.2, memory=1.0, compute=0.004, attention=1e-7, sharpness=4.0)
    found, weights = fit_parametric(FORTY, truth.time(FORTY), np.full(len(FORTY), 0.01))
    assert np.all(weights > 0.9)
    assert found.time(FORTY) == pytest.approx(truth.time(FORTY), rel=1e-3)
    assert found.compute == pytest.approx(truth.compute, rel=0.02)
    assert found.attention == pytest.approx(truth.attention, rel=0.1)


def test_points_are_single_prompts_without_prefix() -> None:
    one = {"num_extend_seqs": 1, "prefix_tokens": 0, "extend_tokens": 64}
    trace = MemoryTrace(
        {
            "forwards": [
                forward(0, 0, 10, ForwardMode.EXTEND, **one),
                forward(1, 10, 30, ForwardMode.EXTEND, **one | {"num_extend_seqs": 2}),
                forward(2, 30, 40, ForwardMode.EXTEND, **one | {"prefix_tokens": 16}),
                forward(3, 40, 50, ForwardMode.DECODE, **one),
                forward(4, 50, 60, ForwardMode.MIXED, **one),
                {**forward(5, 60, 70, ForwardMode.EXTEND, **one), "end_ns": None},
                forward(6, 70, 95, ForwardMode.EXTEND, **one | {"extend_tokens": 128}),
            ]
        }
    )
    assert prefill_points(trace).points.rows() == [(0, 64, 10), (6, 128, 25)]


def test_saturation_of_a_trace_is_that_of_its_points() -> None:
    tokens, times = measured(TEN, roofline(100), 0.01)
    nanoseconds = [round(t * 1e8) for t in times]
    trace = prefill_trace(list(zip(tokens.astype(int).tolist(), nanoseconds, strict=True)))
    found = saturation(trace)
    assert found.layout == LAYOUT
    assert (found.num_points, found.num_sizes) == (30, 10)
    assert found.tokens == pytest.approx(95, rel=0.1)
    assert found.curve is not None
    assert found.curve.throughput(np.array([1000.0]))[0] == pytest.approx(100 / 0.1, rel=0.03)


def test_a_trace_without_prefills_has_too_few_points() -> None:
    assert saturation(MemoryTrace({})).status == "too_few_points"
