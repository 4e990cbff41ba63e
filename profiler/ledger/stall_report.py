"""The ledger of a whole trace, from one pass over its rows in order of forwards."""

import numpy as np
from numpy.typing import NDArray

from profiler.forward_positions import ForwardPositions
from profiler.forward_table import FORWARD_COLUMNS, UNKNOWN_TIME, ForwardTable, forward_table
from profiler.ledger.charges import ChunkCharges, charge, joined
from profiler.ledger.chunk_rows import ChunkRows
from profiler.ledger.collected import Collected
from profiler.ledger.every_gap import every_gap
from profiler.ledger.forward_times import ForwardTimes
from profiler.ledger.gap_pairs import GapPairs
from profiler.ledger.gap_pieces import LedgerSource
from profiler.ledger.held_back import HeldBack, held_back
from profiler.ledger.members import Members
from profiler.ledger.parts import OWN_KINDS
from profiler.ledger.rank_time import RankTime, rank_times
from profiler.ledger.report import StallReport
from profiler.ledger.report_tables import LedgerSums, as_report
from profiler.ledger.row_blocks import RowsOutOfOrder, row_blocks
from profiler.ledger.source import split_of
from profiler.ledger.ttft_parts import TtftTotals
from profiler.ledger.ttft_rows import TtftRows
from profiler.ledger.ttft_source import ttft_source
from profiler.ledger.ttft_totals import sum_ttft
from profiler.ledger.unusual_gaps import UnusualSums
from profiler.mixed_extra import mixed_extras
from profiler.price_rows import ForwardCostModel
from profiler.read_once import ReadOnce
from profiler.tables import TraceLike, request_names

__all__ = ["both_reports", "stall_report"]

Ints = NDArray[np.int64]

_MOST_OUT_OF_ORDER = 1000  # gaps read by themselves; of more all gaps are taken apart with all rows in memory


def stall_report(
    trace: TraceLike, top: int = 10, split: tuple[str, ForwardCostModel] | None = None
) -> StallReport:
    """What all gaps went to, and the `top` worst of everything.

    A forward that several chunks share is split by tokens, or by the cost model that `split` names.
    """
    sums, _ = _sums(trace, top, split)
    names = request_names(trace)
    return as_report(sums, lambda rid: names.get(rid, str(rid)), top)


def both_reports(
    trace: TraceLike, top: int = 10, split: tuple[str, ForwardCostModel] | None = None
) -> tuple[StallReport, TtftTotals]:
    """`stall_report` and `profiler.ledger.ttft_totals.ttft_totals` from one pass over the rows."""
    sums, rows = _sums(trace, top, split)
    names = request_names(trace)
    report = as_report(sums, lambda rid: names.get(rid, str(rid)), top)
    source = sums.source
    del sums  # of a long trace it is large, and no longer asked for
    return report, sum_ttft(ttft_source(trace, source, rows, names), top)


def _sums(
    trace: TraceLike, top: int, split: tuple[str, ForwardCostModel] | None
) -> tuple[LedgerSums, TtftRows]:
    """The sums over all gaps, and the rows that the ledgers of first tokens ask for."""
    once = ReadOnce(trace, FORWARD_COLUMNS)
    forwards = forward_table(once)
    extras = mixed_extras(forwards)
    if _orderly(forwards):
        times = rank_times(once, forwards)
        del once  # of a long trace it is large, and no longer asked for
        return _one_pass(trace, forwards, times, extras, top, split)
    return every_gap(trace, forwards, extras, split), TtftRows.of(trace, forwards)


def _orderly(forwards: ForwardTable) -> bool:
    """Whether forwards of one rank ran and ended in order, all with device intervals or all without."""
    results = forwards.result_end_ns[forwards.result_end_ns != UNKNOWN_TIME]
    one_rank = len(forwards) > 0 and bool((forwards.rank == forwards.rank[0]).all())
    alike = bool((forwards.on_device == forwards.on_device[:1]).all())
    return one_rank and alike and bool((np.diff(results) >= 0).all())


def _one_pass(
    trace: TraceLike,
    forwards: ForwardTable,
    times: dict[int, RankTime],
    extras: Ints,
    top: int,
    split: tuple[str, ForwardCostModel] | None,
) -> tuple[LedgerSums, TtftRows]:
    """Those of a trace of one rank."""
    held = held_back(trace, forwards)
    (time,) = times.values()
    collected, rows = _collect(trace, forwards, ForwardTimes.of(forwards, time, extras), time, held, top)
    if collected.out_of_order > _MOST_OUT_OF_ORDER:
        return every_gap(trace, forwards, extras, split), rows
    chunks = ChunkRows.of_rows(rows.special, forwards.rank)
    members = Members(trace, forwards, ForwardPositions(forwards.forward_id))
    source = LedgerSource(forwards, times, chunks, split_of(trace, forwards, chunks, split), extras, held)
    unusual = UnusualSums(len(chunks))
    for gap in collected.unusual(source, rows.special, members):
        unusual.add(gap)
    stretches = joined(collected.usual.stretches())
    usual = charge(stretches.some(~np.isin(stretches.kind, OWN_KINDS)), chunks, source.split)
    sums = LedgerSums(
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
        worst=collected.worst(source, members),
    )
    return sums, rows


def _collect(
    trace: TraceLike,
    forwards: ForwardTable,
    columns: ForwardTimes,
    time: RankTime,
    held: HeldBack,
    top: int,
) -> tuple[Collected, TtftRows]:
    """Go through the rows as they lie; where they are out of order, once more after sorting them."""
    collected = Collected(forwards, columns, time, top)
    try:
        return collected, collected.go_through(GapPairs(columns, held), row_blocks(trace, forwards))
    except RowsOutOfOrder:
        collected = Collected(forwards, columns, time, top)
        blocks = row_blocks(trace, forwards, sort=True)
        return collected, collected.go_through(GapPairs(columns, held), blocks)
