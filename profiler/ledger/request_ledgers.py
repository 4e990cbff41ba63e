"""The gaps of one request, and the gaps of others that its chunks lie in, each taken apart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch import Role
from profiler.forward_table import ForwardTable, forward_table
from profiler.ledger.chunk_rows import ChunkRows
from profiler.ledger.gap_reader import GapReader
from profiler.ledger.own_rows import SpecialRows
from profiler.ledger.parts import GapDetail
from profiler.ledger.source import ledger_source
from profiler.mixed_extra import mixed_extras
from profiler.price_rows import ForwardCostModel
from profiler.request_rows import RequestRows, request_rows
from profiler.tables import TraceLike, request_names
from profiler.token_gaps import Gaps, token_gaps

__all__ = ["RequestLedgers", "worst_gaps"]

Ints = NDArray[np.int64]

_AT_LEAST = 2.0  # times its median gap, from which on a gap is listed


@dataclass(frozen=True, slots=True)
class RequestLedgers:
    """Reads the ledgers of a trace request by request."""

    reader: GapReader
    rows: RequestRows
    forwards: ForwardTable

    @classmethod
    def of(cls, trace: TraceLike, split: tuple[str, ForwardCostModel] | None = None) -> "RequestLedgers":
        """Of a trace; `split` names a cost model to share forwards by, else they are shared by tokens."""
        forwards = forward_table(trace)
        rows = request_rows(trace, forwards)
        chunks = ChunkRows.of_rows(SpecialRows.of(rows))
        source = ledger_source(trace, forwards, chunks, mixed_extras(forwards), split)
        names = request_names(trace)
        return cls(GapReader(source, rows.only, lambda rid: names.get(rid, str(rid))), rows, forwards)

    def gaps_of(self, rid: int) -> list[GapDetail]:
        """Every gap of a request, in order of tokens."""
        return self.reader.all(rid)

    def gaps_behind(self, rid: int) -> Iterator[GapDetail]:
        """The gaps of others that share time with a forward that computed some of this request's prompt."""
        gaps = token_gaps(self.rows, self.forwards)
        others = self.rows.rids[gaps.request] != rid
        for at in np.flatnonzero(others & self._behind(gaps, self._chunk_forwards(rid))).tolist():
            index = int(self.rows.token_index[gaps.row[at]])
            detail = self.reader.gap(int(self.rows.rids[gaps.request[at]]), index)
            if detail is not None:
                yield detail

    def _chunk_forwards(self, rid: int) -> Ints:
        mine = self.rows.of(rid)
        return self.rows.forward[mine][self.rows.role[mine] <= Role.LAST.value].astype(np.int64)

    def _behind(self, gaps: Gaps, forward: Ints) -> NDArray[np.bool_]:
        """(gaps,) whether each shares time with one of these forwards, which are in order of start."""
        behind = np.zeros(len(gaps.row), dtype=np.bool_)
        rank = self.forwards.rank[self.rows.forward[gaps.row]]
        for each in np.unique(self.forwards.rank[forward]):
            there = forward[self.forwards.rank[forward] == each]
            starts = np.append(self.forwards.start_ns[there], np.iinfo(np.int64).max)
            ended = np.maximum.accumulate(self.forwards.end_ns[there])
            first = np.searchsorted(
                ended, gaps.start_ns, side="right"
            )  # the first to end in the gap, or later
            behind |= (rank == each) & (starts[first] < gaps.end_ns)
        return behind


def worst_gaps(gaps: Sequence[GapDetail], most: int) -> list[GapDetail]:
    """Of one request's gaps those of at least twice their median, the longest first; always the longest."""
    ranked = sorted(gaps, key=lambda gap: (-gap.gap_ns, gap.start_ns))
    long = [gap for gap in ranked if gap.gap_ns >= _AT_LEAST * (gap.median_gap_ns or 0)]
    return (long or ranked[:1])[:most]
