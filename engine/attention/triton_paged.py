"""Attention over paged keys and values by Triton kernels.

Extend rows and decode rows of one forward each go to kernels of their own; a mixed forward launches both.
Importing this module loads Triton.
"""

import torch

from engine.attention.block_shapes import AttentionBlocks, attention_blocks
from engine.attention.columns import flat_pages, page_starts, tiles, token_slots, upload
from engine.attention.geometry import Geometry
from engine.attention.protocol import AttentionPlan
from engine.attention.static_decode import StaticDecodePlan
from engine.attention.triton_decode import DecodeColumns
from engine.attention.triton_extend import ExtendColumns
from engine.attention.triton_launch import PagedKernels
from engine.batch import ForwardBatch
from engine.kv_tensors import KVTensors
from engine.marks import mark
from engine.operators import Operator
from engine.shapes import ModelShape

__all__ = ["TritonPagedAttention"]

INTERPRETED_CORES = 4  # any number will do: there decode rows only show what splitting them does


class TritonPagedAttention:
    """AttentionBackend for CUDA devices, and for the CPU where Triton's interpreter is on."""

    def __init__(
        self,
        shape: ModelShape,
        kv: KVTensors,
        *,
        window: int | None = None,
        blocks: AttentionBlocks | None = None,
    ) -> None:
        """`window` is how many keys a token sees, its own included, in every layer; None is all.

        `blocks` defaults to those of the device's architecture.
        """
        geometry = Geometry.of(shape, kv, window)
        capability, cores = _traits(kv.device)
        if blocks is None:
            blocks = attention_blocks(capability, geometry.head_dim)
        self._kernels = PagedKernels(geometry, blocks, kv, cores)

    def plan(self, batch: ForwardBatch) -> AttentionPlan:
        """Lay out one forward."""
        return _Plan(self._kernels, batch)

    def static_decode_plan(self, max_rows: int, max_pages: int) -> StaticDecodePlan:
        """A plan for forwards of decode rows that can be replayed: see StaticDecodePlan."""
        return StaticDecodePlan.allocate(self._kernels, max_rows, max_pages)


class _Plan:
    def __init__(self, kernels: PagedKernels, batch: ForwardBatch) -> None:
        self._kernels = kernels
        first = batch.num_extend_seqs
        prefix_lens, extend_lens = batch.prefix_lens[:first], batch.extend_lens[:first]
        tile_rows, tile_blocks = tiles(prefix_lens, extend_lens, kernels.blocks.extend.block_m)
        seq_lens, starts = batch.seq_lens[first:], page_starts(batch)
        split_lens, self._max_splits = kernels.split_lens(seq_lens, kernels.split_cap(len(seq_lens) or 1))
        columns = upload(
            {
                "slots": token_slots(batch),
                "pages": flat_pages(batch),
                "tile_rows": tile_rows,
                "tile_blocks": tile_blocks,
                "first_tokens": extend_lens.cumsum() - extend_lens,
                "extend_lens": extend_lens,
                "prefix_lens": prefix_lens,
                "extend_page_starts": starts[:first],
                "seq_lens": seq_lens,
                "split_lens": split_lens,
                "decode_page_starts": starts[first:],
            },
            kernels.kv.device,
        )
        self._slots = columns["slots"]
        self._extend_tokens = int(extend_lens.sum())
        self.extend_columns = ExtendColumns(
            tile_rows=columns["tile_rows"],
            tile_blocks=columns["tile_blocks"],
            first_tokens=columns["first_tokens"],
            extend_lens=columns["extend_lens"],
            prefix_lens=columns["prefix_lens"],
            page_starts=columns["extend_page_starts"],
            pages=columns["pages"],
        )
        self.decode_columns = DecodeColumns(
            seq_lens=columns["seq_lens"],
            split_lens=columns["split_lens"],
            page_starts=columns["decode_page_starts"],
            pages=columns["pages"],
        )

    def store(self, layer: int, qkv: torch.Tensor, rotations: torch.Tensor) -> None:
        """See AttentionPlan."""
        self._kernels.store(layer, qkv, rotations, self._slots)

    def attend(self, layer: int, qkv: torch.Tensor) -> torch.Tensor:
        """See AttentionPlan."""
        out = qkv.new_empty((len(qkv), self._kernels.geometry.q_size))
        split = self._extend_tokens
        if split:
            mark(Operator.ATTENTION_EXTEND, layer)
            self._kernels.extend(layer, qkv, out, self.extend_columns)
        if len(qkv) > split:
            mark(Operator.ATTENTION_DECODE, layer)
            self._kernels.decode(layer, qkv[split:], out[split:], self.decode_columns, self._max_splits)
        return out


def _traits(device: torch.device) -> tuple[int, int]:
    """Compute capability as one number (90 is 9.0) and multiprocessors; the interpreter's on a CPU."""
    if device.type != "cuda":
        return 0, INTERPRETED_CORES
    properties = torch.cuda.get_device_properties(device)
    return 10 * properties.major + properties.minor, properties.multi_processor_count
