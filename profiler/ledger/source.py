"""Puts together what the ledgers of a trace are made from."""

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import ForwardTable
from profiler.ledger.chunk_rows import ChunkRows
from profiler.ledger.gap_pieces import LedgerSource
from profiler.ledger.held_back import held_back
from profiler.ledger.own_rows import SpecialRows
from profiler.ledger.rank_time import rank_times
from profiler.ledger.split import Split, split_by_model, split_by_tokens
from profiler.price_rows import ForwardCostModel
from profiler.tables import TraceLike

__all__ = ["ledger_source", "split_of"]


def ledger_source(
    trace: TraceLike,
    forwards: ForwardTable,
    special: SpecialRows,
    mixed_extra_ns: NDArray[np.int64],
    split: tuple[str, ForwardCostModel] | None = None,
) -> LedgerSource:
    """Of a trace with these rows of prompts; `split` as `split_of` takes it."""
    chunks = ChunkRows.of_rows(special, forwards.rank)
    return LedgerSource(
        forwards=forwards,
        times=rank_times(trace, forwards),
        chunks=chunks,
        split=split_of(trace, forwards, chunks, split),
        mixed_extra_ns=mixed_extra_ns,
        held=held_back(trace, forwards),
    )


def split_of(
    trace: TraceLike,
    forwards: ForwardTable,
    chunks: ChunkRows,
    split: tuple[str, ForwardCostModel] | None = None,
) -> Split:
    """How a trace splits shared forwards: by a cost model of a name, or by tokens where none is given."""
    if split is None:
        return split_by_tokens(chunks)
    name, cost = split
    return split_by_model(chunks, trace, forwards.forward_id, cost, name)
