"""Keeps the pairs of forwards between which tokens were late by most, while a trace is gone through."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["WorstPairs"]

Ints = NDArray[np.int64]
_SPARE = 4  # kept for each that is asked for, as gaps of one pair can have several causes


class WorstPairs:
    """The pairs of the `top` largest values; of equals the ones that came first."""

    def __init__(self, top: int) -> None:
        self._most = _SPARE * top
        self._value = np.zeros(0, dtype=np.int64)
        self._before = np.zeros(0, dtype=np.int64)
        self._own = np.zeros(0, dtype=np.int64)

    def add(self, value: Ints, before: Ints, own: Ints) -> None:
        """Offer pairs with a value each; those of value 0 are passed over."""
        least = self._value[-1] if len(self._value) == self._most else 0
        some = np.flatnonzero(value > least)
        value = np.append(self._value, value[some])
        order = np.argsort(-value, kind="stable")[: self._most]
        self._value = value[order]
        self._before = np.append(self._before, before[some])[order]
        self._own = np.append(self._own, own[some])[order]

    def pairs(self) -> list[tuple[int, int]]:
        """Earlier and own forward of each, largest value first."""
        return list(zip(self._before.tolist(), self._own.tolist(), strict=True))
