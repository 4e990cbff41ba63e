"""What the engine asks of whatever computes a forward."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from engine.batch import ForwardBatch

__all__ = ["NO_TOKEN", "Executor", "FinishedForward", "ForwardResult", "GraphKind", "PendingForward"]

NO_TOKEN = -1  # stands where a row needed no logits


class GraphKind(IntEnum):
    """How much of a forward was a replay of a captured graph; the order is that of the trace's enum."""

    NONE = 0
    FULL = 1
    PIECEWISE = 2


@dataclass(slots=True)
class ForwardResult:
    """What came out of one forward; times are nanoseconds of the engine's clock, unknown is None."""

    next_token_ids: Sequence[int]  # (rows,), NO_TOKEN for rows without logits
    start_ns: int  # device interval
    end_ns: int
    clock_error_ns: int | None = None
    memory_allocated_bytes: int | None = None  # held when the forward began: weights, KV pool, the rest
    memory_peak_bytes: int | None = None  # the most held during it
    graph: GraphKind = GraphKind.NONE
    padded_rows: int = 0  # computed beside the batch's own, to fill a graph up


class PendingForward(Protocol):
    """A forward that was launched."""

    def result(self) -> ForwardResult:
        """Wait for its end and return what came out; what went wrong in it is raised here."""
        ...


class FinishedForward:
    """A PendingForward of an executor that computes at launch."""

    def __init__(self, result: ForwardResult) -> None:
        self._result = result

    def result(self) -> ForwardResult:
        """The result, at once."""
        return self._result


class Executor(Protocol):
    """Computes batches: writes their tokens' KV through the rows' pages and samples one token a row."""

    def launch(self, batch: ForwardBatch) -> PendingForward:
        """Start a forward, which runs when those launched before it have ended: the KV pool relies on it.

        `batch.pages` are the scheduler's own rows: copy what is needed later before returning. A row of
        `batch.awaited_rows` takes as its input the token that the forward launched last samples for that
        row of its own, whether or not that forward has ended.
        """
        ...
