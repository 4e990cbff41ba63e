"""The ledger of a trace gap by gap: of several ranks, or where forwards did not run one after another."""

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import ForwardTable
from profiler.ledger.charges import ChunkCharges, joined
from profiler.ledger.gap_pieces import Span
from profiler.ledger.gap_reader import rows_in
from profiler.ledger.own_rows import SpecialRows
from profiler.ledger.parts import HOST_KINDS
from profiler.ledger.report_tables import LedgerSums
from profiler.ledger.source import ledger_source
from profiler.ledger.unusual_gaps import UnusualSums, gap_sums
from profiler.ledger.victims import VictimSums
from profiler.price_rows import ForwardCostModel
from profiler.request_rows import request_rows
from profiler.tables import TraceLike
from profiler.token_gaps import token_gaps

__all__ = ["every_gap"]


def every_gap(
    trace: TraceLike,
    forwards: ForwardTable,
    mixed_extra_ns: NDArray[np.int64],
    split: tuple[str, ForwardCostModel] | None,
) -> LedgerSums:
    """The sums over all gaps of a trace, all of which are kept in memory."""
    rows = request_rows(trace, forwards)
    source = ledger_source(trace, forwards, SpecialRows.of(rows), mixed_extra_ns, split)
    between = token_gaps(rows, forwards)
    sums, victims, gaps = UnusualSums(len(source.chunks)), VictimSums(), []
    for at in range(len(between.row)):
        mine = rows.only(int(rows.rids[between.request[at]]))
        own = int(rows.forward[between.row[at]])
        start_ns, end_ns = int(between.start_ns[at]), int(between.end_ns[at])
        span = Span(int(mine.rids[0]), int(forwards.rank[own]), start_ns, end_ns, own)
        gap = gap_sums(source, span, rows_in(span, mine, forwards))
        index = int(rows.token_index[between.row[at]])
        sums.add(gap)
        victims.add(*(np.array([n]) for n in (span.rid, index, gap.gap_ns, gap.late_ns)))
        gaps.append((index, gap))
    return LedgerSums(
        source=source,
        by_kind=sums.by_kind,
        victims=victims,
        charges=ChunkCharges(sums.cost_ns, sums.gaps, sums.longest_ns),
        stretches=joined([sums.stretches()]),
        host_over=lambda edges: np.zeros((len(edges) - 1, len(HOST_KINDS)), dtype=np.int64),
        worst=gaps,
    )
