"""One forward's columns, laid out on the device."""

from array import array
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from engine.attention.protocol import AttentionBackend, AttentionPlan
from engine.batch import ForwardBatch
from engine.sampling import Draw
from engine.transfer import columns_to_device

__all__ = ["ForwardInputs", "awaited_places", "draws_of", "fill_awaited", "lay_out", "with_own_pages"]


@dataclass(frozen=True, slots=True)
class ForwardInputs:
    """What a model and a sampler read; all tensors are int64."""

    input_ids: torch.Tensor  # (tokens,)
    positions: torch.Tensor  # (tokens,)
    logit_rows: torch.Tensor  # (n,) rows whose sample counts
    logit_tokens: torch.Tensor  # (n,) their last tokens' places in the batch
    draws: list[Draw]  # n
    attention: AttentionPlan
    num_rows: int


def lay_out(
    batch: ForwardBatch, attention: AttentionBackend, device: torch.device, last_ids: torch.Tensor
) -> ForwardInputs:
    """Any forward. `last_ids` (rows,) are the samples of the forward before, still to come perhaps."""
    ends = np.cumsum(batch.extend_lens)
    logit_rows = np.flatnonzero(~batch.is_middle)
    input_ids, positions, rows, tokens, places, awaited = columns_to_device(
        (
            batch.input_ids,
            _positions(batch, ends),
            logit_rows,
            ends[logit_rows] - 1,
            *awaited_places(batch, ends),
        ),
        device,
    )
    return ForwardInputs(
        input_ids=fill_awaited(input_ids, places, last_ids, awaited),
        positions=positions,
        logit_rows=rows,
        logit_tokens=tokens,
        draws=draws_of(batch, logit_rows),
        attention=attention.plan(batch),
        num_rows=batch.num_rows,
    )


def with_own_pages(batch: ForwardBatch) -> ForwardBatch:
    """The batch with copies of the pages that it reads or writes: rows go on changing while it waits."""
    counts = (-(-batch.seq_lens // batch.page_size)).tolist()
    pages: list[array[int]] = [row[:count] for row, count in zip(batch.pages, counts, strict=True)]
    return replace(batch, pages=pages)


def awaited_places(
    batch: ForwardBatch, ends: NDArray[np.integer]
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Places in the batch that the forward before fills, and the rows of its own whose samples it puts there.

    `ends` (rows,) is one past each row's last token.
    """
    if batch.awaited_rows is None:
        none = np.empty(0, dtype=np.int64)
        return none, none
    rows = np.flatnonzero(batch.awaited_rows >= 0)
    return ends[rows] - 1, batch.awaited_rows[rows]


def fill_awaited(
    input_ids: torch.Tensor, places: torch.Tensor, last_ids: torch.Tensor, awaited: torch.Tensor
) -> torch.Tensor:
    """`input_ids` with the samples `last_ids[awaited]` written at `places`."""
    if len(places):
        input_ids.index_copy_(0, places, last_ids.index_select(0, awaited))
    return input_ids


def draws_of(batch: ForwardBatch, rows: NDArray[np.integer]) -> list[Draw]:
    """How the tokens of these rows are chosen."""
    return [_draw(batch, row) for row in rows.tolist()]


def _positions(batch: ForwardBatch, ends: NDArray[np.integer]) -> NDArray[np.integer]:
    """(tokens,) each token's position in its sequence."""
    starts_in_batch = ends - batch.extend_lens
    shift = np.repeat(batch.prefix_lens - starts_in_batch, batch.extend_lens)
    positions: NDArray[np.integer] = np.arange(len(batch.input_ids)) + shift
    return positions


def _draw(batch: ForwardBatch, row: int) -> Draw:
    request = batch.requests[row]
    # Counted from the row, not the request, whose output may have grown by the time an overlapped batch runs.
    index = int(batch.prefix_lens[row] + batch.extend_lens[row]) - request.prompt_len
    return Draw(request.sampling.temperature, request.sampling.seed, index)
