"""Robust fit of a `ForwardCurve` to measured forwards, held by what is expected where they say little."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.optimize import least_squares

from profiler.forward_features import FEATURES, LAYOUTS, Forwards
from profiler.forward_fit_curve import ForwardCurve
from profiler.forward_fit_prior import Prior

__all__ = ["Groups", "Posterior", "fit_curve", "grouped"]

Array = NDArray[np.float64]

_MOST_GROUPS = 1500
_FINEST, _COARSEST = 64, 2  # steps an octave of features
_REPEATED = 4  # forwards of a group whose scatter can be told
_QUARTILES = 1.349  # between the quartiles of a normal distribution, in its standard deviations
_LEAST_MISFIT = 0.005  # of log time: no sum of terms is truer
_EACH_LAYOUT = 12.0  # groups that a layout may count as: near ones miss alike
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Groups:
    """Forwards that had equal or nearly equal features, as one: (groups, features), and (groups,)."""

    features: Array  # means
    seconds: Array  # medians
    variance: Array  # of the median's logarithm, from the scatter of its forwards
    layout: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.seconds)


@dataclass(frozen=True, slots=True)
class Posterior:
    """The curve, and (terms, terms) the covariance of its `vector`."""

    curve: ForwardCurve
    covariance: Array
    misfit: float  # standard deviation of log time that the groups have around the curve


def grouped(forwards: Forwards) -> Groups:
    """Forwards by equal features, or by nearly equal ones where there would be too many groups."""
    columns = {name: forwards.column(name) for name in FEATURES}
    told = pl.DataFrame({**columns, "layout": forwards.layout, "log_seconds": np.log(forwards.seconds)})
    keys, steps = [pl.col(name) for name in FEATURES], _FINEST
    while told.select("layout", *keys).n_unique() > _MOST_GROUPS and steps >= _COARSEST:
        keys = [((pl.col(name) + 1).log(2) * steps).round() for name in FEATURES]
        steps //= 2
    groups = _by(told, keys)
    typical = groups.filter(pl.col("count") >= _REPEATED)["spread"].median() or 0.0
    spread = pl.when(pl.col("count") >= _REPEATED).then("spread").otherwise(typical)
    variance = spread**2 * (np.pi / 2) / pl.col("count")  # of the median of normal values
    return Groups(
        groups.select(FEATURES).to_numpy(),
        np.exp(groups["log_seconds"].to_numpy()),
        groups.select(variance).to_series().to_numpy(),
        groups["layout"].to_numpy(),
    )


def fit_curve(groups: Groups, prior: Prior, start: ForwardCurve) -> Posterior:
    """The likeliest curve. Misses of log time weigh by the groups' variance and a misfit that all share.

    The misfit is estimated from the residuals themselves, in a few rounds.
    """
    log_seconds = np.log(groups.seconds)
    share = _shares(groups)
    vector = start.vector()
    misfit = 0.1
    for _ in range(_ROUNDS):
        weights = np.sqrt(share / (groups.variance + misfit**2))
        vector = _solve(groups.features, log_seconds, weights, prior, vector)
        misses = np.log(ForwardCurve.from_vector(vector).seconds(groups.features)) - log_seconds
        misfit = _misfit(misses, groups.variance, share)
    weights = np.sqrt(share / (groups.variance + misfit**2))
    curve = ForwardCurve.from_vector(vector)
    changes = weights[:, None] * curve.sensitivity(groups.features)
    precision = changes.T @ changes + prior.precision()
    covariance: Array = np.linalg.inv(precision).astype(np.float64)
    return Posterior(curve, covariance, misfit)


def _solve(features: Array, log_seconds: Array, weights: Array, prior: Prior, start: Array) -> Array:
    """Least squares with soft-L1 loss for what was measured, and plain squares for what is expected."""
    measured = len(log_seconds)

    def residuals(vector: Array) -> Array:
        times = ForwardCurve.from_vector(vector).seconds(features)
        return np.concatenate([weights * (np.log(times) - log_seconds), prior.misses(vector)])

    def jacobian(vector: Array) -> Array:
        changes = ForwardCurve.from_vector(vector).sensitivity(features)
        return np.vstack([weights[:, None] * changes, prior.rows])

    def loss(squares: Array) -> Array:
        roots = np.sqrt(1 + squares[:measured])
        rho = np.stack([squares, np.ones_like(squares), np.zeros_like(squares)])
        rho[:, :measured] = 2 * (roots - 1), 1 / roots, -0.5 / roots**3
        return rho

    found: Array = least_squares(residuals, start, jac=jacobian, loss=loss, x_scale="jac", max_nfev=100).x
    return found


def _shares(groups: Groups) -> Array:
    """(groups,) how much of a group counts, so that no layout counts as more than `_EACH_LAYOUT` groups."""
    of_layout = np.bincount(groups.layout, minlength=len(LAYOUTS))[groups.layout]
    return np.minimum(1.0, _EACH_LAYOUT / of_layout)


def _misfit(misses: Array, variance: Array, share: Array) -> float:
    """Standard deviation of log time beyond the groups' own scatter; robust, each layout counting alike."""
    order = np.argsort(np.abs(misses))
    passed = np.cumsum(share[order])
    middle = float(np.abs(misses[order])[np.searchsorted(passed, passed[-1] / 2)])
    beyond = (1.4826 * middle) ** 2 - float(np.median(variance))
    return max(_LEAST_MISFIT, float(np.sqrt(max(beyond, 0.0))))


def _by(told: pl.DataFrame, keys: Sequence[pl.Expr]) -> pl.DataFrame:
    """One row a group: means of features, median and scatter of log time, and how many forwards it has."""
    names = [f"key_{name}" for name in FEATURES]
    named = [key.alias(name) for key, name in zip(keys, names, strict=True)]
    time = pl.col("log_seconds")
    return (
        told.group_by("layout", *named)
        .agg(
            pl.col(FEATURES).mean(),
            time.median(),
            spread=(time.quantile(0.75, "linear") - time.quantile(0.25, "linear")) / _QUARTILES,
            count=pl.len(),
        )
        .sort("layout", *names)
    )
