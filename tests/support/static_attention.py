"""Torch attention with a decode plan of static buffers, as graphs need it: each row over all of its pages."""

import numpy as np
import torch

from engine.attention.kernels import blockwise_attention
from engine.attention.protocol import AttentionPlan
from engine.attention.torch_paged import TorchPagedAttention
from engine.batch import ForwardBatch
from engine.kv_tensors import KVTensors
from engine.models.rotary import rotate_
from engine.shapes import ModelShape

__all__ = ["StaticTorchAttention"]


class StaticTorchAttention:
    """A StaticAttention; what has extend rows goes to TorchPagedAttention."""

    def __init__(self, shape: ModelShape, kv: KVTensors) -> None:
        self._q_size = shape.q_size
        self._kv = kv
        self._other = TorchPagedAttention(shape, kv)

    def plan(self, batch: ForwardBatch) -> AttentionPlan:
        return self._other.plan(batch)

    def static_decode_plan(self, max_rows: int, max_pages: int) -> "_StaticPlan":
        of_a_row = max_pages // max_rows
        slots = torch.full((max_rows,), -1)
        pages = torch.zeros((max_rows, of_a_row), dtype=torch.int64)
        hidden = torch.zeros((max_rows, 1, 1, of_a_row * self._kv.page_size))
        return _StaticPlan(self._q_size, self._kv, slots, pages, hidden)


class _StaticPlan:
    def __init__(
        self, q_size: int, kv: KVTensors, slots: torch.Tensor, pages: torch.Tensor, hidden: torch.Tensor
    ) -> None:
        self._q_size = q_size
        self._kv = kv
        self._slots = slots
        self._pages = pages
        self._hidden = hidden  # added to scores

    def narrowed(self, rows: int) -> "_StaticPlan":
        return _StaticPlan(
            self._q_size, self._kv, self._slots[:rows], self._pages[:rows], self._hidden[:rows]
        )

    def fits(self, batch: ForwardBatch) -> bool:
        return batch.num_extend_seqs == 0 and all(len(row) <= self._pages.shape[1] for row in batch.pages)

    def update(self, batch: ForwardBatch) -> None:
        rows = batch.num_rows
        size = batch.page_size
        positions = np.arange(self._hidden.shape[-1])
        for row, (pages, seq_len) in enumerate(zip(batch.pages, batch.seq_lens.tolist(), strict=True)):
            self._pages[row].zero_()
            self._pages[row, : len(pages)] = torch.tensor(pages)
            self._slots[row] = pages[(seq_len - 1) // size] * size + (seq_len - 1) % size
            hidden = np.where(positions >= seq_len, np.float32("-inf"), np.float32(0))
            self._hidden[row, 0, 0] = torch.from_numpy(hidden)
        padding = slice(rows, None)
        self._pages[padding] = 0
        self._slots[padding] = -1
        self._hidden[padding] = 0

    def store(self, layer: int, qkv: torch.Tensor, rotations: torch.Tensor) -> None:
        heads = qkv.view(len(qkv), -1, self._kv.head_dim)
        rotate_(heads[:, : -self._kv.num_kv_heads], rotations)
        stored = (self._slots >= 0).unsqueeze(1)
        # Padding rows store zeros into the padding page, which holds zeros.
        self._kv.write(layer, self._slots.clamp(0), qkv[:, self._q_size :] * stored)

    def attend(self, layer: int, qkv: torch.Tensor) -> torch.Tensor:
        rows = len(qkv)
        pages = self._pages.reshape(-1)
        gathered = self._kv.gather(layer, pages, self._kv.workspace(len(pages)))
        key, value = gathered.view(rows, -1, *gathered.shape[1:]).permute(2, 0, 3, 1, 4)
        query = qkv[:, : self._q_size].view(rows, -1, 1, self._kv.head_dim)
        out, _ = blockwise_attention(query, key, value, mask=self._hidden)
        return out.reshape(rows, self._q_size)
