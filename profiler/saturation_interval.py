"""How far a saturation point may be off, and the best throughput that it is a share of."""

import numpy as np
from numpy.typing import NDArray

from profiler.saturation_curve import FittedCurve
from profiler.throughput_sizes import FLOOR, PARTS

__all__ = ["intervals"]

Array = NDArray[np.float64]

_PERCENTILES = (2.5, 97.5)
_SIGMAS = 1.96  # the same of a normal distribution
_GRID = 400  # sizes that resamples are compared on


def intervals(
    fitted: FittedCurve, ends: tuple[float, float], q: float, rng: np.random.Generator, resamples: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """95 % intervals of the point, and of the best throughput, over a range: factors up to 1 and from 1.

    Their widths are those of resamples, or of leaving out parts of the time where these differ by more, and
    beside that what a model is off at best. docs/metrics.md has the definition.
    """
    grid = np.geomspace(*ends, _GRID)
    fit = fitted.curve.throughput(grid)[None]
    (point,), (best,) = _reached(fit, grid, q)
    tolerated = np.log([_reached(fit, grid, q - FLOOR)[0][0], _reached(fit, grid, min(q + FLOOR, 1.0))[0][0]])
    drawn = _reached(fitted.resampled(grid, resamples, rng), grid, q)
    parted = _reached(fitted.without_parts(grid), grid, q)
    return (
        _factors(np.log(drawn[0] / point), np.log(parted[0] / point), tolerated - np.log(point)),
        _factors(np.log(drawn[1] / best), np.log(parted[1] / best), np.array([-FLOOR, FLOOR])),
    )


def _factors(drawn: Array, parted: Array, tolerated: Array) -> tuple[float, float]:
    """The ends of an interval from logs of ratios to the estimate.

    The jackknife's variance over parts is (parts - 1) / parts times their sum of squares (Efron and Stein,
    1981).
    """
    drift = _SIGMAS * np.sqrt((PARTS - 1) / PARTS * ((parted - parted.mean()) ** 2).sum())
    low, high = np.percentile(drawn, _PERCENTILES)
    below = np.hypot(max(-low, drift), tolerated[0])
    above = np.hypot(max(high, drift), tolerated[1])
    return float(np.exp(-below)), float(np.exp(above))


def _reached(rates: Array, grid: Array, q: float) -> tuple[Array, Array]:
    """(fits,) tokens at which (fits, grid) throughput reaches q of its best, and (fits,) that best."""
    best = rates.max(axis=1)
    at = np.argmax(rates >= q * best[:, None], axis=1)
    before, row = np.maximum(at - 1, 0), np.arange(len(rates))
    rise = rates[row, at] - rates[row, before]
    part = np.where(rise > 0, (q * best - rates[row, before]) / np.where(rise > 0, rise, 1), 1.0)
    return grid[before] + part * (grid[at] - grid[before]), best
