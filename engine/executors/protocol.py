"""What the engine asks of whatever computes a forward."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.batch import ForwardBatch

__all__ = ["NO_TOKEN", "Executor", "ForwardResult"]

NO_TOKEN = -1  # stands where a row needed no logits


@dataclass(slots=True)
class ForwardResult:
    """What came out of one forward; times are nanoseconds of the engine's clock, unknown is None."""

    next_token_ids: Sequence[int]  # (rows,), NO_TOKEN for rows without logits
    start_ns: int  # device interval
    end_ns: int
    clock_error_ns: int | None = None
    memory_allocated_bytes: int | None = None  # held when the forward began: weights, KV pool, the rest
    memory_peak_bytes: int | None = None  # the most held during it


class Executor(Protocol):
    """Computes a batch: writes its tokens' KV through the rows' pages and samples one token a row."""

    def forward(self, batch: ForwardBatch) -> ForwardResult:
        """Run one forward to its end."""
        ...
