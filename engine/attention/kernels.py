"""Attention of dense queries over dense keys, with the log-sum-exp that merging needs."""

from typing import Protocol

import torch

__all__ = ["AttentionKernel", "blockwise_attention", "cpu_flash_attention", "default_kernel", "merge"]

QUERY_BLOCK = 256
KEY_BLOCK = 1024


class AttentionKernel(Protocol):
    """Scaled dot-product attention, scale 1 / sqrt(head_dim), with grouped heads."""

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        *,
        causal: bool = False,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`query` (batch, heads, n, head_dim) over `key` and `value` (batch, kv heads, m, head_dim).

        `causal` (n = m) lets position i see keys up to i. `mask` (batch, 1, 1, m) float32 is added to the
        scores; no query may have all keys at -inf. Returns the output, of query's shape and type, and the
        natural log-sum-exp of the scaled scores, (batch, heads, n) in float32.
        """
        ...


def default_kernel(device: torch.device) -> AttentionKernel:
    """The fastest kernel that torch has for `device`."""
    if device.type == "cpu" and hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu"):
        return cpu_flash_attention
    return blockwise_attention


def cpu_flash_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    causal: bool = False,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """AttentionKernel by torch's flash operator for the CPU, which broadcasts grouped heads by itself."""
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, causal, attn_mask=mask
    )
    return out, lse


def blockwise_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    causal: bool = False,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """AttentionKernel in plain torch on any device, in float32, never holding more than a block of scores."""
    blocks = [
        _query_block(query[:, :, start : start + QUERY_BLOCK], key, value, start if causal else None, mask)
        for start in range(0, query.shape[2], QUERY_BLOCK)
    ]
    # Heads innermost but one, as the layer after attention wants them.
    out = torch.cat([block.transpose(1, 2) for block, _ in blocks], dim=1).transpose(1, 2)
    return out.to(query.dtype), torch.cat([lse for _, lse in blocks], dim=2)


def _query_block(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    first_position: int | None,
    mask: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Online softmax (Milakov and Gimelshein, 2018) of one block of queries over blocks of keys.

    `first_position` is that of the block's first query if attention is causal.
    """
    batch, heads, n, head_dim = query.shape
    kv_heads = key.shape[1]
    # The queries of a group stand below one another, so that they share one product with their key head.
    grouped = query.float().mul(head_dim**-0.5).reshape(batch, kv_heads, heads // kv_heads * n, head_dim)
    positions = None
    if first_position is not None:
        positions = torch.arange(first_position, first_position + n, device=query.device)
        positions = positions.repeat(heads // kv_heads).unsqueeze(1)
    top = grouped.new_full((*grouped.shape[:3], 1), -torch.inf)
    total = torch.zeros_like(top)
    out = torch.zeros_like(grouped)
    last = key.shape[2] if first_position is None else first_position + n
    for start in range(0, last, KEY_BLOCK):
        keys = slice(start, min(start + KEY_BLOCK, last))
        scores = grouped @ key[:, :, keys].float().transpose(2, 3)
        if mask is not None:
            scores += mask[..., keys]
        if positions is not None:
            scores.masked_fill_(torch.arange(start, keys.stop, device=query.device) > positions, -torch.inf)
        new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        weights = scores.sub_(new_top).exp_()
        shrink = (top - new_top).exp_()
        total = total * shrink + weights.sum(dim=-1, keepdim=True)
        out = out * shrink + weights @ value[:, :, keys].float()
        top = new_top
    lse = (top + total.log()).reshape(batch, heads, n)
    return (out / total).reshape(batch, heads, n, head_dim), lse


def merge(
    out_a: torch.Tensor, lse_a: torch.Tensor, out_b: torch.Tensor, lse_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention over the union of two disjoint key sets, from the outputs and log-sum-exps over each.

    o = (w_a o_a + w_b o_b) / (w_a + w_b) with w = exp(lse - max lse), and lse = max lse + log(w_a + w_b).
    The output has `out_a`'s type.
    """
    top = torch.maximum(lse_a, lse_b)
    weight_a = (lse_a - top).exp_()
    weight_b = (lse_b - top).exp_()
    total = weight_a + weight_b
    share_b = (weight_b / total).unsqueeze(-1)
    out = torch.lerp(out_a.float(), out_b.float(), share_b)
    return out.to(out_a.dtype), total.log_().add_(top)
