"""What a model asks of attention, whatever computes it."""

from typing import Protocol

import torch

from engine.batch import ForwardBatch

__all__ = ["AttentionBackend", "AttentionPlan"]


class AttentionPlan(Protocol):
    """One forward's rows, laid out once and used by every layer: first `store`, then `attend`."""

    def store(self, layer: int, qkv: torch.Tensor, rotations: torch.Tensor) -> None:
        """Rotate the new tokens' queries and keys in place, and put keys and values into their pages.

        `qkv` is (tokens, q_size + 2 * kv_size), the batch's tokens in order, contiguous; `rotations`
        (tokens, head_dim / 2) complex64 is the rotary table at the tokens' positions.
        """
        ...

    def attend(self, layer: int, qkv: torch.Tensor) -> torch.Tensor:
        """Let each token attend to its sequence up to itself; `qkv` as `store` left it.

        Returns (tokens, q_size).
        """
        ...


class AttentionBackend(Protocol):
    """Attention over one pool of paged keys and values."""

    def plan(self, batch: ForwardBatch) -> AttentionPlan:
        """Prepare for one forward; nothing of `batch` is held on to that the scheduler may change."""
        ...
