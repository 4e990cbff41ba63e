"""Puts together what the ledgers of a trace's first tokens are made from."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN, ForwardTable, forward_table
from profiler.ledger.gap_pieces import LedgerSource
from profiler.ledger.rank_time import RankTime
from profiler.ledger.source import ledger_source
from profiler.ledger.ttft_parts import TtftKind
from profiler.ledger.ttft_rounds import Rounds, rounds_by_rank
from profiler.ledger.ttft_rows import TtftRows
from profiler.ledger.ttft_waits import OwnRows, Waits
from profiler.price_rows import ForwardCostModel
from profiler.tables import TraceLike, request_names

__all__ = ["TtftSource", "rest_kind", "ttft_source"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TtftSource:
    """What the ledgers of a trace's first tokens are made from."""

    ledger: LedgerSource
    rows: TtftRows
    own: OwnRows
    rounds: dict[int, Rounds]  # by rank
    waits: Waits
    names: Mapping[int, str]

    @classmethod
    def of(cls, trace: TraceLike, split: tuple[str, ForwardCostModel] | None = None) -> "TtftSource":
        """That of a trace; `split` names a cost model to share forwards by, else they go by tokens."""
        forwards = forward_table(trace)
        rows = TtftRows.of(trace, forwards)
        no_extras = np.full(len(forwards), UNKNOWN, dtype=np.int64)  # only gaps between tokens ask for them
        return ttft_source(trace, ledger_source(trace, forwards, rows.special, no_extras, split), rows)

    @property
    def forwards(self) -> ForwardTable:
        """The forwards that everything here counts."""
        return self.ledger.forwards

    def name_of(self, rid: int) -> str:
        """The user's name of a request; its rid where the trace has none."""
        return self.names.get(rid, str(rid))


def ttft_source(
    trace: TraceLike, ledger: LedgerSource, rows: TtftRows, names: Mapping[int, str] | None = None
) -> TtftSource:
    """That of a trace whose gaps' ledgers, and perhaps the names of its requests, are there already."""
    own = OwnRows.of(rows)
    rounds = rounds_by_rank(trace, ledger.forwards)
    waits = Waits.of(trace, ledger.forwards, rows, own, rounds)
    return TtftSource(ledger, rows, own, rounds, waits, names or request_names(trace))


def rest_kind(time: RankTime) -> TtftKind:
    """What time is that nobody holds: idle, if the rank tells all its times."""
    return TtftKind.IDLE if time.complete else TtftKind.UNTOLD
