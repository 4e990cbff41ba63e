"""Tiles and pipelines of the attention kernels, by architecture and head size.

An entry that no card is named for was not timed: it is the widest tile that the compiler fits into a thread's
registers and the shared memory of the architecture. `benchmarks/tune_attention.py` times others on the card
at hand and writes the fastest here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DECODE", "EXTEND", "AttentionBlocks", "BlockShape", "attention_blocks"]


@dataclass(frozen=True, slots=True)
class BlockShape:
    """How one kernel is cut."""

    block_m: int  # queries; in decode query heads of one KV head, at least 16
    block_n: int  # keys
    num_warps: int
    num_stages: int


@dataclass(frozen=True, slots=True)
class AttentionBlocks:
    """The shapes of both kernels for one device and head size."""

    extend: BlockShape
    decode: BlockShape


# (least compute capability, largest head_dim). 0 stands for older cards and for the interpreter.
EXTEND = {
    (0, 128): BlockShape(64, 32, 4, 1),
    (0, 256): BlockShape(32, 32, 4, 1),
    (80, 64): BlockShape(128, 64, 8, 3),
    (80, 128): BlockShape(128, 32, 8, 3),
    (80, 256): BlockShape(64, 64, 8, 2),
    (86, 64): BlockShape(128, 64, 8, 2),
    (86, 128): BlockShape(128, 32, 8, 2),
    (86, 256): BlockShape(64, 32, 8, 2),
    (90, 64): BlockShape(128, 64, 8, 3),
    (90, 128): BlockShape(128, 64, 8, 3),
    (90, 256): BlockShape(128, 32, 8, 3),
    (100, 64): BlockShape(128, 64, 8, 3),
    (100, 128): BlockShape(128, 64, 8, 3),
    (100, 256): BlockShape(64, 32, 8, 2),
    (120, 64): BlockShape(128, 64, 8, 2),
    (120, 128): BlockShape(128, 32, 8, 2),
    (120, 256): BlockShape(64, 32, 8, 2),
}
DECODE = {
    (0, 128): BlockShape(16, 64, 4, 1),
    (0, 256): BlockShape(16, 32, 4, 1),
    (80, 128): BlockShape(16, 64, 4, 3),
    (80, 256): BlockShape(16, 32, 4, 3),
}


def attention_blocks(capability: int, head_dim: int) -> AttentionBlocks:
    """The shapes for compute capability `capability` (90 is 9.0).

    Raises ValueError for a `head_dim` beyond the tables.
    """
    return AttentionBlocks(_entry(EXTEND, capability, head_dim), _entry(DECODE, capability, head_dim))


def _entry(table: Mapping[tuple[int, int], BlockShape], capability: int, head_dim: int) -> BlockShape:
    """The entry of the newest architecture not above `capability`, and of its least sufficient head size."""
    fitting = [key for key in table if key[0] <= capability and key[1] >= head_dim]
    if not fitting:
        raise ValueError(f"no attention kernel has heads of {head_dim}: 256 is the most")
    return table[max(fitting, key=lambda key: (key[0], -key[1]))]
