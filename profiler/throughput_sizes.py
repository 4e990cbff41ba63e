"""Measured forwards by size: one throughput each, and how well it is known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FLOOR", "PARTS", "Sizes", "group_sizes"]

Array = NDArray[np.float64]

FLOOR = 0.01
"""A model within 1 % is good enough, however exact the repeats are."""

PARTS = 5
"""Parts of the time over which a size was measured, the same number of its repeats in each."""

_MAX_GROUPS = 160  # more sizes than this are grouped by neighbours
_TRIM = 3.0  # standard deviations from its size's median beyond which a repeat is left out
_ALLOWED = 1.5  # standard errors that misses may reach together: with 20 sizes chance does in 1 of 1,000
_BORROWED = 4  # repeats that a size's own spread borrows from all sizes


@dataclass(frozen=True, slots=True)
class Sizes:
    """(sizes,) columns in ascending order of tokens."""

    tokens: Array
    levels: Array  # log of throughput
    noise: Array  # standard error of the levels by the repeats; 0 without repeats
    errors: Array  # the same with the floor below which no miss counts
    allowed: Array  # misses of a curve, root mean square, that the repeats do not contradict
    without: Array  # (PARTS, sizes) the levels without each part of the time in turn
    spread: float  # standard deviation of log throughput among repeats, all sizes together; 0 without

    @property
    def times(self) -> Array:
        """The time that each size's throughput stands for."""
        return self.tokens / np.exp(self.levels)


def group_sizes(tokens: Array, times_s: Array) -> Sizes:
    """Sizes of points in the order measured, or groups of neighbouring sizes where there are very many."""
    order = np.argsort(tokens, kind="stable")
    tokens, levels = tokens[order], np.log(tokens[order] / times_s[order])
    sizes, which = np.unique(tokens, return_inverse=True)
    if len(sizes) > _MAX_GROUPS:
        edges = np.geomspace(sizes[0], sizes[-1], _MAX_GROUPS + 1)[1:-1]
        which = np.searchsorted(edges, tokens, side="right")
    cuts = np.flatnonzero(np.diff(which)) + 1
    repeats = np.split(levels, cuts)
    spread = _spread(repeats)
    middles, noise = np.array([_level(group, spread) for group in repeats]).T
    means = np.minimum(_ALLOWED, np.sqrt([len(group) for group in repeats]))  # never more than one repeat's
    return Sizes(
        tokens=np.array([np.median(group) for group in np.split(tokens, cuts)]),
        levels=middles,
        noise=noise,
        errors=np.hypot(noise, FLOOR),
        allowed=np.maximum(means * noise, FLOOR),
        without=np.array([[_level(rest, spread)[0] for rest in _rests(group)] for group in repeats]).T,
        spread=spread,
    )


def _rests(repeats: Array) -> list[Array]:
    """The repeats without each part in turn; all of them where a part is all there is."""
    if len(repeats) < 2:
        return [repeats] * PARTS
    part = np.arange(len(repeats)) * PARTS // len(repeats)
    return [repeats[part != left_out] for left_out in range(PARTS)]


def _spread(repeats: list[Array]) -> float:
    """The sizes' middle standard deviation, freed of what a median of few repeats lacks; 0 without repeats.

    Half of the sizes must be repeated. The median of a chi square with k degrees of freedom is about
    k (1 - 2 / 9k)^3 (Wilson and Hilferty, 1931).
    """
    repeated = [group for group in repeats if len(group) > 1]
    if 2 * len(repeated) < len(repeats):
        return 0.0
    return float(np.median([np.std(g, ddof=1) / (1 - 2 / (9 * (len(g) - 1))) ** 1.5 for g in repeated]))


def _level(repeats: Array, spread: float) -> tuple[float, float]:
    """The mean of a size's repeats without those far from their median, and its standard error."""
    middle = float(np.median(repeats))
    own = 1.4826 * float(np.median(np.abs(repeats - middle)))
    kept = repeats[np.abs(repeats - middle) <= _TRIM * max(spread, own)]
    squares = float(((kept - kept.mean()) ** 2).sum())
    variance = (_BORROWED * spread**2 + squares) / (_BORROWED + len(kept) - 1)
    return float(kept.mean()), float(np.sqrt(variance / len(kept))) if spread else 0.0
