"""Attention over paged keys and values in plain torch, for any device.

An extend row attends in two stages: an unmasked rectangle over its paged prefix and a causal triangle over
its new tokens, merged through their log-sum-exps. Decode rows of similar length share one padded call.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.attention.columns import token_slots
from engine.attention.decode_groups import group_by_length
from engine.attention.kernels import AttentionKernel, default_kernel, merge
from engine.attention.protocol import AttentionPlan
from engine.batch import ForwardBatch
from engine.kv_tensors import KVTensors
from engine.marks import mark
from engine.models.rotary import rotate_
from engine.operators import Operator
from engine.shapes import ModelShape
from engine.transfer import to_device

__all__ = ["TorchPagedAttention"]

# Decode rows share a call while one layer's copy of their keys and values stays this small: on a CPU within
# the cache, elsewhere within a modest workspace. A quarter of it in padding costs as much as one more call.
CPU_GROUP_BYTES = 3 << 19
GROUP_BYTES = 64 << 20
PADDING_SHARE = 4


class TorchPagedAttention:
    """AttentionBackend whose every step is a torch operator; `kernel` defaults to the device's fastest."""

    def __init__(self, shape: ModelShape, kv: KVTensors, kernel: AttentionKernel | None = None) -> None:
        self._q_size = shape.q_size
        self._kv = kv
        self._kernel = kernel or default_kernel(kv.device)

    def plan(self, batch: ForwardBatch) -> AttentionPlan:
        """Lay out one forward."""
        return _Plan(self._q_size, self._kv, self._kernel, batch)


@dataclass(frozen=True, slots=True)
class _ExtendRow:
    tokens: slice  # in the flat batch
    prefix_len: int
    prefix_pages: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class _DecodeGroup:
    tokens: torch.Tensor | slice  # in the flat batch
    size: int
    seq_len: int  # of the longest row
    pages: torch.Tensor  # (size * pages of the longest row), short rows filled up with page 0
    mask: torch.Tensor | None  # (size, 1, 1, seq_len), None if all are as long


class _Plan:
    def __init__(self, q_size: int, kv: KVTensors, kernel: AttentionKernel, batch: ForwardBatch) -> None:
        self._q_size = q_size
        self._kv = kv
        self._kernel = kernel
        self._slots = to_device(token_slots(batch), kv.device)
        self._extend_rows = _extend_rows(batch, kv.device)
        self._decode_groups = _decode_groups(batch, kv)
        gathered = [len(row.prefix_pages) for row in self._extend_rows if row.prefix_pages is not None]
        gathered += [len(group.pages) for group in self._decode_groups]
        self._workspace = kv.workspace(max(gathered, default=0))

    def store(self, layer: int, qkv: torch.Tensor, rotations: torch.Tensor) -> None:
        """See AttentionPlan."""
        heads = qkv.view(len(qkv), -1, self._kv.head_dim)
        rotate_(heads[:, : -self._kv.num_kv_heads], rotations)
        self._kv.write(layer, self._slots, qkv[:, self._q_size :])

    def attend(self, layer: int, qkv: torch.Tensor) -> torch.Tensor:
        """See AttentionPlan."""
        out = qkv.new_empty((qkv.shape[0], self._q_size))
        mark(Operator.ATTENTION_EXTEND, layer)
        for row in self._extend_rows:
            out[row.tokens] = self._extend(layer, qkv[row.tokens], row)
        mark(Operator.ATTENTION_DECODE, layer)
        for group in self._decode_groups:
            out[group.tokens] = self._decode(layer, qkv[group.tokens, : self._q_size], group)
        return out

    def _extend(self, layer: int, qkv: torch.Tensor, row: _ExtendRow) -> torch.Tensor:
        heads = qkv.view(1, qkv.shape[0], -1, self._kv.head_dim).transpose(1, 2)
        kv_heads = self._kv.num_kv_heads
        query, key, value = (
            heads[:, : -2 * kv_heads],
            heads[:, -2 * kv_heads : -kv_heads],
            heads[:, -kv_heads:],
        )
        out, lse = self._kernel(query, key, value, causal=True)
        if row.prefix_pages is not None:
            prefix = self._kv.gather(layer, row.prefix_pages, self._workspace)[: row.prefix_len]
            key, value = prefix.permute(1, 2, 0, 3).unsqueeze(1)
            out, _ = merge(out, lse, *self._kernel(query, key, value))
        return out.transpose(1, 2).reshape(-1, self._q_size)

    def _decode(self, layer: int, query: torch.Tensor, group: _DecodeGroup) -> torch.Tensor:
        gathered = self._kv.gather(layer, group.pages, self._workspace)
        rows = gathered.view(group.size, -1, *gathered.shape[1:])[:, : group.seq_len]
        key, value = rows.permute(2, 0, 3, 1, 4)
        heads = query.view(group.size, -1, 1, self._kv.head_dim)
        out, _ = self._kernel(heads, key, value, mask=group.mask)
        return out.reshape(group.size, self._q_size)


def _extend_rows(batch: ForwardBatch, device: torch.device) -> list[_ExtendRow]:
    rows = []
    end = 0
    for i in range(batch.num_extend_seqs):
        start, end = end, end + int(batch.extend_lens[i])
        prefix_len = int(batch.prefix_lens[i])
        num_pages = -(-prefix_len // batch.page_size)
        pages = np.array(batch.pages[i][:num_pages], dtype=np.int64)
        rows.append(
            _ExtendRow(slice(start, end), prefix_len, to_device(pages, device) if prefix_len else None)
        )
    return rows


def _decode_groups(batch: ForwardBatch, kv: KVTensors) -> list[_DecodeGroup]:
    first_row = batch.num_extend_seqs
    first_token = len(batch.input_ids) - (batch.num_rows - first_row)
    seq_lens = batch.seq_lens[first_row:]
    max_tokens = (CPU_GROUP_BYTES if kv.device.type == "cpu" else GROUP_BYTES) // kv.token_bytes
    groups = group_by_length(seq_lens.tolist(), max_tokens // PADDING_SHARE, max_tokens)
    return [
        _decode_group(
            batch, seq_lens[rows], [first_row + r for r in rows], first_token - first_row, kv.device
        )
        for rows in groups
    ]


def _decode_group(
    batch: ForwardBatch, seq_lens: NDArray[np.int32], rows: list[int], token_offset: int, device: torch.device
) -> _DecodeGroup:
    longest = int(seq_lens.max())
    pages = np.zeros((len(rows), -(-longest // batch.page_size)), dtype=np.int64)
    for i, (row, seq_len) in enumerate(zip(rows, seq_lens.tolist(), strict=True)):
        num_pages = -(-seq_len // batch.page_size)
        pages[i, :num_pages] = batch.pages[row][:num_pages]
    mask = None
    if seq_lens.min() < longest:
        hidden = np.arange(longest) >= seq_lens[:, None, None, None]
        mask = to_device(np.where(hidden, np.float32("-inf"), np.float32(0)), device)
    tokens = np.array(rows) + token_offset
    return _DecodeGroup(
        tokens=slice(int(tokens[0]), int(tokens[-1]) + 1)
        if tokens[-1] - tokens[0] == len(rows) - 1
        else to_device(tokens, device),
        size=len(rows),
        seq_len=longest,
        pages=to_device(pages.reshape(-1), device),
        mask=mask,
    )
