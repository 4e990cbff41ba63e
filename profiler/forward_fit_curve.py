"""`ForwardCurve`: the time of a forward as a sum of terms, and how it changes with each of them."""

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from engine.arithmetic import ForwardSums
from profiler.forward_features import FEATURES

__all__ = ["TERMS", "ForwardCurve"]

Array = NDArray[np.float64]

TERMS = ("fixed", "weights", "compute", "sharpness", "elementwise", *FEATURES[1:])
"""Parameters of a `ForwardCurve`, in order; the last ones multiply one feature each, `elementwise` tokens."""

_LINEAR = len(TERMS) - len(FEATURES)  # index of the first of these


@dataclass(frozen=True, slots=True)
class ForwardCurve:
    """time = fixed + (weights^p + (compute tokens)^p)^(1/p) + the sum of the other terms, in seconds.

    The layers' matrices are read (weights) and multiplied with a forward's tokens, the two overlapping more
    the higher the sharpness p >= 1 is (Williams et al., "Roofline", 2009, is p without end). Norms and the
    like move each token between them (elementwise).
    """

    fixed: float
    weights: float
    compute: float  # a token
    sharpness: float
    elementwise: float  # a token
    behind_prefix: float  # a token of an extend row behind a prefix
    pairs_prefix: float
    pairs_causal: float
    pairs_decode: float
    head: float  # once, if any row needs logits
    rows_with_logits: float

    @classmethod
    def from_vector(cls, vector: Array) -> "ForwardCurve":
        """From logarithms in the order of TERMS; of the sharpness that of p - 1."""
        values = np.exp(vector)
        values[TERMS.index("sharpness")] += 1
        return cls(*values.tolist())

    def slower(self, factor: float) -> "ForwardCurve":
        """The curve that takes `factor` times as long everywhere."""
        values = np.array(astuple(self)) * factor
        values[TERMS.index("sharpness")] = self.sharpness
        return ForwardCurve(*values.tolist())

    def vector(self) -> Array:
        """What `from_vector` takes."""
        values: Array = np.array(astuple(self), dtype=np.float64)
        values[TERMS.index("sharpness")] -= 1
        logs: Array = np.log(values)
        return logs

    def seconds(self, features: Array) -> Array:
        """(forwards,) times of (forwards, features)."""
        times: Array = self.fixed + self._matrices(features)[0] + self._others(features).sum(axis=1)
        return times

    def one(self, sums: ForwardSums) -> float:
        """The time of one forward: what `seconds` gives, without arrays, for runs of many forwards."""
        compute = self.compute * sums.tokens
        longer, shorter = max(self.weights, compute), min(self.weights, compute)
        matrices: float = longer * (1 + (shorter / longer) ** self.sharpness) ** (1 / self.sharpness)
        behind = min(sums.extend_tokens, sums.pairs_prefix)
        return (
            self.fixed
            + matrices
            + self.elementwise * sums.tokens
            + self.behind_prefix * behind
            + self.pairs_prefix * sums.pairs_prefix
            + self.pairs_causal * sums.pairs_causal
            + self.pairs_decode * sums.pairs_decode
            + self.head * min(1, sums.rows_with_logits)
            + self.rows_with_logits * sums.rows_with_logits
        )

    def sensitivity(self, features: Array) -> Array:
        """(forwards, terms) change of log time with each value of `vector`."""
        waiting, weights, compute = self._matrices(features)
        others = self._others(features)
        time = self.fixed + waiting + others.sum(axis=1)
        p = self.sharpness
        powers = weights**p, compute**p
        both = powers[0] + powers[1]
        entropy = powers[0] * np.log(weights) + powers[1] * _log(compute)
        matrices = (
            np.full(len(time), self.fixed),
            waiting * powers[0] / both,
            waiting * powers[1] / both,
            waiting * (entropy / both - np.log(both) / p) * (p - 1) / p,
        )
        changes: Array = np.column_stack([*matrices, others]) / time[:, None]
        return changes

    def _others(self, features: Array) -> Array:
        """(forwards, linear terms) seconds of each."""
        rates = np.array(astuple(self)[_LINEAR:])
        seconds: Array = features * rates
        return seconds

    def _matrices(self, features: Array) -> tuple[Array, Array, Array]:
        """Seconds of the matrices; reading and multiplying, relative to the longer of the two."""
        compute = self.compute * features[:, 0]
        longer = np.maximum(self.weights, compute)
        weights, compute = self.weights / longer, compute / longer
        both = (weights**self.sharpness + compute**self.sharpness) ** (1 / self.sharpness)
        return longer * both, weights, compute


def _log(values: Array) -> Array:
    """Logarithms; of what is too small to be a number that of the smallest, as its power is 0."""
    logs: Array = np.log(np.maximum(values, np.finfo(np.float64).tiny))
    return logs
