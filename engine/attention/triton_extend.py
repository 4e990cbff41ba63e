"""A Triton kernel for extend rows: new tokens attend to a paged prefix and causally to themselves.

One program computes a block of one row's queries for one head. It goes over the prefix in pages, then over
the new tokens' keys as they lie in `qkv`, with one running maximum and sum across both.
"""

# mypy: disable-error-code="untyped-decorator"

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from engine.attention.block_shapes import BlockShape
from engine.attention.geometry import Geometry
from engine.attention.triton_softmax import LOWEST, finish, step

__all__ = ["ExtendColumns", "extend", "extend_kernel"]


class ExtendColumns(NamedTuple):
    """Where extend rows lie, int32 on the device; the first two columns are per tile, the last is flat."""

    tile_rows: torch.Tensor  # (tiles,)
    tile_blocks: torch.Tensor  # (tiles,) which block of its row's new tokens
    first_tokens: torch.Tensor  # (rows,) place in the flat batch
    extend_lens: torch.Tensor  # (rows,)
    prefix_lens: torch.Tensor  # (rows,)
    page_starts: torch.Tensor  # (rows,) place in `pages`
    pages: torch.Tensor  # rows after one another, each at least as long as its prefix


@triton.jit
def _prefix_block(
    pool: tl.tensor,
    pages: tl.tensor,
    position: tl.tensor,
    prefix_len: tl.tensor,
    kv_head: tl.tensor,
    dim: tl.tensor,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """Keys and values (n, d) at `position` (n,); beyond the prefix the padding page's zeros."""
    page = tl.load(pages + position // PAGE_SIZE, mask=position < prefix_len, other=0)
    slot = page.to(tl.int64) * PAGE_SIZE + position % PAGE_SIZE
    place = pool + slot[:, None] * (2 * NUM_KV_HEADS * HEAD_DIM) + kv_head * HEAD_DIM + dim[None, :]
    key = tl.load(place, mask=dim[None, :] < HEAD_DIM, other=0.0)
    value = tl.load(place + NUM_KV_HEADS * HEAD_DIM, mask=dim[None, :] < HEAD_DIM, other=0.0)
    return key, value


@triton.jit
def extend_kernel(
    qkv: tl.tensor,
    pool: tl.tensor,
    out: tl.tensor,
    lse: tl.tensor,
    tile_rows: tl.tensor,
    tile_blocks: tl.tensor,
    first_tokens: tl.tensor,
    extend_lens: tl.tensor,
    prefix_lens: tl.tensor,
    page_starts: tl.tensor,
    pages: tl.tensor,
    scale: tl.tensor,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    WINDOW: tl.constexpr,
    WITH_LSE: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:
    """See `extend`. WINDOW 0 means none."""
    WIDTH: tl.constexpr = (NUM_HEADS + 2 * NUM_KV_HEADS) * HEAD_DIM
    head = tl.program_id(0)
    kv_head = head // (NUM_HEADS // NUM_KV_HEADS)
    row = tl.load(tile_rows + tl.program_id(1))
    first_query = tl.load(tile_blocks + tl.program_id(1)) * BLOCK_M
    first_token = tl.load(first_tokens + row).to(tl.int64)
    extend_len = tl.load(extend_lens + row)
    prefix_len = tl.load(prefix_lens + row)
    pages += tl.load(page_starts + row)
    qkv += first_token * WIDTH

    index = first_query + tl.arange(0, BLOCK_M)  # of the queries within the row
    dim = tl.arange(0, BLOCK_D)
    column = tl.arange(0, BLOCK_N)
    in_row = (index[:, None] < extend_len) & (dim[None, :] < HEAD_DIM)
    place = qkv + index.to(tl.int64)[:, None] * WIDTH + head * HEAD_DIM + dim[None, :]
    query = tl.load(place, mask=in_row, other=0.0)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    top = tl.full((BLOCK_M,), LOWEST, dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)

    # The prefix: whole blocks, of which a query sees all, then the rest. Under a window each block is masked.
    if WINDOW:
        first_seen = tl.maximum(prefix_len + first_query - WINDOW + 1, 0) // BLOCK_N * BLOCK_N
        whole_end = first_seen
    else:
        first_seen = 0
        whole_end = prefix_len // BLOCK_N * BLOCK_N
    for start in range(first_seen, whole_end, BLOCK_N):
        key, value = _prefix_block(
            pool, pages, start + column, prefix_len, kv_head, dim, NUM_KV_HEADS, HEAD_DIM, PAGE_SIZE
        )
        acc, top, total = step(query, key, value, True, acc, top, total, scale, MASKED=False)
    for start in range(whole_end, prefix_len, BLOCK_N):
        position = start + column
        key, value = _prefix_block(
            pool, pages, position, prefix_len, kv_head, dim, NUM_KV_HEADS, HEAD_DIM, PAGE_SIZE
        )
        visible = (position < prefix_len)[None, :]
        if WINDOW:
            visible = visible & (prefix_len + index[:, None] - position[None, :] < WINDOW)
        acc, top, total = step(query, key, value, visible, acc, top, total, scale, MASKED=True)

    # The new tokens: blocks below the diagonal, then those on it.
    place = qkv + column[:, None] * WIDTH + (NUM_HEADS + kv_head) * HEAD_DIM + dim[None, :]
    if WINDOW:
        first_seen = tl.maximum(first_query - WINDOW + 1, 0) // BLOCK_N * BLOCK_N
        whole_end = first_seen
    else:
        whole_end = first_query // BLOCK_N * BLOCK_N
    for start in range(first_seen, whole_end, BLOCK_N):
        here = place + tl.cast(start, tl.int64) * WIDTH
        key = tl.load(here, mask=dim[None, :] < HEAD_DIM, other=0.0)
        value = tl.load(here + NUM_KV_HEADS * HEAD_DIM, mask=dim[None, :] < HEAD_DIM, other=0.0)
        acc, top, total = step(query, key, value, True, acc, top, total, scale, MASKED=False)
    for start in range(whole_end, tl.minimum(first_query + BLOCK_M, extend_len), BLOCK_N):
        here = place + tl.cast(start, tl.int64) * WIDTH
        behind = index[:, None] - (start + column)[None, :]
        exists = ((start + column)[:, None] < extend_len) & (dim[None, :] < HEAD_DIM)
        key = tl.load(here, mask=exists, other=0.0)
        value = tl.load(here + NUM_KV_HEADS * HEAD_DIM, mask=exists, other=0.0)
        visible = behind >= 0
        if WINDOW:
            visible = visible & (behind < WINDOW)
        acc, top, total = step(query, key, value, visible, acc, top, total, scale, MASKED=True)

    result, row_lse = finish(acc, top, total)
    token = first_token + index
    place = out + token[:, None] * (NUM_HEADS * HEAD_DIM) + head * HEAD_DIM + dim[None, :]
    tl.store(place, result.to(out.dtype.element_ty), mask=in_row)
    if WITH_LSE:
        tl.store(lse + token * NUM_HEADS + head, row_lse, mask=index < extend_len)


def extend(
    qkv: torch.Tensor,
    pool: torch.Tensor,
    out: torch.Tensor,
    columns: ExtendColumns,
    geometry: Geometry,
    blocks: BlockShape,
    lse: torch.Tensor | None = None,
) -> None:
    """Attention of the batch's extend rows, whose tiles are blocks of `blocks.block_m` queries.

    `qkv` (tokens, q_size + 2 * kv_size) as stored, `pool` (slots, 2 * kv_size) of one layer. Writes `out`
    (tokens, q_size), and the natural log-sum-exp of the scaled scores to `lse` (tokens, heads) float32.
    All tensors are contiguous.
    """
    extend_kernel[(geometry.num_heads, len(columns.tile_rows))](
        qkv,
        pool,
        out,
        out if lse is None else lse,
        *columns,
        geometry.log2_scale,
        NUM_HEADS=geometry.num_heads,
        NUM_KV_HEADS=geometry.num_kv_heads,
        HEAD_DIM=geometry.head_dim,
        PAGE_SIZE=geometry.page_size,
        WINDOW=geometry.window or 0,
        WITH_LSE=lse is not None,
        BLOCK_D=geometry.block_d,
        BLOCK_M=blocks.block_m,
        BLOCK_N=blocks.block_n,
        num_warps=blocks.num_warps,
        num_stages=blocks.num_stages,
    )
