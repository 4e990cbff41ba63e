"""Keeps the pairs of forwards between which tokens were late by most, while a trace is gone through."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["WorstPairs"]

Ints = NDArray[np.int64]
_SPARE = 3  # kept for each that is asked for, as gaps of one pair can have several causes
_BITS = 32  # positions of forwards are below 2 ** 32


class WorstPairs:
    """The pairs of the `top` largest values, of equals the earlier; `together` joins those of one pair."""

    def __init__(self, top: int, together: np.ufunc = np.maximum) -> None:
        self._most = _SPARE * top
        self._together = together
        self._value = np.zeros(0, dtype=np.int64)
        self._pair = np.zeros(0, dtype=np.int64)

    def add(self, value: Ints, before: Ints, own: Ints) -> None:
        """Offer pairs with a value each; those of value 0 are passed over."""
        some = np.flatnonzero(value > 0)
        pair = np.append(self._pair, (own[some] << _BITS) + before[some])
        pair, which = np.unique(pair, return_inverse=True)
        joined = np.zeros(len(pair), dtype=np.int64)
        self._together.at(joined, which, np.append(self._value, value[some]))
        order = np.argsort(-joined, kind="stable")[: self._most]
        self._value, self._pair = joined[order], pair[order]

    def pairs(self) -> list[tuple[int, int]]:
        """Earlier and own forward of each, largest value first."""
        own, before = self._pair >> _BITS, self._pair & (1 << _BITS) - 1
        return list(zip(before.tolist(), own.tolist(), strict=True))
