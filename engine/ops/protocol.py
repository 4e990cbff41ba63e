"""What a model and the sampler ask for between their matrix products, whatever computes it."""

from typing import Protocol

import torch

__all__ = ["Ops"]


class Ops(Protocol):
    """Operators on one flat batch. Each computes in float32 and rounds to the type it was given."""

    def rms_norm(self, hidden: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """hidden / sqrt(mean(hidden^2) + eps) * weight, row by row of (tokens, size), in a new tensor."""
        ...

    def add_rms_norm(
        self, update: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """Add `update` to `residual` in place, both (tokens, size), and return `rms_norm` of the sum.

        The sum is rounded to residual's type before it is normalised.
        """
        ...

    def rms_norm_heads_(self, heads: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
        """`rms_norm` of each head of (tokens, heads, head_dim) in place, by its row of (heads, head_dim).

        The elements of a token lie side by side; tokens may lie apart.
        """
        ...

    def silu_and_mul(self, gate_up: torch.Tensor) -> torch.Tensor:
        """gate * sigmoid(gate) * up, (tokens, size), of (tokens, 2 * size): gate first."""
        ...

    def argmax(self, logits: torch.Tensor) -> torch.Tensor:
        """(rows,) int64: the first place of the largest of each row of (rows, vocabulary)."""
        ...

    def noisy_argmax(
        self, logits: torch.Tensor, rows: torch.Tensor, temperatures: torch.Tensor, noise: torch.Tensor
    ) -> torch.Tensor:
        """(n,) int64: where logits[rows] / temperatures - noise is largest, `argmax` of each of n rows.

        `rows` is (n,) int64, `temperatures` (n,) and `noise` (n, vocabulary) are finite float32,
        temperatures normal numbers above 0. No float32 copy of the logits is made, but of a row at a time.
        """
        ...
