"""From forward ids to places in a `ForwardTable`, for columns of millions of ids."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["ForwardPositions"]

_DENSE = 16  # a table over all ids may be this many times as long as there are forwards


class ForwardPositions:
    """The position of each id in `forward_id` (in any order, each once)."""

    def __init__(self, forward_id: NDArray[np.int64]) -> None:
        self._sorted: NDArray[np.int64] | None = None
        largest = int(forward_id.max()) if len(forward_id) else 0
        if largest <= _DENSE * (len(forward_id) + 1):
            self._table = np.full(largest + 2, -1, dtype=np.int32)
            self._table[forward_id] = np.arange(len(forward_id))
        else:
            self._table = np.argsort(forward_id, kind="stable").astype(np.int32)
            self._sorted = forward_id[self._table]

    def of(self, ids: NDArray[np.uint32]) -> NDArray[np.int32]:
        """(ids,) positions; -1 of an id that is not there."""
        if self._sorted is None:
            return self._table[np.minimum(ids, len(self._table) - 1)]
        at = np.searchsorted(self._sorted, ids).clip(max=len(self._sorted) - 1)
        return np.where(self._sorted[at] == ids, self._table[at], np.int32(-1))
