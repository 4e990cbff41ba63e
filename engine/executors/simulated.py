"""Runs planned forwards on a virtual clock: a cost model says how long each takes, nothing is computed."""

from typing import Protocol

import numpy as np

from engine.batch import MIDDLE_ROLES, ForwardBatch, IntColumn
from engine.clock import Clock
from engine.executors.protocol import NO_TOKEN, ForwardResult, PendingForward

__all__ = ["CostModel", "SimulatedExecutor"]

RID_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd numbers without pattern: of a request, and of a position
POSITION_FACTOR = np.uint64(0xD6E8FEB86659FD93)
HIGH_BITS = np.uint64(33)


class CostModel(Protocol):
    """Says how long a forward takes."""

    def forward_ns(self, batch: ForwardBatch) -> int:
        """Nanoseconds of the device. Must not depend on token ids, which may still be awaited."""
        ...


class SimulatedExecutor:
    """A device of one stream: a forward starts at its launch, or when the forward before has ended.

    `clock` should be the engine's and virtual: waiting for a result moves it to the forward's end. A launch
    takes `host_overhead_ns` of it, for all that the host does for a forward; in the plain loop this lies
    between forwards, under overlap it hides behind the forward before as long as that is longer.

    Sampled ids are pseudo-random and depend on the request's rid and the position alone, so any schedule
    gives a request the same tokens. What memory is held is unknown.
    """

    def __init__(
        self, cost_model: CostModel, clock: Clock, vocab_size: int, *, host_overhead_ns: int = 0
    ) -> None:
        self._cost_model = cost_model
        self._clock = clock
        self._vocab_size = np.uint64(vocab_size)
        self._host_overhead_ns = host_overhead_ns
        self._device_free_ns = 0

    def launch(self, batch: ForwardBatch) -> PendingForward:
        """Put a forward behind those launched before."""
        if self._host_overhead_ns:
            self._clock.wait_until(self._clock.now_ns() + self._host_overhead_ns)
        start_ns = max(self._clock.now_ns(), self._device_free_ns)
        end_ns = self._device_free_ns = start_ns + self._cost_model.forward_ns(batch)
        tokens = sampled_ids(batch.rids, batch.seq_lens, self._vocab_size).tolist()
        for row, role in enumerate(batch.roles[: batch.num_extend_seqs].tolist()):
            if role in MIDDLE_ROLES:
                tokens[row] = NO_TOKEN
        return _SimulatedForward(self._clock, ForwardResult(tokens, start_ns, end_ns))


class _SimulatedForward:
    """A forward whose end is known."""

    def __init__(self, clock: Clock, result: ForwardResult) -> None:
        self._clock = clock
        self._result = result

    def result(self) -> ForwardResult:
        """Move the clock to the forward's end."""
        self._clock.wait_until(self._result.end_ns)
        return self._result


def sampled_ids(rids: IntColumn, positions: IntColumn, vocab_size: np.uint64) -> IntColumn:
    """(rows,) a token id for each request and position, spread evenly over the vocabulary."""
    mixed = rids.astype(np.uint64) * RID_FACTOR + positions.astype(np.uint64) * POSITION_FACTOR
    mixed ^= mixed >> HIGH_BITS
    mixed *= RID_FACTOR
    mixed ^= mixed >> HIGH_BITS
    return (mixed % vocab_size).astype(np.int32)
