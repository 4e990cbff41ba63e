"""A smooth curve of a given shape through measured throughput, where the formula does not describe it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from profiler.throughput_fit import bisquare, own_scale

__all__ = ["SmoothCurve", "fit_smoother", "refit_smoother"]

Array = NDArray[np.float64]

_MAX_KNOTS = 40
_REWEIGHTED = 3
_NEAR_PEAKS = 2  # knots to either side that are tried again as the end of the rise
_STIFFNESSES = tuple(10.0**power for power in range(-3, 5))


@dataclass(frozen=True, slots=True)
class SmoothCurve:
    """Throughput as straight lines between knots in log-log: concave up to `peak`, then never rising."""

    log_tokens: tuple[float, ...]
    log_throughput: tuple[float, ...]
    peak: int  # index of the knot where the rise ends
    stiffness: float  # weight of the integral of its squared second derivative
    freedom: float  # how many numbers it took from the data

    def throughput(self, tokens: Array) -> Array:
        """Tokens per unit of time at each number of tokens."""
        levels: Array = np.interp(np.log(tokens), self.log_tokens, self.log_throughput)
        return np.exp(levels)


def fit_smoother(tokens: Array, times: Array, errors: Array) -> tuple[SmoothCurve, Array]:
    """The curve through (sizes,) times with relative standard `errors`, and (sizes,) weights from 0 to 1.

    Penalised least squares on log throughput, with every knot tried as the end of the rise and every
    stiffness; the least of Mallows' C_p = misses² / errors² + 2 freedom is taken (Mallows, "Some comments on
    C_p", 1973). Tukey's bisquare makes it robust: the shape leaves no room for dips, which so lose their
    weight.
    """
    x, levels = np.log(tokens), np.log(tokens / times)
    knots = x if len(x) <= _MAX_KNOTS else np.linspace(x[0], x[-1], _MAX_KNOTS)
    weights, scale = np.ones_like(levels), 1.0
    for _ in range(_REWEIGHTED):
        root = np.sqrt(weights) / (errors * scale)
        peak, stiffness = _shape(x, levels, root, knots)
        system = _system(x, root, knots, peak)
        found = _solve(system, levels * root, stiffness)
        at_knots, freedom = system.at_knots @ found.columns, _freedom(system, found, stiffness)
        curve = SmoothCurve(tuple(knots.tolist()), tuple(at_knots.tolist()), peak, stiffness, freedom)
        misses = (levels - np.interp(x, knots, at_knots)) / errors
        weights, scale = bisquare(misses, curve.freedom), own_scale(misses, curve.freedom)
    return curve, weights


def refit_smoother(curve: SmoothCurve, tokens: Array, levels: Array, precision: Array) -> Array:
    """(fits, knots) log throughput of equally stiff fits to (fits, sizes) levels, peaks near `curve`'s."""
    x, knots, root = np.log(tokens), np.array(curve.log_tokens), np.sqrt(precision)
    systems = [_system(x, root, knots, peak) for peak in _around(curve.peak, len(knots))]
    fits = []
    for row in levels * root:
        tried = [(_solve(system, row, curve.stiffness), system) for system in systems]
        found, system = min(tried, key=lambda fit: fit[0].cost)
        fits.append(system.at_knots @ found.columns)
    return np.array(fits)


class _System(NamedTuple):
    """Least squares for one peak, turned into the coordinates of its own columns."""

    rotation: Array  # (sizes, columns)
    triangle: Array  # (columns, columns)
    stiff: Array  # (knots - 2, columns)
    at_knots: Array  # (knots, columns)


class _Solution(NamedTuple):
    columns: Array  # their weights
    cost: float  # misses and stiffness
    misses: float


def _shape(x: Array, levels: Array, root: Array, knots: Array) -> tuple[int, float]:
    """The peak and the stiffness with the least C_p: the peak for a few stiffnesses, then both near it."""
    systems = [_system(x, root, knots, peak) for peak in range(len(knots))]
    found: dict[tuple[int, float], float] = {}

    def best(peaks: range, stiffnesses: Sequence[float]) -> tuple[int, float]:
        for peak in peaks:
            for stiffness in stiffnesses:
                fit = _solve(systems[peak], levels * root, stiffness)
                found[peak, stiffness] = fit.misses + 2 * _freedom(systems[peak], fit, stiffness)
        return min(found, key=lambda shape: found[shape])

    peak, _stiffness = best(range(len(knots)), _STIFFNESSES[1::3])
    return best(_around(peak, len(knots)), _STIFFNESSES)


def _around(peak: int, num_knots: int) -> range:
    return range(max(peak - _NEAR_PEAKS, 0), min(peak + _NEAR_PEAKS + 1, num_knots))


def _system(x: Array, root: Array, knots: Array, peak: int) -> _System:
    rotation, triangle = np.linalg.qr(_basis(x, knots, peak) * root[:, None])
    at_knots = _basis(knots, knots, peak)
    return _System(rotation, triangle, _bends(knots) @ at_knots, at_knots)


def _solve(system: _System, targets: Array, stiffness: float) -> _Solution:
    """Non-negative weights of the columns; `targets` are levels in the unit of their errors."""
    turned = targets @ system.rotation
    stiff = np.sqrt(stiffness) * system.stiff
    solution, miss = nnls(np.vstack([system.triangle, stiff]), np.append(turned, np.zeros(len(stiff))))
    outside = float(targets @ targets - turned @ turned)
    misses = outside + float(((turned - system.triangle @ solution) ** 2).sum())
    return _Solution(solution, miss**2 + outside, misses)


def _freedom(system: _System, solution: _Solution, stiffness: float) -> float:
    """The trace of what turns levels into fitted levels, over the columns in use."""
    used = solution.columns > 0
    data, stiff = system.triangle[:, used], system.stiff[:, used]
    normal = data.T @ data
    ridge = 1e-9 * np.trace(normal) * np.eye(len(normal))
    return float(np.trace(np.linalg.solve(normal + stiffness * stiff.T @ stiff + ridge, normal)))


def _bends(knots: Array) -> Array:
    """(knots - 2, knots) whose squares sum to the integral of the squared second derivative."""
    steps = np.diff(knots)
    slopes = np.diff(np.eye(len(knots)), axis=0) / steps[:, None]
    bends: Array = np.diff(slopes, axis=0) / np.sqrt((steps[1:] + steps[:-1]) / 2)[:, None]
    return bends


def _basis(x: Array, knots: Array, peak: int) -> Array:
    """Columns whose sums with non-negative weights are all curves of the shape: level, rise, fall."""
    rise = -np.maximum(knots[None, 1 : peak + 1] - x[:, None], 0)
    fall = -np.clip((x[:, None] - knots[None, peak:-1]) / np.diff(knots)[None, peak:], 0, 1)
    return np.column_stack([np.ones(len(x)), -np.ones(len(x)), rise, fall])
