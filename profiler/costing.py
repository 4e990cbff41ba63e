"""FLOPs and bytes of many forwards at once, by the closed forms of `engine.arithmetic`."""

import numpy as np
from numpy.typing import NDArray

from engine.arithmetic import ForwardCost, ForwardSums, activation_estimate_bytes, forward_cost
from engine.shapes import ModelShape
from profiler.row_block import Sums

__all__ = ["Costing"]

SUM_NAMES = tuple(ForwardSums.__dataclass_fields__)
COST_NAMES = tuple(ForwardCost.__dataclass_fields__)
LOGITS = "rows_with_logits"


class Costing:
    """Costs of forwards of one model, whose weights and KV have elements of one size.

    `forward_cost` is linear in a forward's sums, but for the head's weights, which are read once if any row
    has logits. So it is asked once for each sum, and the costs of many forwards are a product of matrices,
    exact as all numbers are integers.
    """

    def __init__(self, shape: ModelShape, element_bytes: int) -> None:
        self._shape = shape
        self._element_bytes = element_bytes
        self._per_unit = np.array([self._cost(**{name: 2}) - self._cost(**{name: 1}) for name in SUM_NAMES])
        self._fixed = self._cost()
        self._head = self._cost(**{LOGITS: 1}) - self._per_unit[SUM_NAMES.index(LOGITS)] - self._fixed

    def columns(self, sums: Sums) -> dict[str, NDArray[np.int64]]:
        """(forwards,) the trace's FLOPs and bytes columns."""
        told = np.stack([sums[name] for name in SUM_NAMES], axis=1)
        has_logits = sums[LOGITS] > 0
        costs = told @ self._per_unit + self._fixed + np.outer(has_logits, self._head)
        return {
            **dict(zip(COST_NAMES, costs.T, strict=True)),
            "activation_est_bytes": self._activations(sums),
        }

    def _cost(self, **sums: int) -> NDArray[np.int64]:
        told = ForwardSums(**{name: sums.get(name, 0) for name in SUM_NAMES})
        cost = forward_cost(self._shape, told, self._element_bytes, self._element_bytes)
        return np.array([getattr(cost, name) for name in COST_NAMES], dtype=np.int64)

    def _activations(self, sums: Sums) -> NDArray[np.int64]:
        tokens = sums["extend_tokens"] + sums["decode_tokens"]
        pairs = list(zip(tokens.tolist(), sums[LOGITS].tolist(), strict=True))
        size = self._element_bytes
        estimates = {pair: activation_estimate_bytes(self._shape, *pair, size) for pair in set(pairs)}
        return np.array([estimates[pair] for pair in pairs], dtype=np.int64)
