"""Exact medians of many slices of one array: a wavelet matrix, all slices going down its levels together.

Source of the structure: Claude, Navarro, Ordóñez, "The wavelet matrix", Information Systems 47 (2015).
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["RangeMedian"]

Ints = NDArray[np.int64]


class RangeMedian:
    """Medians of slices of `values`."""

    def __init__(self, values: Ints) -> None:
        self._sorted, ranks = np.unique(values, return_inverse=True)
        self._levels: list[tuple[int, Ints]] = []  # bit, and zeros of it before each position
        for bit in reversed(range(max(1, (len(self._sorted) - 1).bit_length()))):
            zero = (ranks >> bit & 1) == 0
            self._levels.append((bit, np.concatenate(([0], np.cumsum(zero)))))
            ranks = np.concatenate((ranks[zero], ranks[~zero]))

    def of(self, low: Ints, high: Ints) -> NDArray[np.float64]:
        """Median of values[low[i]:high[i]] for each i, as numpy's; NaN of an empty slice."""
        medians = np.full(len(low), np.nan)
        some = np.flatnonzero(high > low)
        low, high = low[some], high[some]
        count = high - low
        lower = self._smallest(low, high, (count - 1) // 2)
        upper = self._smallest(low, high, count // 2)
        medians[some] = (lower + upper) / 2
        return medians

    def _smallest(self, low: Ints, high: Ints, k: Ints) -> Ints:
        """The k-th smallest value, from 0, of each slice."""
        rank = np.zeros(len(low), dtype=np.int64)
        for bit, zeros in self._levels:
            low_zeros, high_zeros = zeros[low], zeros[high]
            is_one = k >= high_zeros - low_zeros
            k = np.where(is_one, k - (high_zeros - low_zeros), k)
            rank |= is_one.astype(np.int64) << bit
            low = np.where(is_one, zeros[-1] + low - low_zeros, low_zeros)
            high = np.where(is_one, zeros[-1] + high - high_zeros, high_zeros)
        return self._sorted[rank]
