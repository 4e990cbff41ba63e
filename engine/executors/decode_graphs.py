"""Decode forwards as captured graphs: padded to a few sizes, replayed on buffers that stay where they are.

A graph repeats the same kernels on the same memory without the host's work for each. So a forward's columns
are copied into static buffers, and a batch is filled up with padding rows to the next captured size. What
padding rows compute is never read, and they store nothing.
"""

from collections.abc import Sequence
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from engine.attention.protocol import AttentionBackend, AttentionPlan
from engine.batch import ForwardBatch
from engine.executors.capture import Capture, CapturedGraph
from engine.executors.graph_sizes import graph_sizes, padded_size
from engine.executors.inputs import awaited_places, draws_of, fill_awaited
from engine.executors.protocol import GraphKind
from engine.executors.ready import ReadyForward
from engine.models.llama import LlamaModel
from engine.sampling import Draw, sample
from engine.transfer import columns_to_device

__all__ = ["DecodeGraphs", "StaticAttention", "StaticDecodePlan"]


class StaticDecodePlan(AttentionPlan, Protocol):
    """An AttentionPlan for decode rows whose buffers stay in place: what a captured graph reads them by.

    Rows that no batch has been laid out for store nothing.
    """

    def narrowed(self, rows: int) -> "StaticDecodePlan":
        """A plan for forwards of exactly `rows` rows, in the same buffers: the last one updated may run."""
        ...

    def fits(self, batch: ForwardBatch) -> bool:
        """Whether the batch is of decode rows alone and there is room for it."""
        ...

    def update(self, batch: ForwardBatch) -> None:
        """Take in a batch that fits, queued on the current stream. Rows beyond it store nothing.

        What was captured before serves the new batch.
        """
        ...


@runtime_checkable
class StaticAttention(AttentionBackend, Protocol):
    """An AttentionBackend that graphs can be captured over."""

    def static_decode_plan(self, max_rows: int, max_pages: int) -> StaticDecodePlan:
        """A plan for up to `max_rows` rows that hold up to `max_pages` pages together."""
        ...


class DecodeGraphs:
    """Captures a decode forward for each padded size when it is first needed, or all by `capture_all`."""

    def __init__(
        self,
        model: LlamaModel,
        rotations: torch.Tensor,
        plan: StaticDecodePlan,
        max_rows: int,
        capture: Capture,
    ) -> None:
        """`rotations` is the rotary table; `plan` must hold `max_rows` rows. All graphs share the buffers."""
        self.max_rows = max_rows
        self._model = model
        self._rotations = rotations
        self._widest = plan
        self._plans: dict[int, StaticDecodePlan] = {}
        self._capture = capture
        self._sizes = graph_sizes(max_rows)
        self._captured: dict[int, CapturedGraph] = {}
        device = model.device
        self._columns = torch.zeros(2 * max_rows, dtype=torch.int64, device=device)  # see `_split`
        self._rows = torch.arange(max_rows, device=device)
        self._ids = torch.zeros(max_rows, dtype=torch.int64, device=device)
        vocab_size = model.shape.vocab_size
        self._logits = torch.zeros((max_rows, vocab_size), dtype=model.dtype, device=device)

    def ready(self, batch: ForwardBatch, last_ids: torch.Tensor) -> ReadyForward | None:
        """Copy a batch into the buffers. `last_ids` (rows,) are the samples of the forward before.

        None for a batch that has extend rows, more rows than the largest graph, or more pages than there is
        room for. The result must be computed before the next call, and its ids read before the computation
        after.
        """
        size = padded_size(batch.num_rows, self._sizes)
        if size is None or not self._widest.fits(batch):
            return None
        self._fill(batch, size, last_ids)
        captured = self._graph(size)
        draws = draws_of(batch, np.arange(batch.num_rows))
        return ReadyForward(
            partial(self._replay, captured, draws),
            GraphKind.FULL,
            size - batch.num_rows,
            captured.held_bytes,
        )

    def capture_all(self) -> None:
        """Capture every size, before the first forward: until then all rows are padding.

        The largest goes first, so that the others find room in its memory.
        """
        if self._plans:
            raise RuntimeError("decode graphs cannot all be captured any more: rows have been laid out")
        for size in reversed(self._sizes):
            self._graph(size)

    def _graph(self, size: int) -> CapturedGraph:
        if size not in self._captured:
            self._captured[size] = self._capture(partial(self._forward, size))
        return self._captured[size]

    def _fill(self, batch: ForwardBatch, size: int, last_ids: torch.Tensor) -> None:
        rows = batch.num_rows
        columns = np.zeros((2, size), dtype=np.int64)
        columns[0, :rows] = batch.input_ids
        columns[1, :rows] = batch.prefix_lens
        places, awaited = awaited_places(batch, np.arange(1, rows + 1))
        sent, places_, awaited_ = columns_to_device((columns.reshape(-1), places, awaited), self._rows.device)
        fill_awaited(sent, places_, last_ids, awaited_)  # input ids come first in `sent`
        self._columns[: 2 * size].copy_(sent)
        self._plan(size).update(batch)

    def _plan(self, size: int) -> StaticDecodePlan:
        if size not in self._plans:
            self._plans[size] = self._widest.narrowed(size)
        return self._plans[size]

    def _split(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(size,) input ids and positions, side by side so that one copy brings both."""
        return self._columns[:size], self._columns[size : 2 * size]

    def _forward(self, size: int) -> None:
        """What is captured: the model, and the likeliest tokens."""
        input_ids, positions = self._split(size)
        rotations = self._rotations.index_select(0, positions)
        logits = self._model.forward(input_ids, rotations, self._plan(size), self._rows[:size])
        # Logits kept by each graph would add up to gigabytes; these are shared.
        self._logits[:size].copy_(logits)
        self._ids[:size].copy_(sample(logits, ()))

    def _replay(self, captured: CapturedGraph, draws: Sequence[Draw]) -> torch.Tensor:
        captured.replay()
        rows = len(draws)
        if any(draw.temperature > 0 for draw in draws):
            return sample(self._logits[:rows], draws)
        return self._ids[:rows]
