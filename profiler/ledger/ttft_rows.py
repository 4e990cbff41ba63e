"""The rows that ledgers of first tokens ask for: of prompts, without a token, and of the first tokens."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from engine.batch import Outcome
from profiler.forward_table import ForwardTable
from profiler.ledger.own_rows import SpecialRows, special
from profiler.ledger.row_blocks import RowBlock, RowsOutOfOrder, row_blocks
from profiler.tables import TraceLike

__all__ = ["EARLY_TOKENS", "EarlyRows", "TtftRows"]

Ints = NDArray[np.int64]

EARLY_TOKENS = 4  # a forward with a later one starts after t(r, 0): engines launch one forward ahead


@dataclass(frozen=True, slots=True)
class EarlyRows:
    """Rows that gave one of a request's first `EARLY_TOKENS` tokens; `forward` as in `SpecialRows`."""

    forward: Ints
    rid: Ints
    token_index: Ints


@dataclass(frozen=True, slots=True)
class TtftRows:
    """What is asked of a trace's rows."""

    special: SpecialRows
    early: EarlyRows

    @classmethod
    def of(cls, trace: TraceLike, forwards: ForwardTable) -> "TtftRows":
        """Those of a trace, read piece by piece."""
        try:
            return cls.of_blocks([cls.wanted(block) for block in row_blocks(trace, forwards)])
        except RowsOutOfOrder:
            blocks = row_blocks(trace, forwards, sort=True)
            return cls.of_blocks([cls.wanted(block) for block in blocks])

    @classmethod
    def of_blocks(cls, blocks: Iterable[RowBlock]) -> "TtftRows":
        """From what is `wanted` of all blocks, for a pass over the rows that asks more of them."""
        empty = RowBlock(*(np.zeros(0, dtype=np.int64) for _ in fields(RowBlock)))  # type: ignore[arg-type]
        parts = [empty, *blocks]
        columns = {
            f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(RowBlock)
        }
        rows = RowBlock(**columns)
        chosen = rows.of(special(rows.role, rows.outcome))
        lengths = (chosen.prefix_len, chosen.extend_len)
        early = rows.of(_early(rows))
        return cls(
            SpecialRows.sorted(chosen.forward, chosen.rid, chosen.attempt, chosen.role, *lengths),
            EarlyRows(*(c.astype(np.int64) for c in (early.forward, early.rid, early.token_index))),
        )

    @staticmethod
    def wanted(block: RowBlock) -> RowBlock:
        """Of some rows those that are asked for."""
        return block.of(special(block.role, block.outcome) | _early(block))


def _early(rows: RowBlock) -> NDArray[np.bool_]:
    index = rows.token_index
    early: NDArray[np.bool_] = (index >= 0) & (index < EARLY_TOKENS) & (rows.outcome == Outcome.EMITTED.value)
    return early
