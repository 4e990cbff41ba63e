"""The ledger of a whole trace, from one pass over its rows in order of forwards."""

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import ForwardTable, forward_table
from profiler.ledger.charges import ChunkCharges, charge, joined
from profiler.ledger.chunk_rows import ChunkRows
from profiler.ledger.collected import Collected
from profiler.ledger.every_gap import every_gap
from profiler.ledger.forward_times import ForwardTimes
from profiler.ledger.gap_pairs import GapPairs
from profiler.ledger.gap_pieces import LedgerSource
from profiler.ledger.held_back import HeldBack, held_back
from profiler.ledger.own_rows import SpecialRows
from profiler.ledger.parts import OWN_KINDS
from profiler.ledger.rank_time import RankTime, rank_times
from profiler.ledger.report import StallReport
from profiler.ledger.report_tables import LedgerSums, as_report
from profiler.ledger.row_blocks import RowsOutOfOrder, row_blocks
from profiler.ledger.source import split_of
from profiler.ledger.unusual_gaps import UnusualSums
from profiler.mixed_extra import mixed_extras
from profiler.price_rows import ForwardCostModel
from profiler.tables import TraceLike, request_names

__all__ = ["stall_report"]

Ints = NDArray[np.int64]


def stall_report(
    trace: TraceLike, top: int = 10, split: tuple[str, ForwardCostModel] | None = None
) -> StallReport:
    """What all gaps went to, and the `top` worst of everything.

    A forward that several chunks share is split by tokens, or by the cost model that `split` names.
    """
    forwards = forward_table(trace)
    extras = mixed_extras(forwards)
    if len(np.unique(forwards.rank)) == 1:
        sums = _one_pass(trace, forwards, extras, top, split)
    else:
        sums = every_gap(trace, forwards, extras, split)
    names = request_names(trace)
    return as_report(sums, lambda rid: names.get(rid, str(rid)), top)


def _one_pass(
    trace: TraceLike,
    forwards: ForwardTable,
    extras: Ints,
    top: int,
    split: tuple[str, ForwardCostModel] | None,
) -> LedgerSums:
    """The sums over all gaps of a trace of one rank."""
    times, held = rank_times(trace, forwards), held_back(trace, forwards)
    (time,) = times.values()
    collected, special = _collect(trace, forwards, ForwardTimes.of(forwards, time, extras), time, held, top)
    chunks = ChunkRows.of_rows(special)
    source = LedgerSource(forwards, times, chunks, split_of(trace, forwards, chunks, split), extras, held)
    unusual = UnusualSums(len(chunks))
    for gap in collected.unusual(source, special):
        unusual.add(gap)
    stretches = joined(collected.usual.stretches())
    usual = charge(stretches.some(~np.isin(stretches.kind, OWN_KINDS)), chunks, source.split)
    return LedgerSums(
        source=source,
        by_kind=collected.by_kind + unusual.by_kind,
        victims=collected.victims,
        charges=ChunkCharges(
            usual.cost_ns + unusual.cost_ns,
            usual.gaps + unusual.gaps,
            np.maximum(usual.longest_ns, unusual.longest_ns),
        ),
        stretches=joined([stretches, unusual.stretches()]),
        host_over=collected.usual.host_over,
        worst=collected.worst(trace, source, special),
    )


def _collect(
    trace: TraceLike,
    forwards: ForwardTable,
    columns: ForwardTimes,
    time: RankTime,
    held: HeldBack,
    top: int,
) -> tuple[Collected, SpecialRows]:
    """Go through the rows as they lie; where they are out of order, once more after sorting them."""
    collected = Collected(forwards, columns, time, top)
    try:
        return collected, collected.go_through(GapPairs(columns, held), row_blocks(trace, forwards))
    except RowsOutOfOrder:
        collected = Collected(forwards, columns, time, top)
        blocks = row_blocks(trace, forwards, sort=True)
        return collected, collected.go_through(GapPairs(columns, held), blocks)
