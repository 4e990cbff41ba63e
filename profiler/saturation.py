"""The saturation point: the smallest forward that reaches a share q of the best smooth throughput."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from profiler.points import NO_PREFIX, Layout, LayoutPoints, decode_points, prefill_points, trace_points
from profiler.saturation_curve import Dip, fit_curve
from profiler.saturation_interval import intervals
from profiler.tables import TraceLike
from profiler.throughput_curve import Curve
from profiler.throughput_sizes import FLOOR, group_sizes

__all__ = [
    "LAYOUT",
    "RESAMPLES",
    "Plateau",
    "Saturation",
    "decode_saturation",
    "fit_saturation",
    "raw_reach",
    "saturation",
    "saturation_of",
    "saturations",
]

Array = NDArray[np.float64]

LAYOUT = NO_PREFIX.words

_MIN_SIZES = 8
RESAMPLES = 200
_STEP = 2**0.5  # a step of the measured grid is taken to be at least half an octave
_DECIDED = 4  # a point so many times below the largest size does not rest on that one size
_GRID = 2_000


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


def saturation(trace: TraceLike, q: float = 0.95, seed: int = 0, prefix: int = 0) -> Saturation:
    """The saturation point of a trace's forwards of one prompt after a prefix of about so many tokens."""
    return saturation_of(prefill_points(trace, prefix), q, seed)


def decode_saturation(trace: TraceLike, q: float = 0.95, seed: int = 0) -> Saturation:
    """The number of decode rows that fill a forward, by a trace's forwards of decode rows alone."""
    return saturation_of(decode_points(trace), q, seed)


def saturations(trace: TraceLike, q: float = 0.95, seed: int = 0) -> tuple[Saturation, ...]:
    """The saturation point of every layout of a trace's forwards, those of more sizes first."""
    return tuple(saturation_of(of, q, seed) for of in trace_points(trace))


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
    ends = float(measured[0]), float(measured[-1])
    of_point, of_best = intervals(fitted, ends, q, np.random.default_rng(seed), resamples)
    first_reach, last_below = raw_reach(tokens, times_s, q)
    return replace(
        blank,
        status="ok",
        tokens=point,
        low=max(int(measured[0]), math.floor(point * of_point[0])),
        high=min(int(measured[-1]), math.ceil(point * of_point[1])),
        first_reach=first_reach,
        last_below=last_below,
        plateau=Plateau(best, best * of_best[0], best * of_best[1]),
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


def raw_reach(tokens: NDArray[np.int64] | Array, times_s: Array, q: float) -> tuple[int, int | None]:
    """First measured size whose median throughput is q of the best, and last one below; None if none is."""
    order = np.argsort(tokens, kind="stable")
    measured, starts = np.unique(tokens[order], return_index=True)
    rates = np.array([np.median(of_size) for of_size in np.split((tokens / times_s)[order], starts[1:])])
    enough = rates >= q * rates.max()
    below = measured[~enough]
    return int(measured[enough][0]), int(below[-1]) if len(below) else None
