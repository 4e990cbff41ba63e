"""A parametric model of a forward's time against its tokens, for many sets of parameters at once.

Times are in any one unit; throughput is tokens per that unit.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["NUM_PARAMETERS", "Curve", "ParametricCurve", "Work", "log_sensitivity", "log_times"]

Array = NDArray[np.float64]

NUM_PARAMETERS = 5


class Curve(Protocol):
    """Throughput as a function of the tokens in a forward."""

    def throughput(self, tokens: Array) -> Array:
        """Tokens per unit of time at each number of tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """What attention's work is proportional to in a layout: square T² + linear T.

    One prompt of T tokens after a prefix of P has T P + T (T + 1) / 2 pairs: square 1, linear 2 P + 1. T
    decode rows of one context have work proportional to T.
    """

    square: float = 1.0
    linear: float = 0.0

    def of(self, tokens: Array) -> Array:
        """The work of each number of tokens."""
        work: Array = tokens * (self.square * tokens + self.linear)
        return work


@dataclass(frozen=True, slots=True)
class ParametricCurve:
    """time(T) = fixed + (memory^p + (compute T)^p)^(1/p) + attention work(T).

    A forward first waits for its weights (memory), then for its multiplications (compute T), the two
    overlapping more the higher the sharpness p (Williams et al., "Roofline", 2009, is p without end); a
    constant host cost stands before, and attention grows with its own work.
    """

    fixed: float
    memory: float
    compute: float
    attention: float
    sharpness: float
    work: Work = Work()

    def time(self, tokens: Array) -> Array:
        """Time of a forward of so many tokens."""
        whole: Array = _terms(self.vector()[None], tokens, self.work.of(tokens))[0][0]
        return whole

    def sensitivity(self, tokens: Array) -> Array:
        """(tokens, 5) change of log time with the log of each parameter, in order."""
        changes: Array = log_sensitivity(self.vector()[None], tokens, self.work.of(tokens))[1][0]
        return changes

    def throughput(self, tokens: Array) -> Array:
        """Tokens per unit of time at each number of tokens."""
        return tokens / self.time(tokens)

    def vector(self) -> Array:
        """(5,) logarithms of the parameters, in order."""
        return np.log([self.fixed, self.memory, self.compute, self.attention, self.sharpness])


def log_times(vectors: Array, tokens: Array, work: Array) -> Array:
    """(fits, tokens) log time for (fits, 5) logarithms of parameters; `work` is attention's of each token."""
    logs: Array = np.log(_terms(vectors, tokens, work)[0])
    return logs


def log_sensitivity(vectors: Array, tokens: Array, work: Array) -> tuple[Array, Array]:
    """(fits, tokens) time, and (fits, tokens, 5) change of its log with the log of each parameter."""
    times, waiting, memory, compute, total = _terms(vectors, tokens, work)
    p = np.exp(vectors[:, [4]])
    share = np.exp(p * memory - total)  # of memory in the sum of powers
    sharper = share * memory + (1 - share) * compute
    columns = (
        np.broadcast_to(np.exp(vectors[:, [0]]), times.shape),
        waiting * share,
        waiting * (1 - share),
        np.exp(vectors[:, [3]]) * work,
        waiting * (sharper - total / p),
    )
    return times, np.stack(columns, axis=2) / times[:, :, None]


def _terms(vectors: Array, tokens: Array, work: Array) -> tuple[Array, Array, Array, Array, Array]:
    """(fits, sizes): time; waiting for memory or compute; log of these two; log sum of their powers."""
    fixed, memory, compute, attention, sharpness = (vectors[:, [i]] for i in range(NUM_PARAMETERS))
    p = np.exp(sharpness)
    log_compute = compute + np.log(tokens)
    total = np.logaddexp(p * memory, p * log_compute)
    waiting = np.exp(total / p)
    times = np.exp(fixed) + waiting + np.exp(attention) * work
    return times, waiting, np.broadcast_to(memory, waiting.shape), log_compute, total
