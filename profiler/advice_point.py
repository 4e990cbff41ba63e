"""The saturation point that advice rests on: that of measured points, else that of the cost model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from profiler.advice_choice import Q
from profiler.forward_features import features_of
from profiler.forward_fit_curve import ForwardCurve
from profiler.forward_model import ForwardModel
from profiler.points import prefill_points
from profiler.price_rows import ForwardCostModel
from profiler.price_sums import chunk_sums
from profiler.saturation import Saturation, fit_saturation
from profiler.tables import TraceLike

__all__ = ["Point", "point_by_model", "point_by_points"]

Array = NDArray[np.float64]

GRID = 400  # sizes in geometric steps
DRAWS = 200  # of the fit's parameters
INTERVAL = (2.5, 97.5)  # per cent of the draws


@dataclass(frozen=True, slots=True)
class Point:
    """The smallest forward that reaches 95 % of the best throughput, with its 95 % interval, in tokens.

    `by_points` says whether forwards of one prompt without prefix gave it by themselves, or else the model
    of all forwards did.
    """

    tokens: int
    low: int
    high: int
    by_points: bool
    num_sizes: int = 0  # distinct sizes of the points


def point_by_points(traces: Sequence[TraceLike]) -> tuple[Point | None, Saturation]:
    """The point of all traces' forwards of one prompt without prefix; None unless these tell it."""
    points = pl.concat([prefill_points(trace).points for trace in traces])
    found = fit_saturation(points["tokens"].to_numpy(), points["time_ns"].to_numpy() / 1e9, Q)
    if found.status != "ok" or found.tokens is None or found.low is None or found.high is None:
        return None, found
    return Point(found.tokens, found.low, found.high, True, found.num_sizes), found


def point_by_model(cost: ForwardCostModel, largest: int, model: ForwardModel | None = None) -> Point:
    """The point of a cost model over forwards of 1 to `largest` tokens.

    Where `model` is what it was fitted as, the interval is over draws of its parameters from their normal
    distribution; else the model is taken to be exact.
    """
    sizes = np.unique(np.round(np.geomspace(1, max(largest, 1), GRID))).astype(np.int64)
    sums = [chunk_sums(int(size)) for size in sizes]
    point = _reached(sizes, np.array([cost.seconds(each) for each in sums]))
    if model is None:
        return Point(point, point, point, False)
    features = np.stack([features_of(each) for each in sums])
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(model.curve.vector(), np.array(model.covariance), DRAWS, method="eigh")
    points = [_reached(sizes, ForwardCurve.from_vector(draw).seconds(features)) for draw in draws]
    low, high = np.percentile(points, INTERVAL)
    return Point(point, min(point, round(low)), max(point, round(high)), False)


def _reached(sizes: NDArray[np.int64], seconds: Array) -> int:
    """The first size with 95 % of the best throughput."""
    rates = sizes / seconds
    return int(sizes[np.argmax(rates >= Q * rates.max())])
