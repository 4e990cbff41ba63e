"""A plan of decode rows whose tensors stay where they are, so that its kernels can be captured once."""

import numpy as np
import torch

from engine.attention.columns import ALIGNED, Int32Column, flat_pages, page_starts, token_slots
from engine.attention.triton_decode import DecodeColumns
from engine.attention.triton_launch import PagedKernels
from engine.batch import ForwardBatch
from engine.transfer import to_device

__all__ = ["StaticDecodePlan"]

NO_SLOT = -1
COLUMNS = 4  # slots, lengths, split lengths and page starts, before the pages


class StaticDecodePlan:
    """An AttentionPlan over `rows` rows, those beyond the batch storing nothing and attending to nothing.

    `update` brings in another batch; `store` and `attend` launch the same kernels with the same grids over
    the same tensors every time. So they can be captured in a CUDA graph, to be replayed after each update.
    `qkv` has `rows` rows; `attend` gives zeros for those beyond the batch.

    Plans that `narrowed` returns share the tensors of the widest: only the plan that was updated last may
    run. Updates are queued on the current stream, which must be that of the forwards.
    """

    def __init__(self, kernels: PagedKernels, rows: int, buffer: torch.Tensor, stride: int) -> None:
        """Over the first `rows` of each column of `buffer`; see `allocate`."""
        self.rows = rows
        self._kernels = kernels
        self._buffer = buffer
        self._stride = stride
        self._max_splits = kernels.split_cap(rows)
        columns, pages = buffer[: COLUMNS * stride], buffer[COLUMNS * stride :]
        self._slots, seq_lens, split_lens, starts = columns.view(COLUMNS, stride)[:, :rows]
        self._columns = DecodeColumns(seq_lens, split_lens, starts, pages)

    @classmethod
    def allocate(cls, kernels: PagedKernels, max_rows: int, max_pages: int) -> "StaticDecodePlan":
        """Room for batches of up to `max_rows` rows that hold up to `max_pages` pages together."""
        stride = -(-max_rows // ALIGNED) * ALIGNED
        buffer = torch.zeros(COLUMNS * stride + max_pages, dtype=torch.int32, device=kernels.kv.device)
        plan = cls(kernels, max_rows, buffer, stride)
        plan._slots.fill_(NO_SLOT)
        plan._columns.split_lens.fill_(1)
        return plan

    def narrowed(self, rows: int) -> "StaticDecodePlan":
        """A plan over the first `rows` rows, in the same tensors."""
        if not 0 < rows <= self.rows:
            raise ValueError(f"a static plan of {self.rows} rows cannot be narrowed to {rows}")
        return StaticDecodePlan(self._kernels, rows, self._buffer, self._stride)

    def fits(self, batch: ForwardBatch) -> bool:
        """Whether the batch is of decode rows alone, and there is room for them and their pages."""
        pages = int((-(-batch.seq_lens // batch.page_size)).sum())
        return (
            batch.num_extend_seqs == 0 and batch.num_rows <= self.rows and pages <= len(self._columns.pages)
        )

    def update(self, batch: ForwardBatch) -> None:
        """Take in a batch that `fits`; one copy to the device, for which nothing waits."""
        if not self.fits(batch):
            raise ValueError(f"a batch of {batch.num_rows} rows does not fit a static plan of {self.rows}")
        pages = flat_pages(batch)
        columns = np.zeros((COLUMNS, self._stride), dtype=np.int32)
        seq_lens: Int32Column = columns[1]
        columns[0] = NO_SLOT
        columns[0, : batch.num_rows] = token_slots(batch)
        seq_lens[: batch.num_rows] = batch.seq_lens
        columns[2], _ = self._kernels.split_lens(seq_lens, self._max_splits)
        columns[3, : batch.num_rows] = page_starts(batch)
        packed = np.concatenate([columns.reshape(-1), pages])
        self._buffer[: len(packed)].copy_(to_device(packed, self._buffer.device), non_blocking=True)

    def store(self, layer: int, qkv: torch.Tensor, rotations: torch.Tensor) -> None:
        """See AttentionPlan."""
        self._kernels.store(layer, qkv, rotations, self._slots)

    def attend(self, layer: int, qkv: torch.Tensor) -> torch.Tensor:
        """See AttentionPlan."""
        out = qkv.new_empty((self.rows, self._kernels.geometry.q_size))
        self._kernels.decode(layer, qkv, out, self._columns, self._max_splits)
        return out
