"""The sizes that attention kernels are compiled for."""

import math
from dataclasses import dataclass

from engine.kv_tensors import KVTensors
from engine.shapes import ModelShape

__all__ = ["Geometry"]

LEAST_BLOCK_D = 16  # the least depth of a product on a tensor core
LOG2_E = 1.4426950408889634


@dataclass(frozen=True, slots=True)
class Geometry:
    """Heads, pages and window of one model's attention; sizes in elements."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    page_size: int
    window: int | None = None  # keys that a token sees, its own included; None is all

    @classmethod
    def of(cls, shape: ModelShape, kv: KVTensors, window: int | None = None) -> "Geometry":
        """That of `shape` over the pool `kv`."""
        return cls(shape.num_heads, shape.num_kv_heads, shape.head_dim, kv.page_size, window)

    @property
    def q_size(self) -> int:
        """Width of a token's queries, and of attention's output."""
        return self.num_heads * self.head_dim

    @property
    def block_d(self) -> int:
        """`head_dim`, padded to what a product of blocks can have."""
        return max(LEAST_BLOCK_D, 1 << (self.head_dim - 1).bit_length())

    @property
    def log2_scale(self) -> float:
        """What turns a product of query and key into a score of base 2: log2(e) / sqrt(head_dim)."""
        return LOG2_E / math.sqrt(self.head_dim)
