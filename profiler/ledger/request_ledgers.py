"""The gaps of one request, and the gaps of others that its chunks lie in, each taken apart."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import Role
from profiler.forward_table import ForwardTable, forward_table
from profiler.ledger.gap_pieces import LedgerSource
from profiler.ledger.gap_reader import GapReader
from profiler.ledger.own_rows import SpecialRows
from profiler.ledger.parts import GapDetail
from profiler.ledger.some_rows import SomeRows
from profiler.ledger.source import ledger_source
from profiler.mixed_extra import mixed_extras
from profiler.price_rows import ForwardCostModel
from profiler.request_rows import RequestRows, request_rows
from profiler.tables import TraceLike, frame, request_names
from profiler.token_gaps import Gaps, token_gaps

__all__ = ["RequestLedgers", "worst_gaps"]

Ints = NDArray[np.int64]

_AT_LEAST = 2.0  # times its median gap, from which on a gap is listed


@dataclass(frozen=True, slots=True)
class RequestLedgers:
    """Reads the ledgers of some requests of a trace, whatever its length: no other's rows are kept."""

    trace: TraceLike
    source: LedgerSource
    rows: RequestRows  # of the requests that were asked for, of prompts, and those that gave no token
    names: Mapping[int, str]

    @classmethod
    def of(
        cls, trace: TraceLike, rids: Iterable[int], split: tuple[str, ForwardCostModel] | None = None
    ) -> "RequestLedgers":
        """Of these requests; `split` names a cost model to share forwards by, else it is by tokens."""
        forwards = forward_table(trace)
        rows = request_rows(SomeRows(trace, rids), forwards)
        source = ledger_source(trace, forwards, SpecialRows.of(rows), mixed_extras(forwards), split)
        return cls(trace, source, rows, request_names(trace))

    def gaps_of(self, rid: int) -> list[GapDetail]:
        """Every gap of one of the requests, in order of tokens."""
        return self._reader(self.rows).all(rid)

    def gaps_behind(self, rid: int) -> Iterator[GapDetail]:
        """The gaps of others that share time with a forward that computed some of this request's prompt."""
        chunks = self._chunk_forwards(rid)
        if not len(chunks):
            return
        forwards = self.source.forwards
        rows = request_rows(SomeRows(self.trace, [*self._long_gone(chunks), rid], all_but=True), forwards)
        gaps, reader = token_gaps(rows, forwards), self._reader(rows)
        others = rows.rids[gaps.request] != rid
        for at in np.flatnonzero(others & _behind(gaps, rows, forwards, chunks)).tolist():
            detail = reader.gap(int(rows.rids[gaps.request[at]]), int(rows.token_index[gaps.row[at]]))
            if detail is not None:
                yield detail

    def _reader(self, rows: RequestRows) -> GapReader:
        return GapReader(self.source, rows.only, lambda rid: self.names.get(rid, str(rid)))

    def _chunk_forwards(self, rid: int) -> Ints:
        mine = self.rows.of(rid)
        return self.rows.forward[mine][self.rows.role[mine] <= Role.LAST.value].astype(np.int64)

    def _long_gone(self, chunks: Ints) -> list[int]:
        """Requests that ended before any of these forwards, or gave no token until after them all."""
        forwards = self.source.forwards
        start_ns, end_ns = forwards.start_ns[chunks].min(), forwards.end_ns[chunks].max()
        unprocessed = np.flatnonzero(forwards.result_end_ns > start_ns)
        since_ns = min(int(start_ns), *forwards.start_ns[unprocessed[:1]].tolist())
        gone = (pl.col("finish_ns") < since_ns) | (pl.col("first_token_ns") > int(end_ns))
        rids: list[int] = frame(self.trace, "requests").filter(gone)["rid"].to_list()
        return rids


def _behind(gaps: Gaps, rows: RequestRows, forwards: ForwardTable, chosen: Ints) -> NDArray[np.bool_]:
    """(gaps,) whether each shares time with one of the chosen forwards of its rank, in order of start."""
    shares = np.zeros(len(gaps.row), dtype=np.bool_)
    rank = forwards.rank[rows.forward[gaps.row]]
    for each in np.unique(forwards.rank[chosen]):
        there = chosen[forwards.rank[chosen] == each]
        starts = np.append(forwards.start_ns[there], np.iinfo(np.int64).max)
        ended = np.maximum.accumulate(forwards.end_ns[there])
        first = np.searchsorted(ended, gaps.start_ns, side="right")  # the first to end in the gap, or later
        shares |= (rank == each) & (starts[first] < gaps.end_ns)
    return shares


def worst_gaps(gaps: Sequence[GapDetail], most: int) -> list[GapDetail]:
    """Of one request's gaps those of at least twice their median, the longest first; always the longest."""
    ranked = sorted(gaps, key=lambda gap: (-gap.gap_ns, gap.start_ns))
    long = [gap for gap in ranked if gap.gap_ns >= _AT_LEAST * (gap.median_gap_ns or 0)]
    return (long or ranked[:1])[:most]
