"""What a model asks of attention, whatever computes it."""

from typing import Protocol

import torch

from engine.batch import ForwardBatch

__all__ = ["AttentionBackend", "AttentionPlan"]


class AttentionPlan(Protocol):
    """One forward's rows, laid out once and used by every layer."""

    def attend(self, layer: int, qkv: torch.Tensor) -> torch.Tensor:
        """Store the new tokens' keys and values in their pages, then let each token attend to its sequence.

        `qkv` is (tokens, q_size + 2 * kv_size), the batch's tokens in order, queries and keys rotated.
        Returns (tokens, q_size).
        """
        ...


class AttentionBackend(Protocol):
    """Attention over one pool of paged keys and values."""

    def plan(self, batch: ForwardBatch) -> AttentionPlan:
        """Prepare for one forward; nothing of `batch` is held on to that the scheduler may change."""
        ...
