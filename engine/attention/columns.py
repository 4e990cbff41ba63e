"""A forward's rows as flat columns of 32-bit numbers, laid out on the host for kernels that read pages."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from engine.batch import ForwardBatch
from engine.transfer import to_device

__all__ = ["ALIGNED", "Int32Column", "flat_pages", "page_starts", "tiles", "token_slots", "upload"]

Int32Column = NDArray[np.int32]
ALIGNED = 4  # numbers: columns begin at multiples of 16 bytes, for which kernels are compiled


def token_slots(batch: ForwardBatch) -> NDArray[np.int64]:
    """(tokens,) where each new token's key and value go."""
    size = batch.page_size
    slots = []
    for pages, start, extend in zip(
        batch.pages, batch.prefix_lens.tolist(), batch.extend_lens.tolist(), strict=True
    ):
        if extend == 1:
            slots.append(np.array([pages[start // size] * size + start % size]))
        else:
            positions = np.arange(start, start + extend)
            row_pages = np.array(pages[start // size : (start + extend - 1) // size + 1], dtype=np.int64)
            slots.append(row_pages[positions // size - start // size] * size + positions % size)
    return np.concatenate(slots)


def page_starts(batch: ForwardBatch) -> Int32Column:
    """(rows,) where each row's pages begin in `flat_pages`."""
    counts = -(-batch.seq_lens // batch.page_size)
    starts: Int32Column = (np.cumsum(counts) - counts).astype(np.int32)
    return starts


def flat_pages(batch: ForwardBatch) -> Int32Column:
    """The pages that each row's sequence takes, rows after one another; a copy."""
    counts = (-(-batch.seq_lens // batch.page_size)).tolist()
    rows = [
        np.frombuffer(pages, dtype=np.int32)[:count]
        for pages, count in zip(batch.pages, counts, strict=True)
        if count
    ]
    return np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)


def tiles(
    prefix_lens: Int32Column, extend_lens: Int32Column, block_m: int
) -> tuple[Int32Column, Int32Column]:
    """Blocks of `block_m` new tokens as (tiles,) their rows and (tiles,) which of the row's blocks they are.

    Those with the most keys come first: what is left to the end of a launch should be short.
    """
    counts = -(-extend_lens // block_m)
    rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    blocks = np.arange(len(rows), dtype=np.int32) - np.repeat(np.cumsum(counts) - counts, counts)
    keys = prefix_lens[rows] + np.minimum((blocks + 1) * block_m, extend_lens[rows])
    order = np.argsort(-keys, kind="stable")
    return rows[order], blocks[order].astype(np.int32)


def upload(columns: Mapping[str, NDArray[np.integer]], device: torch.device) -> dict[str, torch.Tensor]:
    """The columns on the device as int32, by one copy."""
    sizes = [-(-len(column) // ALIGNED) * ALIGNED for column in columns.values()]
    starts = np.cumsum([0, *sizes])
    packed = np.zeros(starts[-1], dtype=np.int32)
    places = {
        name: slice(start, start + len(column))
        for (name, column), start in zip(columns.items(), starts[:-1].tolist(), strict=True)
    }
    for name, column in columns.items():
        packed[places[name]] = column
    together = to_device(packed, device)
    return {name: together[place] for name, place in places.items()}
