"""The saturation point: the smallest forward that reaches a share q of the best throughput measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.tables import TraceLike, frame
from profiler.throughput_fit import Curve, ParametricCurve, SmoothCurve, fit_parametric, fit_smoother
from profiler.watched import slowed

__all__ = ["LAYOUT", "RESAMPLES", "Saturation", "fit_saturation", "prefill_points", "saturation"]

Array = NDArray[np.float64]

LAYOUT = "one prompt a forward, no prefix"

_MIN_SIZES = 8
RESAMPLES = 200
_INTERVAL = (2.5, 97.5)  # per cent of resamples
_FLOOR = 0.01  # a model within 1 % is good enough however exact the repeats are
_STEP = 2**0.5  # a step of the measured grid is taken to be at least half an octave
_GRID = 2_000
_MAX_GROUPS = 160  # more sizes than this are grouped by neighbours


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
    fit_kind: str | None = None  # "parametric" or "smoother"
    curve: Curve | None = None  # throughput in tokens/s


def prefill_points(trace: TraceLike) -> pl.DataFrame:
    """Forwards of one prompt without prefix: forward_id, tokens, time_ns (device), in order of forward_id.

    Those that a profiler slowed are left out.
    """
    forwards = frame(trace, "forwards")
    return (
        forwards.filter(~slowed(trace, forwards))
        .filter(
            (pl.col("mode") == ForwardMode.EXTEND.value)
            & (pl.col("num_extend_seqs") == 1)
            & (pl.col("prefix_tokens") == 0)
            & (pl.col("extend_tokens") > 0)
            & (pl.col("end_ns") > pl.col("start_ns"))
        )
        .select("forward_id", tokens="extend_tokens", time_ns=pl.col("end_ns") - pl.col("start_ns"))
        .sort("forward_id")
    )


def saturation(trace: TraceLike, q: float = 0.95, seed: int = 0) -> Saturation:
    """The saturation point of a trace's prefill forwards of one prompt without prefix."""
    points = prefill_points(trace)
    return fit_saturation(points["tokens"].to_numpy(), points["time_ns"].to_numpy() / 1e9, q, seed)


def fit_saturation(
    tokens: NDArray[np.int64] | Array,
    times_s: Array,
    q: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Saturation:
    """The saturation point of measured forwards: (points,) tokens, and device seconds, of each.

    docs/metrics.md has the definition. The order of points does not matter; `seed` sets the resampling.
    """
    order = np.lexsort((times_s, tokens))
    tokens, times_s = np.asarray(tokens, dtype=np.float64)[order], times_s[order]
    sizes = np.unique(tokens)
    blank = Saturation("too_few_points", q, num_points=len(tokens), num_sizes=len(sizes))
    if len(sizes) < _MIN_SIZES:
        return blank
    groups = _Groups(tokens, times_s)
    curve = groups.choose()
    fit_kind = "parametric" if isinstance(curve, ParametricCurve) else "smoother"
    point, rising = _point(curve, sizes, q)
    if point > sizes[-2] or (rising and point > sizes[-1] / _STEP):
        return replace(blank, status="not_saturated", fit_kind=fit_kind, curve=curve)
    rng = np.random.default_rng(seed)
    again = [_point(groups.refit(curve, rng), sizes, q)[0] for _ in range(resamples)]
    low, high = np.percentile(again, _INTERVAL)
    first_reach, last_below = _raw(tokens, times_s, sizes, q)
    return replace(
        blank,
        status="ok",
        tokens=point,
        low=min(point, round(low)),
        high=max(point, round(high)),
        first_reach=first_reach,
        last_below=last_below,
        fit_kind=fit_kind,
        curve=curve,
    )


class _Groups:
    """Points by size, or by neighbouring sizes where there are very many."""

    def __init__(self, tokens: Array, times_s: Array) -> None:
        sizes, which = np.unique(tokens, return_inverse=True)
        if len(sizes) > _MAX_GROUPS:
            edges = np.geomspace(sizes[0], sizes[-1], _MAX_GROUPS + 1)[1:-1]
            which = np.searchsorted(edges, tokens, side="right")
        cuts = np.flatnonzero(np.diff(which)) + 1
        self._tokens = np.array([np.median(group) for group in np.split(tokens, cuts)])
        self._rates = np.split(tokens / times_s, cuts)
        self._repeated = np.median([len(rates) for rates in self._rates]) >= 2

    def choose(self) -> Curve:
        """The parametric model if it misses medians by no more than repeats differ, else the smoother."""
        times = self._times(self._rates)
        weights = np.array([float(len(rates)) for rates in self._rates])
        model = fit_parametric(self._tokens, times, weights)
        misses = np.log(model.time(self._tokens) / times)
        if np.sqrt(np.mean(misses**2)) <= max(self._spread(), _FLOOR):
            return model
        return fit_smoother(self._tokens, times, weights)

    def refit(self, curve: Curve, rng: np.random.Generator) -> Curve:
        """A curve of the same kind through a resample: of each size's repeats, or else of the sizes."""
        if self._repeated:
            drawn = [rng.choice(rates, len(rates)) for rates in self._rates]
            tokens, times = self._tokens, self._times(drawn)
            weights = np.array([float(len(rates)) for rates in self._rates])
        else:
            kept, counts = np.unique(
                rng.integers(len(self._rates), size=len(self._rates)), return_counts=True
            )
            tokens, times = self._tokens[kept], self._times(self._rates)[kept]
            weights = counts.astype(np.float64)
        if isinstance(curve, ParametricCurve):
            return fit_parametric(tokens, times, weights, near=curve)
        assert isinstance(curve, SmoothCurve)
        return fit_smoother(tokens, times, weights, near=curve)

    def _times(self, rates: Sequence[Array]) -> Array:
        """The time that each group's median throughput stands for."""
        times: Array = self._tokens / np.array([np.median(group) for group in rates])
        return times

    def _spread(self) -> float:
        """The middle one of the groups' standard deviations of log throughput; 0 without repeats."""
        deviations = [float(np.std(np.log(rates), ddof=1)) for rates in self._rates if len(rates) > 1]
        return float(np.median(deviations)) if deviations else 0.0


def _point(curve: Curve, sizes: Array, q: float) -> tuple[int, bool]:
    """The smallest whole size with q of the curve's best; whether the best is at the end of the range."""
    grid: Array = np.unique(np.round(np.geomspace(sizes[0], sizes[-1], _GRID)))
    rates = curve.throughput(grid)
    enough = q * rates.max()
    at = int(np.argmax(rates >= enough))
    if at:
        between = np.arange(grid[at - 1] + 1, grid[at] + 1)
        reached = between[curve.throughput(between) >= enough]
        return int(reached[0]), int(rates.argmax()) == len(grid) - 1
    return int(grid[0]), int(rates.argmax()) == len(grid) - 1


def _raw(tokens: Array, times_s: Array, sizes: Array, q: float) -> tuple[int, int | None]:
    """First measured size whose median throughput is q of the best, and last one below; None if none is."""
    repeats = np.split(tokens / times_s, np.flatnonzero(np.diff(tokens)) + 1)
    rates = np.array([np.median(of_size) for of_size in repeats])
    enough = rates >= q * rates.max()
    below = sizes[~enough]
    return int(sizes[enough][0]), int(below[-1]) if len(below) else None
