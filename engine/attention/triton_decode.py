"""Triton kernels for decode rows: split keys among programs, then merge what they found.

One program of the first kernel takes query heads that share a KV head over one split of a row's keys, and
leaves a normalised output and its log-sum-exp; the second merges a row's splits.
"""

# mypy: disable-error-code="untyped-decorator"

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from engine.attention.block_shapes import BlockShape
from engine.attention.decode_splits import head_tiles
from engine.attention.geometry import Geometry
from engine.attention.triton_softmax import LOWEST, finish, step

__all__ = ["DecodeColumns", "decode", "decode_kernel", "merge_splits_kernel"]


class DecodeColumns(NamedTuple):
    """Where decode rows lie, int32 on the device; a row of no keys has `seq_lens` 0."""

    seq_lens: torch.Tensor  # (rows,) with the new token
    split_lens: torch.Tensor  # (rows,) keys per split, at least 1
    page_starts: torch.Tensor  # (rows,) place in `pages`
    pages: torch.Tensor  # rows after one another


@triton.jit
def decode_kernel(
    qkv: tl.tensor,
    pool: tl.tensor,
    split_out: tl.tensor,
    split_lse: tl.tensor,
    seq_lens: tl.tensor,
    split_lens: tl.tensor,
    page_starts: tl.tensor,
    pages: tl.tensor,
    scale: tl.tensor,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    WINDOW: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:
    """Partial attention of one (head tile, split, row); splits beyond the row's keys write nothing."""
    GROUP: tl.constexpr = NUM_HEADS // NUM_KV_HEADS
    TILES: tl.constexpr = (GROUP + BLOCK_H - 1) // BLOCK_H
    WIDTH: tl.constexpr = (NUM_HEADS + 2 * NUM_KV_HEADS) * HEAD_DIM
    kv_head = tl.program_id(0) // TILES
    split = tl.program_id(1)
    row = tl.program_id(2).to(tl.int64)
    seq_len = tl.load(seq_lens + row)
    split_len = tl.load(split_lens + row)
    first = split * split_len
    if WINDOW:
        first += tl.maximum(seq_len - WINDOW, 0)
    end = tl.minimum(first + split_len, seq_len)
    if first >= end:
        return
    pages += tl.load(page_starts + row)

    in_group = tl.program_id(0) % TILES * BLOCK_H + tl.arange(0, BLOCK_H)
    head = kv_head * GROUP + in_group
    dim = tl.arange(0, BLOCK_D)
    exists = (in_group[:, None] < GROUP) & (dim[None, :] < HEAD_DIM)
    query = tl.load(qkv + row * WIDTH + head[:, None] * HEAD_DIM + dim[None, :], mask=exists, other=0.0)
    acc = tl.zeros((BLOCK_H, BLOCK_D), dtype=tl.float32)
    top = tl.full((BLOCK_H,), LOWEST, dtype=tl.float32)
    total = tl.zeros((BLOCK_H,), dtype=tl.float32)
    for start in range(first, end, BLOCK_N):
        position = start + tl.arange(0, BLOCK_N)
        page = tl.load(pages + position // PAGE_SIZE, mask=position < end, other=0)
        slot = page.to(tl.int64) * PAGE_SIZE + position % PAGE_SIZE
        place = pool + slot[:, None] * (2 * NUM_KV_HEADS * HEAD_DIM) + kv_head * HEAD_DIM + dim[None, :]
        key = tl.load(place, mask=dim[None, :] < HEAD_DIM, other=0.0)
        value = tl.load(place + NUM_KV_HEADS * HEAD_DIM, mask=dim[None, :] < HEAD_DIM, other=0.0)
        visible = (position < end)[None, :]
        acc, top, total = step(query, key, value, visible, acc, top, total, scale, MASKED=True)

    result, lse = finish(acc, top, total)
    place = (row * NUM_HEADS + head) * tl.num_programs(1) + split
    tl.store(split_out + place[:, None] * HEAD_DIM + dim[None, :], result, mask=exists)
    tl.store(split_lse + place, lse, mask=in_group < GROUP)


@triton.jit(do_not_specialize=["max_splits"])
def merge_splits_kernel(
    split_out: tl.tensor,
    split_lse: tl.tensor,
    out: tl.tensor,
    seq_lens: tl.tensor,
    split_lens: tl.tensor,
    max_splits: tl.tensor,
    NUM_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WINDOW: tl.constexpr,
    BLOCK_D: tl.constexpr,
) -> None:
    """One (head, row): the splits' outputs, each weighted by the exponential of its log-sum-exp."""
    head = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    num_keys = tl.load(seq_lens + row)
    if WINDOW:
        num_keys = tl.minimum(num_keys, WINDOW)
    dim = tl.arange(0, BLOCK_D)
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    top = tl.cast(LOWEST, tl.float32)
    total = tl.cast(0.0, tl.float32)
    place = (row * NUM_HEADS + head) * max_splits
    for split in range(0, tl.cdiv(num_keys, tl.load(split_lens + row))):
        part = tl.load(split_out + (place + split) * HEAD_DIM + dim, mask=dim < HEAD_DIM, other=0.0)
        lse = tl.load(split_lse + place + split)
        new_top = tl.maximum(top, lse)
        weight = tl.exp(lse - new_top)
        shrink = tl.exp(top - new_top)
        acc = acc * shrink + part * weight
        total = total * shrink + weight
        top = new_top
    result = acc / tl.where(total > 0.0, total, 1.0)
    place = out + (row * NUM_HEADS + head) * HEAD_DIM + dim
    tl.store(place, result.to(out.dtype.element_ty), mask=dim < HEAD_DIM)


def decode(
    qkv: torch.Tensor,
    pool: torch.Tensor,
    out: torch.Tensor,
    columns: DecodeColumns,
    max_splits: int,
    geometry: Geometry,
    blocks: BlockShape,
) -> None:
    """Attention of rows of one new token each, whose key and value are in the pages already.

    `qkv` (rows, q_size + 2 * kv_size) as stored, `pool` (slots, 2 * kv_size) of one layer. Writes `out`
    (rows, q_size), zeros for a row of no keys. No row has more than `max_splits` splits. All tensors are
    contiguous.
    """
    rows, heads = len(qkv), geometry.num_heads
    split_out = qkv.new_empty((rows, heads, max_splits, geometry.head_dim), dtype=torch.float32)
    split_lse = qkv.new_empty((rows, heads, max_splits), dtype=torch.float32)
    tiles = head_tiles(heads, geometry.num_kv_heads, blocks.block_m)
    decode_kernel[(tiles, max_splits, rows)](
        qkv,
        pool,
        split_out,
        split_lse,
        *columns,
        geometry.log2_scale,
        NUM_HEADS=heads,
        NUM_KV_HEADS=geometry.num_kv_heads,
        HEAD_DIM=geometry.head_dim,
        PAGE_SIZE=geometry.page_size,
        WINDOW=geometry.window or 0,
        BLOCK_D=geometry.block_d,
        BLOCK_H=blocks.block_m,
        BLOCK_N=blocks.block_n,
        num_warps=blocks.num_warps,
        num_stages=blocks.num_stages,
    )
    merge_splits_kernel[(heads, rows)](
        split_out,
        split_lse,
        out,
        columns.seq_lens,
        columns.split_lens,
        max_splits,
        NUM_HEADS=heads,
        HEAD_DIM=geometry.head_dim,
        WINDOW=geometry.window or 0,
        BLOCK_D=geometry.block_d,
        num_warps=1,
    )
