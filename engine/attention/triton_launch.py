"""The Triton kernels over one pool, with everything that is the same for all forwards already given."""

from dataclasses import dataclass

import torch

from engine.attention.block_shapes import AttentionBlocks
from engine.attention.columns import Int32Column
from engine.attention.decode_splits import head_tiles, split_cap, split_lens
from engine.attention.geometry import Geometry
from engine.attention.triton_decode import DecodeColumns, decode
from engine.attention.triton_extend import ExtendColumns, extend
from engine.attention.triton_store import rotate_and_store
from engine.kv_tensors import KVTensors

__all__ = ["PagedKernels"]


@dataclass(frozen=True, slots=True)
class PagedKernels:
    """What plans launch; `cores` are the device's multiprocessors."""

    geometry: Geometry
    blocks: AttentionBlocks
    kv: KVTensors
    cores: int

    @property
    def head_tiles(self) -> int:
        """Programs that take a decode row's heads."""
        return head_tiles(self.geometry.num_heads, self.geometry.num_kv_heads, self.blocks.decode.block_m)

    def split_cap(self, rows: int) -> int:
        """The most splits of a decode row in a batch of `rows`."""
        return split_cap(rows, self.head_tiles, self.cores)

    def split_lens(self, seq_lens: Int32Column, cap: int) -> tuple[Int32Column, int]:
        """(rows,) keys per split of decode rows, and how many splits the row of the most has."""
        seen = seq_lens if self.geometry.window is None else seq_lens.clip(max=self.geometry.window)
        lens = split_lens(seen, self.head_tiles, self.cores, cap)
        return lens, int((-(-seen // lens)).max(initial=1))

    def store(self, layer: int, qkv: torch.Tensor, rotations: torch.Tensor, slots: torch.Tensor) -> None:
        """See `rotate_and_store`."""
        rotate_and_store(qkv, rotations, slots, self.kv.pool(layer), self.geometry)

    def extend(self, layer: int, qkv: torch.Tensor, out: torch.Tensor, columns: ExtendColumns) -> None:
        """See `triton_extend.extend`."""
        extend(qkv, self.kv.pool(layer), out, columns, self.geometry, self.blocks.extend)

    def decode(
        self, layer: int, qkv: torch.Tensor, out: torch.Tensor, columns: DecodeColumns, max_splits: int
    ) -> None:
        """See `triton_decode.decode`."""
        decode(qkv, self.kv.pool(layer), out, columns, max_splits, self.geometry, self.blocks.decode)
