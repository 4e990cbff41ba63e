"""The curve behind a saturation point: which fit, where it dips below, and how far it may be off."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.throughput_curve import NUM_PARAMETERS, Curve, ParametricCurve, Work, log_times
from profiler.throughput_fit import fit_parametric, refit_parametric
from profiler.throughput_sizes import FLOOR, Sizes
from profiler.throughput_smoother import SmoothCurve, fit_smoother, refit_smoother

__all__ = ["Dip", "FittedCurve", "fit_curve"]

Array = NDArray[np.float64]

_DEEP = 0.05  # a dip is at least this far below the curve
_CLEAR = 3.0  # and at least this many standard errors
_MOST_DIPPED = 0.25  # of the sizes; a model that calls more of them dips does not hold


@dataclass(frozen=True, slots=True)
class Dip:
    """Neighbouring measured sizes clearly below the curve, as wave quantisation makes them."""

    first: int  # tokens
    last: int
    depth: float  # 1 - throughput / curve, at the deepest


@dataclass(frozen=True, slots=True)
class FittedCurve:
    """A curve through sizes, and (sizes,) how far levels measured again would lie from it."""

    curve: Curve
    sizes: Sizes
    kept: NDArray[np.bool_]  # whether the size took part
    deviations: Array  # standard deviations of log throughput

    @property
    def kind(self) -> str:
        """Which fit it is: `parametric` or `smoother`."""
        return "parametric" if isinstance(self.curve, ParametricCurve) else "smoother"

    @property
    def dips(self) -> tuple[Dip, ...]:
        """Runs of sizes below the curve, ascending."""
        return _dips(self.sizes, self.curve)

    def resampled(self, grid: Array, count: int, rng: np.random.Generator) -> Array:
        """(count, grid) throughput of curves of the same kind through levels that might as well have come."""
        noise = self.deviations * rng.standard_normal((count, len(self.deviations)))
        return self._refitted(np.log(self.curve.throughput(self.sizes.tokens)) + noise, grid)

    def without_parts(self, grid: Array) -> Array:
        """(parts, grid) throughput of curves of the same kind without each part of the time in turn."""
        return self._refitted(self.sizes.without, grid)

    def _refitted(self, levels: Array, grid: Array) -> Array:
        """(fits, grid) throughput of curves through (fits, sizes) levels."""
        tokens = self.sizes.tokens
        precision = np.where(self.kept, self.sizes.errors**-2.0, 0.0)
        if isinstance(self.curve, ParametricCurve):
            vectors = refit_parametric(self.curve, tokens, np.log(tokens) - levels, precision)
            rates: Array = grid / np.exp(log_times(vectors, grid, self.curve.work.of(grid)))
            return rates
        assert isinstance(self.curve, SmoothCurve)
        at_knots = refit_smoother(self.curve, tokens, levels, precision)
        smooth: Array = np.exp([np.interp(np.log(grid), self.curve.log_tokens, knots) for knots in at_knots])
        return smooth


def fit_curve(sizes: Sizes, work: Work) -> FittedCurve:
    """The parametric model if it misses no more than the repeats allow, dips aside, else the smoother."""
    model, weights = fit_parametric(sizes.tokens, sizes.times, sizes.errors, work)
    if _describes(model, sizes):
        return _fitted(model, sizes, weights, NUM_PARAMETERS, 0.0)
    smoother, weights = fit_smoother(sizes.tokens, sizes.times, sizes.errors)
    return _fitted(smoother, sizes, weights, smoother.freedom, FLOOR)


def _describes(model: Curve, sizes: Sizes) -> bool:
    """Whether misses of sizes outside of dips are such as repeats, or 1 %, allow."""
    usual = ~_below(sizes, model)
    if usual.mean() < 1 - _MOST_DIPPED:
        return False
    misses = np.log(model.throughput(sizes.tokens)) - sizes.levels
    left = max(int(usual.sum()) - NUM_PARAMETERS, 1)
    return float((misses[usual] ** 2).sum()) <= left * float((sizes.allowed[usual] ** 2).mean())


def _fitted(curve: Curve, sizes: Sizes, weights: Array, freedom: float, least: float) -> FittedCurve:
    """With what the repeats' noise does not explain of the misses, or `least`, added for every size alike."""
    kept = weights > 0
    misses = np.log(curve.throughput(sizes.tokens)) - sizes.levels
    unexplained = float((misses[kept] ** 2).sum()) / max(int(kept.sum()) - freedom, 1)
    model_error = max(unexplained - float((sizes.noise[kept] ** 2).mean()), least**2)
    return FittedCurve(curve, sizes, kept, np.sqrt(sizes.noise**2 + model_error))


def _below(sizes: Sizes, curve: Curve) -> NDArray[np.bool_]:
    """(sizes,) whether throughput lies clearly below the curve."""
    short = np.log(curve.throughput(sizes.tokens)) - sizes.levels
    scale = 1.4826 * float(np.median(np.abs(short)))
    clear: NDArray[np.bool_] = short > np.maximum(
        -np.log(1 - _DEEP), _CLEAR * np.maximum(sizes.errors, scale)
    )
    return clear


def _dips(sizes: Sizes, curve: Curve) -> tuple[Dip, ...]:
    below = _below(sizes, curve)
    depths = 1 - np.exp(sizes.levels) / curve.throughput(sizes.tokens)
    runs = np.split(np.arange(len(below)), np.flatnonzero(np.diff(below)) + 1)
    return tuple(
        Dip(round(sizes.tokens[run[0]]), round(sizes.tokens[run[-1]]), float(depths[run].max()))
        for run in runs
        if below[run[0]]
    )
