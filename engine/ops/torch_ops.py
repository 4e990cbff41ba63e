"""The operators in plain torch, for any device."""

import torch
import torch.nn.functional as F

__all__ = ["TorchOps"]


class TorchOps:
    """Ops by torch's own operators; see there."""

    def rms_norm(self, hidden: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """See Ops."""
        return F.rms_norm(hidden, (hidden.shape[-1],), weight, eps)

    def add_rms_norm(
        self, update: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """See Ops."""
        residual += update
        return self.rms_norm(residual, weight, eps)

    def rms_norm_heads_(self, heads: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
        """See Ops."""
        heads.copy_(F.rms_norm(heads, (heads.shape[-1],), None, eps).mul_(weight))

    def silu_and_mul(self, gate_up: torch.Tensor) -> torch.Tensor:
        """See Ops."""
        gate, up = gate_up.chunk(2, dim=-1)
        return F.silu(gate).mul_(up)

    def argmax(self, logits: torch.Tensor) -> torch.Tensor:
        """See Ops."""
        return logits.argmax(dim=-1)

    def noisy_argmax(
        self, logits: torch.Tensor, rows: torch.Tensor, temperatures: torch.Tensor, noise: torch.Tensor
    ) -> torch.Tensor:
        """See Ops."""
        picked = rows.new_empty(len(rows))
        for i in range(len(rows)):
            row = logits.index_select(0, rows[i : i + 1]).float()
            # Shifted so that a tiny temperature sends all but the best to -inf instead of overflowing.
            scores = row.sub_(row.amax()).div_(temperatures[i]).sub_(noise[i])
            torch.argmax(scores, dim=-1, out=picked[i : i + 1])
        return picked
