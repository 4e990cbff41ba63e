"""What going through a trace's rows collects: the sums of all gaps, and which are worth a closer look."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import ForwardTable
from profiler.ledger.forward_times import ForwardTimes
from profiler.ledger.gap_pairs import BlockGaps, GapPairs, UnusualGaps
from profiler.ledger.gap_pieces import LedgerSource, OwnRow, Span
from profiler.ledger.members import Members, own_rows
from profiler.ledger.own_rows import SpecialRows
from profiler.ledger.pair_parts import pair_parts
from profiler.ledger.parts import PartKind
from profiler.ledger.rank_time import RankTime
from profiler.ledger.row_blocks import RowBlock
from profiler.ledger.ttft_rows import TtftRows
from profiler.ledger.unusual_gaps import GapSums, gap_sums
from profiler.ledger.usual_gaps import UsualGaps
from profiler.ledger.victims import VictimSums
from profiler.ledger.worst_pairs import WorstPairs

__all__ = ["Collected"]

Ints = NDArray[np.int64]


class Collected:
    """Of a trace of one rank; call `go_through` once, then `unusual`, then the rest."""

    def __init__(self, forwards: ForwardTable, times: ForwardTimes, time: RankTime, top: int) -> None:
        self.by_kind = np.zeros(len(PartKind), dtype=np.int64)
        self.victims = VictimSums()
        self.usual = UsualGaps(times, time)
        self._forwards, self._times, self._time = forwards, times, time
        # By lateness, by the sum of it, by length.
        self._worst = (WorstPairs(top), WorstPairs(top, np.add), WorstPairs(1))
        self._odd: list[UnusualGaps] = []

    def go_through(self, pairs: GapPairs, blocks: Iterator[RowBlock]) -> TtftRows:
        """Count the usual gaps; returns the rows that the unusual ones, and first tokens, ask for."""
        with ThreadPoolExecutor(1) as counter:
            counting: Future[None] | None = None
            for gaps, unusual in pairs.blocks(blocks):  # the next block's are found while these are counted
                if counting is not None:
                    counting.result()
                counting = counter.submit(self._count, gaps)
                if len(unusual.rid):
                    self._odd.append(unusual)
            if counting is not None:
                counting.result()
        return TtftRows.of_blocks(pairs.kept)

    def _count(self, gaps: BlockGaps) -> None:
        parts = pair_parts(self._times, self._time.position, gaps.before, gaps.own, gaps.in_next)
        self.by_kind += gaps.count @ parts.ns
        self.victims.add(gaps.rid, gaps.token_index, parts.gap_ns[gaps.pair], parts.late_ns[gaps.pair])
        self.usual.add(gaps, parts)
        self._offer(parts.late_ns, parts.late_ns * gaps.count, parts.gap_ns, gaps.before, gaps.own)

    def _offer(self, late_ns: Ints, lost_ns: Ints, gap_ns: Ints, before: Ints, own: Ints) -> None:
        for worst, value in zip(self._worst, (late_ns, lost_ns, gap_ns), strict=True):
            worst.add(value, before, own)

    @property
    def out_of_order(self) -> int:
        """How many gaps are of forwards that did not run one after another: each is read by itself."""
        return sum(int((~gaps.in_order).sum()) for gaps in self._odd)

    def unusual(self, source: LedgerSource, special: SpecialRows, members: Members) -> Iterator[GapSums]:
        """The unusual gaps taken apart, each counted among victims and candidates when it is given."""
        for gaps in self._odd:
            late, length = np.zeros_like(gaps.own), np.zeros_like(gaps.own)
            for at in range(len(gaps.rid)):
                gap = gap_sums(source, *self._odd_gap(gaps, at, special, members))
                late[at], length[at] = gap.late_ns, gap.gap_ns
                one = slice(at, at + 1)
                self.victims.add(gaps.rid[one], gaps.token_index[one], length[one], late[one])
                yield gap
            self._offer(late, late, length, gaps.before, gaps.own)

    def _odd_gap(
        self, gaps: UnusualGaps, at: int, special: SpecialRows, members: Members
    ) -> tuple[Span, list[OwnRow]]:
        rid, before, own = int(gaps.rid[at]), int(gaps.before[at]), int(gaps.own[at])
        if gaps.in_order[at]:
            ahead = int(self._time.position[self._times.ahead[own]]) if gaps.in_next[at] else None
            rows = own_rows(special, rid, before, OwnRow(own, int(gaps.own_role[at]), -1), ahead)
        else:
            rows = members.rows_of(rid, before, own)
        start_ns, end_ns = int(self._times.t_ns[before]), int(self._times.t_ns[own])
        return Span(rid, int(self._forwards.rank[own]), start_ns, end_ns, own), rows

    def worst(self, source: LedgerSource, members: Members) -> list[tuple[int, GapSums]]:
        """All gaps between the pairs of forwards that are worth a look, with their token indices."""
        wanted = sorted({pair for worst in self._worst for pair in worst.pairs()})
        return [
            (index, gap_sums(source, span, rows))
            for before, own in wanted
            for index, span, rows in members.between(before, own)
        ]
