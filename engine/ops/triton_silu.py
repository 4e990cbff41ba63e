"""Triton kernel of the gated activation."""

# mypy: disable-error-code="untyped-decorator"

import triton
import triton.language as tl

__all__ = ["silu_and_mul_kernel"]


@triton.jit
def silu_and_mul_kernel(
    out_ptr: tl.tensor, gate_up_ptr: tl.tensor, row_stride: int, SIZE: tl.constexpr, BLOCK: tl.constexpr
) -> None:
    """BLOCK elements of one row's product a program; the row holds SIZE gates, then SIZE ups."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < SIZE
    gates = gate_up_ptr + row * row_stride + columns
    gate = tl.load(gates, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gates + SIZE, mask=inside, other=0.0).to(tl.float32)
    product = gate * tl.sigmoid(gate) * up
    tl.store(out_ptr + row * SIZE + columns, product.to(out_ptr.dtype.element_ty), mask=inside)
