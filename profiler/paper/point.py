"""The saturation point on paper: what `profiler.saturation` finds in a fit, of calculated forwards."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from profiler.paper.cost import PaperCost
from profiler.price_sums import chunk_sums
from profiler.throughput_sizes import FLOOR

__all__ = ["LARGEST_TOKENS", "PaperPoint", "paper_point"]

LARGEST_TOKENS = 16384  # the largest chunk that SGLang chooses by itself
GRID = 240
HALF_OCTAVE = 2**0.5


@dataclass(frozen=True, slots=True)
class PaperPoint:
    """Where forwards of one prompt without a prefix, of 1 to `largest` tokens, stop gaining."""

    status: str  # "ok" or "not_saturated"
    q: float
    largest: int
    tokens: int | None  # None unless the status is ok
    best_tokens: int  # the size with the best throughput
    best_tokens_per_s: float
    ridge_tokens: int | None  # least that multiplies as long as it reads weights; None beyond range


def paper_point(cost: PaperCost, largest: int, q: float = 0.95) -> PaperPoint:
    """The smallest whole T of 1..`largest` with at least `q` of the best throughput there.

    "not_saturated" where throughput has not fallen at the end of the range, by more than 1 % of its best,
    and the point lies within half an octave of it: as of a fit.
    """

    def rate(tokens: int) -> float:
        return tokens / cost.seconds(chunk_sums(tokens))

    def computes(tokens: int) -> bool:
        multiplying_s, reading_s = cost.bound_seconds(tokens)
        return multiplying_s >= reading_s

    grid = np.unique(np.round(np.geomspace(1, largest, GRID))).astype(int).tolist()
    rates = [rate(tokens) for tokens in grid]
    best = max(rates)
    best_tokens = grid[rates.index(best)]
    at = next(i for i, found in enumerate(rates) if found >= q * best)
    tokens = _least(grid[max(at - 1, 0)], grid[at], lambda size: rate(size) >= q * best)
    rising = rates[-1] >= (1 - FLOOR) * best and tokens > largest / HALF_OCTAVE
    return PaperPoint(
        status="not_saturated" if rising else "ok",
        q=q,
        largest=largest,
        tokens=None if rising else tokens,
        best_tokens=best_tokens,
        best_tokens_per_s=best,
        ridge_tokens=_least(1, largest, computes) if computes(largest) else None,
    )


def _least(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The least whole number from `low` for which `holds`, which it does from there to `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
