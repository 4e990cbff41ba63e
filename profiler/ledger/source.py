"""Puts together what the ledgers of a trace are made from."""

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import ForwardTable
from profiler.ledger.chunk_rows import ChunkRows
from profiler.ledger.gap_pieces import LedgerSource
from profiler.ledger.held_back import held_back
from profiler.ledger.rank_time import rank_times
from profiler.ledger.split import split_by_model, split_by_tokens
from profiler.price_rows import ForwardCostModel
from profiler.tables import TraceLike

__all__ = ["ledger_source"]


def ledger_source(
    trace: TraceLike,
    forwards: ForwardTable,
    chunks: ChunkRows,
    mixed_extra_ns: NDArray[np.int64],
    split: tuple[str, ForwardCostModel] | None = None,
) -> LedgerSource:
    """Of a trace; `split` names a cost model to share forwards by, else they are shared by tokens."""
    shares = split_by_tokens(chunks)
    if split is not None:
        name, cost = split
        shares = split_by_model(chunks, trace, forwards.forward_id, cost, name)
    return LedgerSource(
        forwards=forwards,
        times=rank_times(trace, forwards),
        chunks=chunks,
        split=shares,
        mixed_extra_ns=mixed_extra_ns,
        held=held_back(trace, forwards),
    )
