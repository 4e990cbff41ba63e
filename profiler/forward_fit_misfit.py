"""How far forwards of any size lie from a fitted curve: as far as the fitted ones of about that size did."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.forward_fit import Groups

__all__ = ["SizeMisfit", "misfit_at", "misfits_of"]

Array = NDArray[np.float64]

_STEPS = 2  # an octave of tokens
# Curves of real GEMMs leave the form of ours: an octave away from the one chunk size that was fitted, times
# by Vidur's profiles of A40, A100 and H100 are missed by 8 % (root mean square). What the terms leave open is
# about half of that variance.
_PER_OCTAVE = 0.06
_OUTLIERS = 3.0  # typical misses, of which no miss counts as more
_MOST_OCTAVES = 2.0


@dataclass(frozen=True, slots=True)
class SizeMisfit:
    """Standard deviation of log time of forwards of about so many tokens around the curve."""

    tokens: float
    misfit: float


def misfits_of(groups: Groups, seconds: Array, least: float) -> tuple[SizeMisfit, ...]:
    """One for each half octave of tokens that has groups, ascending; (groups,) `seconds` are the curve's.

    It is the root mean square miss, outliers cut, less the scatter of equal forwards, and at least `least`.
    """
    misses = np.abs(np.log(groups.seconds / seconds))
    octaves = np.round(np.log2(groups.features[:, 0]) * _STEPS)
    found = []
    for octave in np.unique(octaves):
        near = octaves == octave
        cut = np.minimum(misses[near], _OUTLIERS * np.median(misses[near]))
        beyond = np.mean(cut**2) - np.median(groups.variance[near])
        found.append(SizeMisfit(2 ** (octave / _STEPS), max(least, math.sqrt(max(beyond, 0.0)))))
    return tuple(found)


def misfit_at(misfits: Sequence[SizeMisfit], tokens: int) -> float:
    """That of the nearest size that was fitted, and more with each octave of distance."""
    octave = math.log2(max(tokens, 1))
    distance, nearest = min((abs(octave - math.log2(size.tokens)), size.misfit) for size in misfits)
    apart = max(0.0, min(distance, _MOST_OCTAVES) - 0.5 / _STEPS)
    return math.hypot(nearest, _PER_OCTAVE * apart)
