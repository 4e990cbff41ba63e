"""The robust fit of a parametric model of forward time, many fits at once.

It works on logarithms, so that an error of 1 % weighs the same at 8 tokens and at 8,192.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.throughput_curve import (
    NUM_PARAMETERS,
    ParametricCurve,
    Work,
    log_sensitivity,
    log_times,
)

__all__ = ["ParametricCurve", "bisquare", "fit_parametric", "own_scale", "refit_parametric"]

Array = NDArray[np.float64]

_TINY = 1e-6  # smallest share of the time that a term may have
_SHARPEST = 64.0
_SOFT_FROM = 1.5  # standard errors beyond which a miss weighs less while starts are compared
_CUT = 4.685  # of Tukey's bisquare: misses of more standard errors weigh nothing
_SETTLED = 0.01  # a change of weights below which they need no other fit
_REWEIGHTED = 6
_ROUNDS = 60
_HEATS = ((8, 4), (_ROUNDS, 1))  # rounds, and how many of the starts go on after them
_REFIT_ROUNDS = 12
_ENOUGH = 1e-7  # a relative change of the cost below which a fit has arrived


def fit_parametric(
    tokens: Array, times: Array, errors: Array, work: Work | None = None
) -> tuple[ParametricCurve, Array]:
    """The curve through (sizes,) times with relative standard `errors`, and (sizes,) weights from 0 to 1.

    Several starts are compared under a soft-L1 loss, then Tukey's bisquare takes sizes out that the best
    one misses by far (Huber and Ronchetti, "Robust Statistics", 2009): their weight tells.
    """
    work = work or Work()
    problem = _Problem(tokens, work.of(tokens), *_bounds(tokens, times, work.of(tokens)))
    levels, precision = np.log(times), errors**-2.0
    vectors = _starts(tokens, times, work)
    for rounds, kept in _HEATS:
        vectors, costs = problem.descend(vectors, levels, precision, rounds, _SOFT_FROM)
        vectors = vectors[np.argsort(costs)[:kept]]
    vector, weights = vectors, np.ones_like(levels)
    for _ in range(_REWEIGHTED):
        misses = (problem.log_times(vector)[0] - levels) / errors
        before, weights = weights, bisquare(misses, NUM_PARAMETERS)
        if np.allclose(weights, before, atol=_SETTLED):
            break
        vector, _costs = problem.descend(vector, levels, weights * precision, _ROUNDS)
    fixed, memory, compute, attention, sharpness = np.exp(vector[0]).tolist()
    return ParametricCurve(fixed, memory, compute, attention, sharpness, work), weights


def refit_parametric(curve: ParametricCurve, tokens: Array, levels: Array, precision: Array) -> Array:
    """(fits, 5) logarithms of the parameters of fits to (fits, sizes) log times, started at `curve`."""
    work = curve.work.of(tokens)
    problem = _Problem(tokens, work, *_bounds(tokens, np.exp(levels.mean(axis=0)), work))
    starts = np.repeat(curve.vector()[None], len(levels), axis=0)
    return problem.descend(starts, levels, precision, _REFIT_ROUNDS)[0]


@dataclass(frozen=True, slots=True)
class _Problem:
    """Least squares on log time, for many fits at once: Levenberg-Marquardt within bounds."""

    tokens: Array
    work: Array
    low: Array
    high: Array

    def log_times(self, vectors: Array) -> Array:
        return log_times(vectors, self.tokens, self.work)

    def descend(
        self, vectors: Array, levels: Array, precision: Array, rounds: int, soft_from: float | None = None
    ) -> tuple[Array, Array]:
        """(fits, 5) vectors and (fits,) costs after at most so many rounds from `vectors`."""
        vectors = np.clip(vectors, self.low, self.high)
        damping = np.full(len(vectors), 1e-3)
        costs = _cost(self.log_times(vectors) - levels, precision, soft_from)
        for _ in range(rounds):
            steps = self._steps(vectors, levels, precision, soft_from, damping)
            tried = np.clip(vectors + steps, self.low, self.high)
            reached = _cost(self.log_times(tried) - levels, precision, soft_from)
            better = reached < costs
            arrived = np.where(better, costs - reached, 0.0) <= _ENOUGH * costs
            vectors = np.where(better[:, None], tried, vectors)
            costs = np.where(better, reached, costs)
            damping = np.where(better, damping / 5, damping * 8)
            if np.all(arrived & (better | (damping > 1e6))):
                break
        return vectors, costs

    def _steps(
        self, vectors: Array, levels: Array, precision: Array, soft_from: float | None, damping: Array
    ) -> Array:
        times, changes = log_sensitivity(vectors, self.tokens, self.work)
        misses = np.log(times) - levels
        weights = np.broadcast_to(precision, misses.shape)
        if soft_from is not None:
            weights = weights / np.sqrt(1 + misses**2 * precision / soft_from**2)
        weighted = changes * weights[:, :, None]
        slope = np.einsum("fsp,fs->fp", weighted, misses)
        held = ((vectors <= self.low) & (slope > 0)) | ((vectors >= self.high) & (slope < 0))
        slope = np.where(held, 0.0, slope)
        normal = np.matmul(weighted.transpose(0, 2, 1), changes)
        diagonal = np.einsum("fpp->fp", normal)
        least = 1e-12 * diagonal.max(axis=1, keepdims=True) + 1e-300
        normal = normal + np.eye(NUM_PARAMETERS) * (damping[:, None] * diagonal + least)[:, :, None]
        either = held[:, :, None] | held[:, None, :]
        normal = np.where(either, np.eye(NUM_PARAMETERS) * (diagonal + least)[:, :, None], normal)
        steps: Array = -np.linalg.solve(normal, slope[:, :, None])[:, :, 0]
        return np.clip(steps, -2, 2)


def _cost(misses: Array, precision: Array, soft_from: float | None) -> Array:
    """(fits,) sum of squares, or of soft-L1 losses, of misses in standard errors."""
    squares = misses**2 * precision
    if soft_from is not None:
        squares = 2 * soft_from**2 * (np.sqrt(1 + squares / soft_from**2) - 1)
    costs: Array = squares.sum(axis=1)
    return costs


def own_scale(misses: Array, freedom: float) -> float:
    """The standard deviation of most misses, given in standard errors; at least 1.

    `freedom` is how many numbers the curve took from the data.
    """
    left = max(len(misses) - freedom, 1.0)
    return max(1.0, 1.4826 * float(np.median(np.abs(misses))) * math.sqrt(len(misses) / left))


def bisquare(misses: Array, freedom: float) -> Array:
    """Tukey's weights of misses in standard errors, or in their own scale if that is larger."""
    weights: Array = np.maximum(0, 1 - (misses / (_CUT * own_scale(misses, freedom))) ** 2) ** 2
    return weights


def _bounds(tokens: Array, times: Array, work: Array) -> tuple[Array, Array]:
    shortest, slowest = float(times.min()), float(times.max())
    longest, most = float(tokens.max()), float(work.max())
    per_token = float((times / tokens).max())
    low = [_TINY * shortest, _TINY * shortest, _TINY * slowest / longest, _TINY * slowest / most, 1.0]
    high = [2 * shortest, 2 * shortest, 2 * per_token, 2 * slowest / most, _SHARPEST]
    return np.log(low), np.log(high)


def _starts(tokens: Array, times: Array, work: Work) -> Array:
    """(starts, 5) guesses that split the shortest time into fixed and memory, the longest likewise."""
    shortest, longest = float(np.median(np.sort(times)[:3])), float(tokens.max())
    last, most = float(times[tokens.argmax()]), float(work.of(tokens).max())
    shares = itertools.product((0.05, 0.4, 0.8), (0.5, 0.95), (1.5, 4.0, 16.0))
    return np.log(
        [
            [f * shortest, (1 - f) * shortest, c * last / longest, (1 - c) * last / most, p]
            for f, c, p in shares
        ]
    )
