"""Smooth curves through measured forward times: a parametric model of time, and a shape-constrained smoother.

Both work on logarithms, so that an error of 1 % weighs the same at 8 tokens and at 8,192. Times are in any
one unit; throughput is tokens per that unit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls

__all__ = ["Curve", "ParametricCurve", "SmoothCurve", "fit_parametric", "fit_smoother"]

Array = NDArray[np.float64]

_ROBUST_FROM = 0.02  # residuals of log time above this weigh less
_TINY = 1e-6  # smallest share of the time that a term may have
_SHARPEST = 64.0
_MAX_KNOTS = 40


class Curve(Protocol):
    """Throughput as a function of the tokens in a forward."""

    def throughput(self, tokens: Array) -> Array:
        """Tokens per unit of time at each number of tokens."""
        ...


@dataclass(frozen=True, slots=True)
class ParametricCurve:
    """time(T) = fixed + (memory^p + (compute T)^p)^(1/p) + attention T^2.

    A forward first waits for its weights (memory), then for its multiplications (compute T), the two
    overlapping more the higher the sharpness p (Williams et al., "Roofline", 2009, is p without end); a
    constant host cost stands before, and the causal triangle of attention grows with T^2.
    """

    fixed: float
    memory: float
    compute: float
    attention: float
    sharpness: float

    def time(self, tokens: Array) -> Array:
        """Time of a forward of so many tokens."""
        return self._terms(tokens)[0]

    def sensitivity(self, tokens: Array) -> Array:
        """(tokens, 5) change of log time with the log of each parameter, in order."""
        time, waiting, memory, compute = self._terms(tokens)
        powers = memory**self.sharpness, compute**self.sharpness
        total = powers[0] + powers[1]
        sharper = (powers[0] * np.log(memory) + powers[1] * np.log(compute)) / total
        columns = (
            np.full(len(tokens), self.fixed),
            waiting * powers[0] / total,
            waiting * powers[1] / total,
            self.attention * tokens**2,
            waiting * (sharper - np.log(total) / self.sharpness),
        )
        return np.stack(columns, axis=1) / time[:, None]

    def _terms(self, tokens: Array) -> tuple[Array, Array, Array, Array]:
        """Time; the part in memory or compute; and these two, relative to the larger of them."""
        compute = self.compute * tokens
        larger = np.maximum(self.memory, compute)
        memory, compute = self.memory / larger, compute / larger
        both = (memory**self.sharpness + compute**self.sharpness) ** (1 / self.sharpness)
        waiting: Array = larger * both
        return self.fixed + waiting + self.attention * tokens**2, waiting, memory, compute

    def throughput(self, tokens: Array) -> Array:
        """Tokens per unit of time at each number of tokens."""
        return tokens / self.time(tokens)


@dataclass(frozen=True, slots=True)
class SmoothCurve:
    """Throughput as straight lines between knots in log-log: concave up to `peak`, then never rising."""

    log_tokens: tuple[float, ...]
    log_throughput: tuple[float, ...]
    peak: int  # index of the knot where the rise ends

    def throughput(self, tokens: Array) -> Array:
        """Tokens per unit of time at each number of tokens."""
        levels: Array = np.interp(np.log(tokens), self.log_tokens, self.log_throughput)
        return np.exp(levels)


def fit_parametric(
    tokens: Array, times: Array, weights: Array, near: ParametricCurve | None = None
) -> ParametricCurve:
    """Robust least squares on log time; `near` is a curve to start from, else several starts are tried."""
    low, high = _bounds(tokens, times)
    starts = _starts(tokens, times) if near is None else [_to_vector(near)]
    root_weights = np.sqrt(weights)
    log_times = np.log(times)

    def residuals(vector: Array) -> Array:
        misses: Array = root_weights * (np.log(_from_vector(vector).time(tokens)) - log_times)
        return misses

    def jacobian(vector: Array) -> Array:
        changes: Array = root_weights[:, None] * _from_vector(vector).sensitivity(tokens)
        return changes

    fits = [
        least_squares(
            residuals,
            np.clip(start, low + 1e-9, high - 1e-9),
            jac=jacobian,
            bounds=(low, high),
            loss="soft_l1",
            f_scale=_ROBUST_FROM,
            max_nfev=200 if near is None else 40,
        )
        for start in starts
    ]
    return _from_vector(min(fits, key=lambda fit: float(fit.cost)).x)


def fit_smoother(tokens: Array, times: Array, weights: Array, near: SmoothCurve | None = None) -> SmoothCurve:
    """Weighted least squares on log throughput in the shape of `SmoothCurve`, made robust by reweighting.

    Every knot is tried as the end of the rise, or those beside the peak of `near`. The shape leaves no room
    for dips: wave quantisation lowers the curve a little everywhere instead of moving it somewhere.
    """
    x, y = np.log(tokens), np.log(tokens / times)
    knots = x if len(x) <= _MAX_KNOTS else np.linspace(x[0], x[-1], _MAX_KNOTS)
    peaks = range(len(knots))
    if near is not None:
        middle = int(np.abs(knots - near.log_tokens[near.peak]).argmin())
        peaks = peaks[max(middle - 2, 0) : middle + 3]
    costs = {peak: _solve(_basis(x, knots, peak), y, weights)[1] for peak in peaks}
    peak = min(costs, key=lambda p: costs[p])
    basis = _basis(x, knots, peak)
    robust = weights
    for _ in range(5):
        errors = y - basis @ _solve(basis, y, robust)[0]
        scale = max(1.4826 * float(np.median(np.abs(errors))), 1e-3)
        robust = weights * np.minimum(1, 1.5 * scale / np.maximum(np.abs(errors), 1e-12))
    levels = _basis(knots, knots, peak) @ _solve(basis, y, robust)[0]
    return SmoothCurve(tuple(knots.tolist()), tuple(levels.tolist()), peak)


def _bounds(tokens: Array, times: Array) -> tuple[Array, Array]:
    shortest, longest = float(times.min()), float(tokens.max())
    per_token = float((times / tokens).max())
    slowest = float(times.max())
    low = [_TINY * shortest, _TINY * shortest, _TINY * slowest / longest, _TINY * slowest / longest**2, 1.0]
    high = [2 * shortest, 2 * shortest, 2 * per_token, 2 * slowest / longest**2, _SHARPEST]
    return np.log(low), np.log(high)


def _starts(tokens: Array, times: Array) -> Sequence[Array]:
    """Guesses that split the shortest time into fixed and memory, the longest into compute and attention."""
    shortest, longest = float(times.min()), float(tokens.max())
    last = float(times[tokens.argmax()])
    return [
        np.log([f * shortest, (1 - f) * shortest, c * last / longest, (1 - c) * last / longest**2, p])
        for f in (0.1, 0.5)
        for c in (0.6, 0.95)
        for p in (2.0, 8.0)
    ]


def _to_vector(curve: ParametricCurve) -> Array:
    values = (curve.fixed, curve.memory, curve.compute, curve.attention, curve.sharpness)
    return np.array([math.log(value) for value in values])


def _from_vector(vector: Array) -> ParametricCurve:
    return ParametricCurve(*(float(value) for value in np.exp(vector)))


def _basis(x: Array, knots: Array, peak: int) -> Array:
    """Columns whose sums with non-negative weights are all curves of the shape: level, rise, fall."""
    rise = -np.maximum(knots[None, 1 : peak + 1] - x[:, None], 0)
    fall = -np.clip((x[:, None] - knots[None, peak:-1]) / np.diff(knots)[None, peak:], 0, 1)
    return np.column_stack([np.ones(len(x)), -np.ones(len(x)), rise, fall])


def _solve(basis: Array, y: Array, weights: Array) -> tuple[Array, float]:
    """Non-negative weights of the columns, and the root of the weighted squared error."""
    root_weights = np.sqrt(weights)
    solution, cost = nnls(basis * root_weights[:, None], y * root_weights)
    return solution, float(cost)
