"""Triton kernels of RMSNorm: of whole rows, alone or with the residual added first, and of heads."""

# mypy: disable-error-code="untyped-decorator"

import triton
import triton.language as tl

__all__ = ["LARGEST_SIZE", "norm_warps", "rms_norm_heads_kernel", "rms_norm_kernel"]

LARGEST_SIZE = 16384  # of a row, which a program keeps in registers whole
WARP_ELEMENTS = 512  # two 16-byte loads of 16-bit elements a thread


def norm_warps(block: int) -> int:
    """Warps for a program that normalises `block` elements."""
    return min(max(block // WARP_ELEMENTS, 4), 16)


@triton.jit
def rms_norm_kernel(
    out_ptr: tl.tensor,
    hidden_ptr: tl.tensor,
    residual_ptr: tl.tensor,
    weight_ptr: tl.tensor,
    hidden_stride: int,
    residual_stride: int,
    eps: float,
    ADD: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """One row a program. With ADD the row is first added to residual's, which keeps the sum."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < SIZE
    hidden = tl.load(hidden_ptr + row * hidden_stride + columns, mask=inside, other=0.0).to(tl.float32)
    if ADD:
        residual_row = residual_ptr + row * residual_stride + columns
        total = hidden + tl.load(residual_row, mask=inside, other=0.0).to(tl.float32)
        rounded = total.to(residual_ptr.dtype.element_ty)
        tl.store(residual_row, rounded, mask=inside)
        hidden = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(hidden * hidden) / SIZE + eps)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    normed = (hidden * scale * weight).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * SIZE + columns, normed, mask=inside)


@triton.jit
def rms_norm_heads_kernel(
    heads_ptr: tl.tensor,
    weight_ptr: tl.tensor,
    token_stride: int,
    num_heads: int,
    eps: float,
    HEAD_DIM: tl.constexpr,
    BLOCK_HEADS: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
) -> None:
    """BLOCK_HEADS heads of one token a program, in place."""
    token = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)
    columns = tl.arange(0, BLOCK_DIM)
    places = heads[:, None] * HEAD_DIM + columns[None, :]
    inside = (heads < num_heads)[:, None] & (columns < HEAD_DIM)[None, :]
    tile = heads_ptr + token * token_stride + places
    x = tl.load(tile, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=1) / HEAD_DIM + eps)
    weight = tl.load(weight_ptr + places, mask=inside, other=0.0).to(tl.float32)
    tl.store(tile, (x * scale[:, None] * weight).to(heads_ptr.dtype.element_ty), mask=inside)
