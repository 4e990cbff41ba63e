"""The operators as Triton kernels, for a GPU. Importing this imports Triton."""

import torch
import triton

from engine.ops.torch_ops import TorchOps
from engine.ops.triton_choice import best_of_pieces_kernel, best_of_row_kernel
from engine.ops.triton_norms import LARGEST_SIZE, norm_warps, rms_norm_heads_kernel, rms_norm_kernel
from engine.ops.triton_silu import silu_and_mul_kernel

__all__ = ["TritonOps"]

SILU_BLOCK = 1024
HEAD_TILE = 1024  # elements of the heads that one program normalises
PIECE = 4096  # logits that one program looks at


class TritonOps:
    """Ops by kernels that read and write each element once; see there.

    Inputs may have any distance between rows, but their elements must lie side by side.
    """

    def rms_norm(self, hidden: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """See Ops."""
        return _normed(hidden, None, weight, eps)

    def add_rms_norm(
        self, update: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """See Ops."""
        return _normed(update, residual, weight, eps)

    def rms_norm_heads_(self, heads: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
        """See Ops."""
        tokens, num_heads, head_dim = heads.shape
        block_dim = triton.next_power_of_2(head_dim)
        block_heads = max(1, HEAD_TILE // block_dim)
        if tokens:
            rms_norm_heads_kernel[(tokens, triton.cdiv(num_heads, block_heads))](
                heads, weight, heads.stride(0), num_heads, eps, head_dim, block_heads, block_dim
            )

    def silu_and_mul(self, gate_up: torch.Tensor) -> torch.Tensor:
        """See Ops."""
        tokens, size = gate_up.shape[0], gate_up.shape[1] // 2
        out = gate_up.new_empty((tokens, size))
        if tokens:
            silu_and_mul_kernel[(tokens, triton.cdiv(size, SILU_BLOCK))](
                out, gate_up, gate_up.stride(0), size, SILU_BLOCK
            )
        return out

    def argmax(self, logits: torch.Tensor) -> torch.Tensor:
        """See Ops."""
        return _best(logits, len(logits), None, None, None)

    def noisy_argmax(
        self, logits: torch.Tensor, rows: torch.Tensor, temperatures: torch.Tensor, noise: torch.Tensor
    ) -> torch.Tensor:
        """See Ops."""
        return _best(logits, len(rows), rows, temperatures, noise)


def _normed(
    hidden: torch.Tensor, residual: torch.Tensor | None, weight: torch.Tensor, eps: float
) -> torch.Tensor:
    tokens, size = hidden.shape
    if size > LARGEST_SIZE:
        plain = TorchOps()
        if residual is None:
            return plain.rms_norm(hidden, weight, eps)
        return plain.add_rms_norm(hidden, residual, weight, eps)
    out = hidden.new_empty((tokens, size))
    block = triton.next_power_of_2(size)
    if tokens:
        rms_norm_kernel[(tokens,)](
            out,
            hidden,
            residual,
            weight,
            hidden.stride(0),
            0 if residual is None else residual.stride(0),
            eps,
            residual is not None,
            size,
            block,
            num_warps=norm_warps(block),
        )
    return out


def _best(
    logits: torch.Tensor,
    num_rows: int,
    rows: torch.Tensor | None,
    temperatures: torch.Tensor | None,
    noise: torch.Tensor | None,
) -> torch.Tensor:
    vocab_size = logits.shape[1]
    num_pieces = triton.cdiv(vocab_size, PIECE)
    out = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    if not num_rows:
        return out
    noisy = noise is not None
    scores = torch.empty((num_rows, num_pieces), dtype=torch.float32, device=logits.device)
    tops = torch.empty_like(scores) if noisy else None
    places = torch.empty_like(scores, dtype=torch.int32)
    best_of_pieces_kernel[(num_rows, num_pieces)](
        tops,
        scores,
        places,
        logits,
        rows,
        temperatures,
        noise,
        vocab_size,
        logits.stride(0),
        0 if noise is None else noise.stride(0),
        noisy,
        PIECE,
        num_warps=8,
    )
    best_of_row_kernel[(num_rows,)](
        out,
        tops,
        scores,
        places,
        temperatures,
        num_pieces,
        noisy,
        triton.next_power_of_2(num_pieces),
        num_warps=1,
    )
    return out
