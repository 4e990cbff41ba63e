"""The saturation point: the smallest forward that reaches a share q of the best smooth throughput."""

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from profiler import points
from profiler.points import NO_PREFIX, Layout, LayoutPoints
from profiler.saturation_curve import Dip, FittedCurve, fit_curve
from profiler.tables import TraceLike
from profiler.throughput_fit import Curve
from profiler.throughput_sizes import FLOOR, PARTS, group_sizes

__all__ = [
    "LAYOUT",
    "RESAMPLES",
    "Plateau",
    "Saturation",
    "decode_saturation",
    "fit_saturation",
    "prefill_points",
    "raw_reach",
    "saturation",
    "saturation_of",
    "saturations",
]

Array = NDArray[np.float64]

LAYOUT = NO_PREFIX.words

_MIN_SIZES = 8
RESAMPLES = 200
_INTERVAL = (2.5, 97.5)  # per cent of resamples
_STEP = 2**0.5  # a step of the measured grid is taken to be at least half an octave
_DECIDED = 4  # a point so many times below the largest size does not rest on that one size
_GRID = 2_000
_COARSE = 400  # points of the grid that resamples are compared on


@dataclass(frozen=True, slots=True)
class Plateau:
    """The best of a fitted throughput over the measured range, in tokens/s, with its 95 % interval."""

    tokens_per_s: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Saturation:
    """Where forwards of one layout stop getting more efficient; numbers are None unless `status` is ok."""

    status: str  # "ok", "not_saturated" or "too_few_points"
    q: float
    layout: str = LAYOUT
    num_points: int = 0
    num_sizes: int = 0
    tokens: int | None = None
    low: int | None = None  # 95 % bootstrap interval
    high: int | None = None
    first_reach: int | None = None  # first measured size at q of the best measured throughput
    last_below: int | None = None  # last measured size below it
    plateau: Plateau | None = None
    fit_kind: str | None = None  # "parametric" or "smoother"
    curve: Curve | None = None  # throughput in tokens/s
    dips: tuple[Dip, ...] = ()  # of measured sizes below the curve, wherever there is one


def prefill_points(trace: TraceLike) -> pl.DataFrame:
    """Forwards of one prompt without prefix: forward_id, tokens, time_ns (device), in order of forward_id."""
    return points.prefill_points(trace).points


def saturation(trace: TraceLike, q: float = 0.95, seed: int = 0, prefix: int = 0) -> Saturation:
    """The saturation point of a trace's forwards of one prompt after a prefix of about so many tokens."""
    return saturation_of(points.prefill_points(trace, prefix), q, seed)


def decode_saturation(trace: TraceLike, q: float = 0.95, seed: int = 0) -> Saturation:
    """The number of decode rows that fill a forward, by a trace's forwards of decode rows alone."""
    return saturation_of(points.decode_points(trace), q, seed)


def saturations(trace: TraceLike, q: float = 0.95, seed: int = 0) -> tuple[Saturation, ...]:
    """The saturation point of every layout of a trace's forwards, those of more sizes first."""
    return tuple(saturation_of(of, q, seed) for of in points.trace_points(trace))


def saturation_of(of: LayoutPoints, q: float = 0.95, seed: int = 0, resamples: int = RESAMPLES) -> Saturation:
    """The saturation point of the points of one layout."""
    tokens, times_s = of.points["tokens"].to_numpy(), of.points["time_ns"].to_numpy() / 1e9
    return fit_saturation(tokens, times_s, q, seed, resamples, of.layout)


def fit_saturation(
    tokens: NDArray[np.int64] | Array,
    times_s: Array,
    q: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
    layout: Layout = NO_PREFIX,
) -> Saturation:
    """The saturation point of measured forwards: (points,) tokens, and device seconds, of each.

    docs/metrics.md has the definition. Points are in the order measured, which matters to the interval only;
    `seed` sets the resampling.
    """
    tokens, times_s = np.asarray(tokens, dtype=np.float64), np.asarray(times_s, dtype=np.float64)
    measured = np.unique(tokens)
    blank = Saturation("too_few_points", q, layout.words, num_points=len(tokens), num_sizes=len(measured))
    if len(measured) < _MIN_SIZES:
        return blank
    fitted = fit_curve(group_sizes(tokens, times_s), layout.work)
    blank = replace(blank, fit_kind=fitted.kind, curve=fitted.curve, dips=fitted.dips)
    point, best, lasts = _point(fitted.curve, measured, q)
    if _still_rises(point, lasts, measured) or _rests_on_the_last(point, tokens, times_s, q, layout):
        return replace(blank, status="not_saturated")
    factors, plateau = _intervals(fitted, measured, q, np.random.default_rng(seed), resamples)
    first_reach, last_below = raw_reach(tokens, times_s, q)
    return replace(
        blank,
        status="ok",
        tokens=point,
        low=max(int(measured[0]), math.floor(point * factors[0])),
        high=min(int(measured[-1]), math.ceil(point * factors[1])),
        first_reach=first_reach,
        last_below=last_below,
        plateau=Plateau(best, best * plateau[0], best * plateau[1]),
    )


def _still_rises(point: int, lasts: bool, measured: Array) -> bool:
    """Whether a point so near the end of the range only says where the range ends."""
    return bool(point > measured[-2] or (lasts and point > measured[-1] / _STEP))


def _rests_on_the_last(point: int, tokens: Array, times_s: Array, q: float, layout: Layout) -> bool:
    """Whether throughput still rises to the last size but one, so that a dip there would look like an end."""
    last = tokens.max()
    if point <= last / _DECIDED:
        return False
    others = tokens < last
    fitted = fit_curve(group_sizes(tokens[others], times_s[others]), layout.work)
    measured = np.unique(tokens[others])
    point, _best, lasts = _point(fitted.curve, measured, q)
    return _still_rises(point, lasts, measured)


def _point(curve: Curve, measured: Array, q: float) -> tuple[int, float, bool]:
    """The smallest whole size with q of the curve's best; that best; whether it lasts to the end."""
    grid: Array = np.unique(np.round(np.geomspace(measured[0], measured[-1], _GRID)))
    rates = curve.throughput(grid)
    best = float(rates.max())
    lasts = bool(rates[-1] >= (1 - FLOOR) * best)
    at = int(np.argmax(rates >= q * best))
    if not at:
        return int(grid[0]), best, lasts
    between = np.arange(grid[at - 1] + 1, grid[at] + 1)
    reached = between[curve.throughput(between) >= q * best]
    return int(reached[0]), best, lasts


def _intervals(
    fitted: FittedCurve, measured: Array, q: float, rng: np.random.Generator, resamples: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Factors below and above 1 between which the point, and between which the best throughput lies.

    The widths are those of resamples, or of leaving out parts of the time where these differ by more, and
    beside that what a model is off at best.
    """
    grid = np.geomspace(measured[0], measured[-1], _COARSE)
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
    drift = 1.96 * np.sqrt((PARTS - 1) / PARTS * ((parted - parted.mean()) ** 2).sum())
    low, high = np.percentile(drawn, _INTERVAL)
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


def raw_reach(tokens: NDArray[np.int64] | Array, times_s: Array, q: float) -> tuple[int, int | None]:
    """First measured size whose median throughput is q of the best, and last one below; None if none is."""
    order = np.argsort(tokens, kind="stable")
    measured, starts = np.unique(tokens[order], return_index=True)
    rates = np.array([np.median(of_size) for of_size in np.split((tokens / times_s)[order], starts[1:])])
    enough = rates >= q * rates.max()
    below = measured[~enough]
    return int(measured[enough][0]), int(below[-1]) if len(below) else None
