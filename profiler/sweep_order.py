"""Which case a sweep measures next: passes in random orders, until each case is known well or time ends.

A machine's speed drifts, and other programs disturb it. So a pass goes over all cases in an order of its own,
whatever happens during a pass hits all sizes alike, and no size has all of its repeats at one time.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median

import numpy as np
from numpy.typing import NDArray

from profiler.sweep_cases import SweepCase
from profiler.sweep_plan import DECODE_FORWARDS

__all__ = ["Timings", "budgeted", "num_sizes_for", "repeated"]

MOST_REPEATS = 8  # of one case in one pass
EXTRA_COST = 0.5  # what further repeats may add to a pass, as a share of measuring each case once
ENOUGH_REPEATS = 5  # before a case can be known well
TIGHT = 0.01  # half width of the 95 % interval of its median time, as a share
FLOOR = 0.003  # a forward's spread is taken to be no less: few repeats may agree by chance
PRIOR_REPEATS = 3  # weight of the other cases' spread in that of one case
FEWEST_SIZES, FEWEST_OF_SEVERAL, MOST_SIZES = 16, 12, 24
PASSES = 3  # that the number of sizes should leave time for


class Timings:
    """What was measured of each case so far, in seconds."""

    def __init__(self) -> None:
        self._costs: dict[SweepCase, list[float]] = {}
        self._logs: dict[SweepCase, list[float]] = {}

    def note(self, case: SweepCase, cost_s: float, time_s: float | None = None) -> None:
        """A measurement took `cost_s` in all and gave a device time; one of the warm-up gives none."""
        self._costs.setdefault(case, []).append(cost_s)
        if time_s is not None:
            self._logs.setdefault(case, []).append(math.log(max(time_s, 1e-9)))

    def repeats(self, case: SweepCase) -> int:
        """How often it was measured."""
        return len(self._logs.get(case, ()))

    def known_well(self, cases: Sequence[SweepCase]) -> list[bool]:
        """Whether the 95 % interval of each case's median time is within TIGHT of it."""
        return [
            self.repeats(case) >= ENOUGH_REPEATS
            and 1.96 * math.sqrt(math.pi / 2) * spread / math.sqrt(self.repeats(case)) <= TIGHT
            for case, spread in zip(cases, self.spreads(cases), strict=True)
        ]

    def cost_s(self, case: SweepCase) -> float:
        """What the next measurement may take; 0 when nothing like it is known.

        A visit of decode rows takes as long as its forwards would with as many prompt tokens, or less where
        fewer rows tell so.
        """
        if case in self._costs:
            return median(self._costs[case])
        guess = case.cost_guess((known, median(costs)) for known, costs in self._costs.items())
        if not case.decode:
            return guess
        as_prompt = (DECODE_FORWARDS + 1) * self.cost_s(SweepCase(case.tokens))
        return min(guess, as_prompt) if guess and as_prompt else guess or as_prompt

    def spreads(self, cases: Sequence[SweepCase]) -> list[float]:
        """Standard deviation of log time of each case, drawn towards that of the middle case.

        From the median absolute deviation, so that one disturbed forward does not buy a case more repeats.
        """
        own = [self._deviation(case) for case in cases]
        common = median([spread for spread in own if spread is not None] or [FLOOR])
        spreads = []
        for case, spread in zip(cases, own, strict=True):
            count = self.repeats(case) if spread is not None else 0
            squares = count * (spread or 0.0) ** 2 + PRIOR_REPEATS * common**2
            spreads.append(max(math.sqrt(squares / (count + PRIOR_REPEATS)), FLOOR))
        return spreads

    def _deviation(self, case: SweepCase) -> float | None:
        logs = self._logs.get(case, [])
        if len(logs) < 3:
            return None
        middle = median(logs)
        return 1.4826 * median(abs(log - middle) for log in logs)


def num_sizes_for(
    cases_of: Callable[[int], Sequence[SweepCase]], timings: Timings, left_s: float, *, layouts: int = 1
) -> int:
    """How many sizes of a range leave time for three passes: 24, or fewer down to 16; 12 of several layouts.

    `cases_of` gives the cases for a number of sizes. A pass with its further repeats counts.
    """
    fewest = FEWEST_SIZES if layouts == 1 else FEWEST_OF_SEVERAL
    for count in range(MOST_SIZES, fewest, -1):
        once = sum(map(timings.cost_s, cases_of(count)))
        if once * (1 + (PASSES - 1) * (1 + EXTRA_COST)) <= left_s:
            return count
    return fewest


def repeated(
    cases: Sequence[SweepCase], timings: Timings, rng: np.random.Generator, repeats: int
) -> Iterator[SweepCase]:
    """Each case until it has `repeats`, in passes of random order; note each in `timings` before the next."""
    for enough in range(1, repeats + 1):
        yield from _shuffled([case for case in cases if timings.repeats(case) < enough], rng)


def budgeted(
    cases: Sequence[SweepCase],
    timings: Timings,
    rng: np.random.Generator,
    left_s: Callable[[], float],
) -> Iterator[SweepCase]:
    """Cases until all are known well, or until none fits into the time that is left.

    First each once; then passes in which each that is not yet known well comes at least once, those with a
    wide spread and those that cost little more often. Note each in `timings` before the next.
    """
    while wanted := _next_pass([case for case in cases if timings.cost_s(case) <= left_s()], timings):
        for case in _shuffled(wanted, rng):
            if timings.cost_s(case) <= left_s():
                yield case


def _next_pass(cases: Sequence[SweepCase], timings: Timings) -> list[SweepCase]:
    """What a pass measures, a case as often as it is in the list; empty when nothing is left to learn."""
    unseen = [case for case in cases if not timings.repeats(case)]
    if unseen:
        return unseen
    open_ = ~np.array(timings.known_well(cases), dtype=bool)
    loose = [case for case, is_open in zip(cases, open_, strict=True) if is_open]
    spreads = np.array(timings.spreads(cases))[open_]
    costs = np.array([max(timings.cost_s(case), 1e-9) for case in loose])
    # Repeats in proportion to spread / root of cost make the sum of squared errors least for what they cost.
    shares = spreads / np.sqrt(costs)
    return [case for case, times in zip(loose, _repeats(shares, costs), strict=True) for _ in range(times)]


def _repeats(shares: NDArray[np.float64], costs: NDArray[np.float64]) -> list[int]:
    """Whole numbers from 1 to MOST_REPEATS in proportion to `shares`, as many as EXTRA_COST allows."""
    if not len(shares):
        return []
    scale = MOST_REPEATS / shares.max()
    while True:
        times = np.clip(np.rint(scale * shares), 1, MOST_REPEATS).astype(int)
        if float(((times - 1) * costs).sum()) <= EXTRA_COST * float(costs.sum()):
            return list(map(int, times))
        scale *= 0.9


def _shuffled(cases: Sequence[SweepCase], rng: np.random.Generator) -> Iterator[SweepCase]:
    return (cases[at] for at in rng.permutation(len(cases)))
