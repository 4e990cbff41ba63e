"""Saturation points of sweeps whose truth is known: how near, how often in the interval, how wide that is.

    python benchmarks/saturation_synthetic.py [--seeds 100]

Sweeps are drawn from the model of a forward itself: 24 sizes, five repeats, 3 % noise, one size 20 % slow,
2 % of forwards taking three times as long. Three sets of parameters, a row each. Beside the error stands the
least that any unbiased estimator can have: the median of |N(0, s)| with s from the Cramer-Rao bound of the
same sweep without dip and outliers. Then the same with 0.3 % noise and nothing else, ranges that end before
saturation, and seven sizes.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from profiler.saturation import Saturation, fit_saturation
from profiler.sweep import sweep_sizes
from profiler.throughput_curve import ParametricCurve

Array = NDArray[np.float64]

Q = 0.95
SIZES, REPEATS = 24, 5
LARGEST = 8192
NOISE, SLOW_SIZE, OUTLIERS, OUTLIER = 0.03, 0.8, 0.02, 3.0
QUIET = 0.003
ENDS = (0.5, 0.35)  # of the true point: ranges in which throughput still rises
MEDIAN_OF_HALF_NORMAL = 0.6745

CURVES = {
    "8B on a data-centre GPU": ParametricCurve(
        fixed=5e-4, memory=6e-3, compute=25e-6, attention=8e-10, sharpness=4.0
    ),
    "135M on a CPU": ParametricCurve(
        fixed=3e-3, memory=4e-2, compute=1.2e-3, attention=1.5e-7, sharpness=2.0
    ),
    "small model, launch bound": ParametricCurve(
        fixed=2e-3, memory=1e-3, compute=5e-6, attention=1.5e-10, sharpness=3.0
    ),
}


@dataclass(frozen=True, slots=True)
class Noise:
    """What is wrong with measured times."""

    spread: float = NOISE
    slow_size: bool = True
    outliers: float = OUTLIERS


NOISY, CALM = Noise(), Noise(QUIET, slow_size=False, outliers=0.0)


@dataclass(frozen=True, slots=True)
class Score:
    """How many points of one curve were found how well; shares of all seeds, errors relative."""

    within_30: float
    within_10: float
    median_error: float
    covered: float
    median_width: float  # high / low
    parametric: float


def sizes_up_to(largest: int, count: int = SIZES) -> Array:
    """Sizes in geometric steps from 1."""
    return np.array(sweep_sizes(f"1:{largest}", count), dtype=np.float64)


def true_point(curve: ParametricCurve, largest: int = LARGEST) -> int:
    """The smallest whole size with 95 % of the curve's best up to `largest`."""
    tokens = np.arange(1, largest + 1, dtype=np.float64)
    rates = curve.throughput(tokens)
    return int(tokens[np.argmax(rates >= Q * rates.max())])


def swept(curve: ParametricCurve, sizes: Array, seed: int, noise: Noise = NOISY) -> tuple[Array, Array]:
    """(points,) tokens and seconds in the order of a sweep: every size once, then again."""
    rng = np.random.default_rng(seed)
    tokens = np.concatenate([rng.permutation(sizes) for _ in range(REPEATS)])
    times = curve.time(tokens) * np.exp(rng.normal(0, noise.spread, len(tokens)))
    if noise.slow_size:
        times[tokens == rng.choice(sizes)] /= SLOW_SIZE
    times[rng.random(len(tokens)) < noise.outliers] *= OUTLIER
    return tokens, times


def found_points(curve: ParametricCurve, seeds: int, noise: Noise) -> list[Saturation]:
    """The point of each seed's sweep."""
    sizes = sizes_up_to(LARGEST)
    return [fit_saturation(*swept(curve, sizes, seed, noise), Q, seed) for seed in range(seeds)]


def score(found: Sequence[Saturation], truth: int) -> Score:
    """A sweep without a point counts as an error without end."""
    known = [each for each in found if each.tokens is not None and each.low and each.high]
    errors = np.full(len(found), np.inf)
    errors[: len(known)] = [abs((each.tokens or 0) / truth - 1) for each in known]
    return Score(
        within_30=float(np.mean(errors <= 0.3)),
        within_10=float(np.mean(errors <= 0.1)),
        median_error=float(np.median(errors)),
        covered=sum((each.low or 0) <= truth <= (each.high or 0) for each in known) / len(found),
        median_width=float(np.median([(each.high or 0) / (each.low or 1) for each in known])),
        parametric=sum(each.fit_kind == "parametric" for each in found) / len(found),
    )


def least_median_error(curve: ParametricCurve, noise: float) -> float:
    """The median relative error of an estimator that reaches the Cramer-Rao bound of the log of the point.

    The covariance of the log parameters is noise² (JᵀJ)⁻¹, J being the sensitivity of log time; the point's
    variance follows by its gradient.
    """
    sensitivity = curve.sensitivity(np.repeat(sizes_up_to(LARGEST), REPEATS))
    covariance = np.linalg.pinv(sensitivity.T @ sensitivity, rcond=1e-12) * noise**2
    step, vector = 0.01, curve.vector()
    steps = step * np.eye(len(vector))
    gradient = np.array([_log_point(vector + s) - _log_point(vector - s) for s in steps]) / (2 * step)
    return MEDIAN_OF_HALF_NORMAL * float(np.sqrt(gradient @ covariance @ gradient))


def _log_point(vector: Array) -> float:
    fixed, memory, compute, attention, sharpness = np.exp(vector).tolist()
    tokens = np.geomspace(1, LARGEST, 100_000)
    rates = ParametricCurve(fixed, memory, compute, attention, sharpness).throughput(tokens)
    return float(np.log(tokens[np.argmax(rates >= Q * rates.max())]))


def rising_statuses(curve: ParametricCurve, seeds: int) -> list[str]:
    """What is said of ranges that end before the point."""
    ends = [round(true_point(curve) * end) for end in ENDS]
    return [
        fit_saturation(*swept(curve, sizes_up_to(end), seed), Q, seed, resamples=1).status
        for end in ends
        for seed in range(seeds)
    ]


def print_scores(title: str, noise: Noise, seeds: int) -> None:
    """A row for each curve."""
    print(f"\n{title}, {seeds} seeds")
    print(f"{'':28}{'truth':>6} within 30 %  10 %   median error (least)  covered  high/low  parametric")
    for name, curve in CURVES.items():
        truth = true_point(curve)
        told = score(found_points(curve, seeds, noise), truth)
        least = least_median_error(curve, noise.spread)
        print(
            f"{name:28}{truth:6} {told.within_30:11.0%} {told.within_10:5.0%} {told.median_error:13.2%} "
            f"({least:.2%}) {told.covered:10.0%} {told.median_width:9.2f} {told.parametric:11.0%}",
            flush=True,
        )


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    seeds = parser.parse_args().seeds
    print_scores("3 % noise, one size 20 % slow, 2 % outliers at three times", NOISY, seeds)
    print_scores("0.3 % noise", CALM, seeds)
    print("\nno saturation in range (sizes up to 50 % and 35 % of the true point)")
    for name, curve in CURVES.items():
        statuses = rising_statuses(curve, seeds)
        print(f"{name:28}{statuses.count('not_saturated')} of {len(statuses)} not_saturated")
    few = fit_saturation(*swept(CURVES["135M on a CPU"], sizes_up_to(LARGEST, 7), 0))
    print(f"\nseven sizes: {few.status}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
