"""Ragged batches of random keys and values in paged tensors, and what attention over them must give."""

import random
from array import array

import numpy as np
import torch

from engine.attention.protocol import AttentionBackend, AttentionPlan
from engine.batch import ForwardBatch, ForwardMode, Role
from engine.kv_tensors import KVTensors
from engine.models.rotary import rotary_table, rotate_
from engine.request import Request
from engine.shapes import ModelShape

__all__ = ["LAYER", "Ragged", "attention_shape", "reference"]

CPU = torch.device("cpu")
LAYER = 1  # the one that is attended to; layer 0 holds strangers' values only
STRANGE = 1e4


def attention_shape(num_heads: int, num_kv_heads: int, head_dim: int) -> ModelShape:
    """A model of two layers of which only attention matters."""
    return ModelShape(
        architecture="llama",
        name="attention alone",
        num_layers=2,
        hidden_size=8,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        intermediate_size=8,
        vocab_size=8,
        max_position_embeddings=4096,
        rope_theta=10_000.0,
        rms_norm_eps=1e-5,
    )


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    first_position: int,
    window: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output (n, heads, dim) and log-sum-exp (heads, n) in float64, by plain softmax.

    (n, heads, dim) queries at consecutive positions see (m, kv heads, dim) keys up to their own position, the
    `window` last ones of them.
    """
    group = query.shape[1] // key.shape[1]
    key, value = (t.double().repeat_interleave(group, dim=1) for t in (key, value))
    scores = torch.einsum("nhd,mhd->hnm", query.double(), key) * query.shape[2] ** -0.5
    positions = torch.arange(first_position, first_position + query.shape[0]).unsqueeze(1)
    behind = positions - torch.arange(key.shape[0])
    hidden = behind < 0
    if window is not None:
        hidden |= behind >= window
    scores = scores.masked_fill(hidden, -torch.inf)
    out = torch.einsum("hnm,mhd->nhd", scores.softmax(dim=-1), value)
    return out, scores.logsumexp(dim=-1)


class Ragged:
    """Sequences of random keys and values in pages in random order, with strangers' values all around."""

    def __init__(
        self,
        shape: ModelShape,
        page_size: int,
        rows: list[tuple[int, int]],
        decodes: int,
        dtype: torch.dtype,
        *,
        value_scale: float = 1.0,
        rotate: bool = True,
    ) -> None:
        """`rows` are (prefix, extend); the last `decodes` of them are decode rows.

        Values are normal with deviation `value_scale`. Without `rotate` all rotations are by nothing, so that
        how they round in small types is left out of what attention gives.
        """
        self.shape = shape
        self.rows = rows
        generator = torch.Generator().manual_seed(len(rows))
        num_pages = sum(-(-(p + e) // page_size) for p, e in rows) + 3
        self.kv = KVTensors(shape, num_pages, page_size, dtype, CPU)
        free = list(range(1, num_pages + 1))
        random.Random(3).shuffle(free)
        self.pages = [array("i", [free.pop() for _ in range(-(-(p + e) // page_size))]) for p, e in rows]
        every_slot = torch.arange(page_size, (num_pages + 1) * page_size)
        for layer in range(shape.num_layers):
            strange = torch.full((len(every_slot), 2 * shape.kv_size), STRANGE, dtype=dtype)
            self.kv.write(layer, every_slot, strange)
        table = rotary_table(shape, max((p + e for p, e in rows), default=0), CPU)
        if not rotate:
            table.fill_(1)
        rotations, new = [], []
        self.rotated: list[torch.Tensor] = []  # each row's whole sequence, queries and keys rotated
        for row, (prefix, extend) in enumerate(rows):
            size = (prefix + extend, shape.q_size + 2 * shape.kv_size)
            qkv = torch.randn(size, generator=generator)
            qkv[:, -shape.kv_size :] *= value_scale
            qkv = qkv.to(dtype)
            new.append(qkv[prefix:].clone())
            rotations.append(table[prefix : prefix + extend])
            if len(qkv):
                rotate_(self._heads(qkv)[:, : -shape.num_kv_heads], table[: prefix + extend])
            self.rotated.append(qkv)
            self.kv.write(LAYER, self.slots(row)[:prefix], qkv[:prefix, shape.q_size :])
        self.rotations = torch.cat(rotations)
        self.new = torch.cat(new)
        self.batch = self._batch(page_size, decodes)

    def slots(self, row: int) -> torch.Tensor:
        """(seq_len,) the slot of each of a row's positions."""
        size = self.kv.page_size
        positions = range(sum(self.rows[row]))
        return torch.tensor(
            [self.pages[row][p // size] * size + p % size for p in positions], dtype=torch.long
        )

    def attend(self, backend: AttentionBackend) -> torch.Tensor:
        """(tokens, q_size) of the new tokens, stored first."""
        return self.run(backend.plan(self.batch))

    def run(self, plan: AttentionPlan) -> torch.Tensor:
        """(tokens, q_size) of the new tokens, stored first."""
        qkv = self.new.clone()
        plan.store(LAYER, qkv, self.rotations)
        return plan.attend(LAYER, qkv)

    def expected(self, window: int | None = None) -> torch.Tensor:
        """(tokens, q_size) in float64."""
        outs = []
        for qkv, (prefix, _) in zip(self.rotated, self.rows, strict=True):
            sizes = [self.shape.num_heads, self.shape.num_kv_heads, self.shape.num_kv_heads]
            query, key, value = self._heads(qkv).split(sizes, dim=1)
            out, _ = reference(query[prefix:], key, value, prefix, window)
            outs.append(out.reshape(len(out), self.shape.q_size))
        return torch.cat(outs)

    def _heads(self, qkv: torch.Tensor) -> torch.Tensor:
        """(tokens, heads, head_dim) of queries, keys and values in this order."""
        heads = self.shape.num_heads + 2 * self.shape.num_kv_heads
        return qkv.view(len(qkv), heads, self.shape.head_dim)

    def _batch(self, page_size: int, decodes: int) -> ForwardBatch:
        num = len(self.rows)
        prefix_lens, extend_lens = np.array(self.rows, dtype=np.int32).reshape(-1, 2).T
        zeros = np.zeros(num, dtype=np.int32)
        return ForwardBatch(
            forward_id=0,
            mode=ForwardMode.MIXED,
            requests=[Request(i, str(i), [0]) for i in range(num)],
            num_extend_seqs=num - decodes,
            page_size=page_size,
            rids=zeros,
            attempts=zeros,
            roles=np.array([Role.LAST] * (num - decodes) + [Role.DECODE] * decodes, dtype=np.uint8),
            prefix_lens=prefix_lens,
            extend_lens=extend_lens,
            cached_tokens=zeros,
            input_ids=np.zeros(int(extend_lens.sum()), dtype=np.int32),
            pages=self.pages,
        )
