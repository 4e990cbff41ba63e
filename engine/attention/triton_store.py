"""A Triton kernel that rotates queries and keys and writes keys and values into their pages."""

# mypy: disable-error-code="untyped-decorator"

import torch
import triton
import triton.language as tl

from engine.attention.geometry import Geometry

__all__ = ["rotate_and_store", "store_kernel"]

HEADS_PER_PROGRAM = 16


@triton.jit(do_not_specialize=["tokens"])
def store_kernel(
    qkv: tl.tensor,
    rotations: tl.tensor,
    slots: tl.tensor,
    pool: tl.tensor,
    tokens: tl.tensor,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_H: tl.constexpr,
) -> None:
    """One program: BLOCK_H heads of the tokens' heads in a row, a token's being queries, keys and values."""
    HEADS: tl.constexpr = NUM_HEADS + 2 * NUM_KV_HEADS
    index = tl.program_id(0).to(tl.int64) * BLOCK_H + tl.arange(0, BLOCK_H)
    token = (index // HEADS)[:, None]
    head = (index % HEADS)[:, None]
    dim = tl.arange(0, BLOCK_D)[None, :]
    exists = (token < tokens) & (dim < HEAD_DIM)
    place = qkv + index[:, None] * HEAD_DIM + dim
    heads = tl.load(place, mask=exists, other=0.0)

    # Pairs lie side by side: (cos, sin) of a pair beside its two elements.
    factors = tl.load(rotations + token * HEAD_DIM + dim, mask=exists, other=0.0)
    cos, sin = tl.split(tl.reshape(factors, (BLOCK_H, BLOCK_D // 2, 2)))
    even, odd = tl.split(tl.reshape(heads.to(tl.float32), (BLOCK_H, BLOCK_D // 2, 2)))
    pairs = tl.join(even * cos - odd * sin, even * sin + odd * cos)
    rotated = tl.reshape(pairs, (BLOCK_H, BLOCK_D)).to(heads.dtype)

    is_rotated = head < NUM_HEADS + NUM_KV_HEADS
    tl.store(place, rotated, mask=exists & is_rotated)
    slot = tl.load(slots + token, mask=token < tokens, other=-1).to(tl.int64)
    target = pool + slot * (2 * NUM_KV_HEADS * HEAD_DIM) + (head - NUM_HEADS) * HEAD_DIM + dim
    tl.store(target, tl.where(is_rotated, rotated, heads), mask=exists & (head >= NUM_HEADS) & (slot >= 0))


def rotate_and_store(
    qkv: torch.Tensor, rotations: torch.Tensor, slots: torch.Tensor, pool: torch.Tensor, geometry: Geometry
) -> None:
    """Rotate queries and keys of `qkv` in place; write keys and values into `slots` of one layer's `pool`.

    `qkv` (tokens, q_size + 2 * kv_size), `rotations` (tokens, head_dim / 2) complex64, `slots` (tokens,)
    int32, a negative one storing nothing, `pool` (slots, 2 * kv_size). All are contiguous.
    """
    heads = geometry.num_heads + 2 * geometry.num_kv_heads
    store_kernel[(triton.cdiv(len(qkv) * heads, HEADS_PER_PROGRAM),)](
        qkv,
        torch.view_as_real(rotations),
        slots,
        pool,
        len(qkv),
        NUM_HEADS=geometry.num_heads,
        NUM_KV_HEADS=geometry.num_kv_heads,
        HEAD_DIM=geometry.head_dim,
        BLOCK_D=geometry.block_d,
        BLOCK_H=HEADS_PER_PROGRAM,
        num_warps=4,
    )
