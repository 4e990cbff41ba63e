"""Batches of sequences with random keys and values, in pages in random order and side by side."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from engine.batch import ForwardBatch, ForwardMode, Role
from engine.kv_tensors import KVTensors
from engine.request import Request
from engine.shapes import ModelShape

__all__ = ["Paged", "make_batch"]


@dataclass(frozen=True, slots=True)
class Paged:
    """A batch, its pool of `layers` independent contents, and the same keys and values in order."""

    batch: ForwardBatch
    kv: KVTensors
    qkv: list[torch.Tensor]  # of each layer, (new tokens, q_size + 2 * kv_size)
    keys_values: list[torch.Tensor]  # of each layer, (all tokens, 2, kv heads, head_dim), row after row


def make_batch(
    shape: ModelShape,
    rows: Sequence[tuple[int, int]],
    decodes: int,
    *,
    layers: int,
    page_size: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Paged:
    """`rows` are (prefix, extend), the last `decodes` of them decode rows; everything is drawn anew."""
    shape = replace(shape, num_layers=layers)
    counts = [-(-(prefix + extend) // page_size) for prefix, extend in rows]
    order = iter((np.random.default_rng().permutation(sum(counts)) + 1).tolist())
    pages = [array("i", [next(order) for _ in range(count)]) for count in counts]
    kv = KVTensors(shape, sum(counts), page_size, dtype, device)
    slots = torch.cat([_slots(p, sum(row), page_size) for p, row in zip(pages, rows, strict=True)]).to(device)
    new = _new_tokens(rows).to(device)
    qkv, keys_values = [], []
    for layer in range(layers):
        stored = torch.randn((len(slots), 2 * shape.kv_size), dtype=dtype, device=device)
        kv.write(layer, slots, stored)
        query = torch.randn((len(new), shape.q_size), dtype=dtype, device=device)
        qkv.append(torch.cat([query, stored[new]], dim=1))
        keys_values.append(stored.view(-1, 2, shape.num_kv_heads, shape.head_dim))
    return Paged(_batch(rows, decodes, pages, page_size), kv, qkv, keys_values)


def _slots(pages: "array[int]", seq_len: int, page_size: int) -> torch.Tensor:
    positions = torch.arange(seq_len)
    return torch.tensor(pages)[positions // page_size] * page_size + positions % page_size


def _new_tokens(rows: Sequence[tuple[int, int]]) -> torch.Tensor:
    """Places of the new tokens among all tokens."""
    ends = np.cumsum([prefix + extend for prefix, extend in rows]).tolist()
    return torch.cat([torch.arange(end - extend, end) for end, (_, extend) in zip(ends, rows, strict=True)])


def _batch(
    rows: Sequence[tuple[int, int]], decodes: int, pages: "list[array[int]]", page_size: int
) -> ForwardBatch:
    extends = len(rows) - decodes
    prefix_lens, extend_lens = np.array(rows, dtype=np.int32).T
    zeros = np.zeros(len(rows), dtype=np.int32)
    return ForwardBatch(
        forward_id=0,
        mode=ForwardMode.DECODE if not extends else ForwardMode.MIXED if decodes else ForwardMode.EXTEND,
        requests=[Request(i, str(i), [0]) for i in range(len(rows))],
        num_extend_seqs=extends,
        page_size=page_size,
        rids=zeros,
        attempts=zeros,
        roles=np.array([Role.LAST] * extends + [Role.DECODE] * decodes, dtype=np.uint8),
        prefix_lens=prefix_lens,
        extend_lens=extend_lens,
        cached_tokens=zeros,
        input_ids=np.zeros(int(extend_lens.sum()), dtype=np.int32),
        pages=pages,
    )
