"""Who shares a gap: the requests with consecutive tokens from two forwards, and all their rows in between."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl
import pyarrow as pa

from engine.batch import Outcome, Role
from profiler.forward_positions import ForwardPositions
from profiler.forward_table import ForwardTable
from profiler.ledger.gap_pieces import OwnRow, Span
from profiler.ledger.own_rows import SpecialRows
from profiler.tables import TraceLike, column_batches
from traces.schema import TABLES

__all__ = ["Members", "own_rows"]

_COLUMNS = ["forward_id", "rid", "attempt", "role", "outcome", "token_index"]


@runtime_checkable
class _Ranged(Protocol):
    def read_forwards(self, name: str, first_id: int, last_id: int) -> pa.Table: ...


@dataclass(frozen=True, slots=True)
class Members:
    """Finds the gaps between two forwards of a trace of one rank."""

    trace: TraceLike
    forwards: ForwardTable
    positions: ForwardPositions

    def between(self, before: int, own: int) -> Iterator[tuple[int, Span, list[OwnRow]]]:
        """Token index, span and rows of each gap from a token of `before` to one of `own`, by rid."""
        rows = self._rows(before, own)
        span = self._span(before, own)
        gave = (pl.col("outcome") == Outcome.EMITTED.value) & pl.col("token_index").is_not_null()
        tokens = rows.filter(gave & pl.col("position").is_in([before, own])).sort("rid")
        at = pl.col("position") == own
        earlier = dict(tokens.filter(~at).select("rid", "token_index").iter_rows())
        mine = {rid: part for (rid,), part in rows.partition_by("rid", as_dict=True).items()}
        for rid, index in tokens.filter(at).select("rid", "token_index").iter_rows():
            if earlier.get(rid) == index - 1:
                gap = Span(rid, int(self.forwards.rank[own]), *span, own)
                yield index, gap, _as_rows(mine[rid])

    def rows_of(self, rid: int, before: int, own: int) -> list[OwnRow]:
        """The rows of a request in the forwards that share time with its gap."""
        return _as_rows(self._rows(before, own).filter(pl.col("rid") == rid))

    def _span(self, before: int, own: int) -> tuple[int, int]:
        return int(self.forwards.result_end_ns[before]), int(self.forwards.result_end_ns[own])

    def _rows(self, before: int, own: int) -> pl.DataFrame:
        """All rows in forwards that share time with the gap, and in its two, with their positions."""
        start_ns, end_ns = self._span(before, own)
        inside = (self.forwards.start_ns < end_ns) & (self.forwards.end_ns > start_ns)
        wanted = np.union1d(np.flatnonzero(inside), [before, own])
        ids = self.forwards.forward_id[wanted]
        if isinstance(self.trace, _Ranged):
            table = self.trace.read_forwards("rows", int(ids.min()), int(ids.max())).select(_COLUMNS)
        else:
            schema = pa.schema([TABLES["rows"].field(name) for name in _COLUMNS])
            table = pa.Table.from_batches(column_batches(self.trace, "rows", _COLUMNS), schema=schema)
        rows = pl.from_arrow(table)
        assert isinstance(rows, pl.DataFrame)
        rows = rows.drop_nulls(["forward_id", "rid"])
        position = self.positions.of(rows["forward_id"].to_numpy())
        return rows.with_columns(position=pl.Series(position)).filter(pl.Series(np.isin(position, wanted)))


def own_rows(special: SpecialRows, rid: int, before: int, own: OwnRow, ahead: int | None) -> list[OwnRow]:
    """The rows of a request after that in forward `before` up to `own`, and that in `ahead`, if it is one."""
    mine = special.of_request(rid)
    forward = special.forward[mine]
    some = slice(*np.searchsorted(forward, [before + 1, own.forward + 1]).tolist())
    columns = [column[mine] for column in (special.forward, special.role, special.attempt)]
    rows = [OwnRow(*row) for row in zip(*(column[some].tolist() for column in columns), strict=True)]
    if not rows or rows[-1].forward != own.forward:
        rows.append(own)
    if ahead is not None:
        at = int(np.searchsorted(forward, ahead))
        told = at < len(forward) and forward[at] == ahead
        rows.append(OwnRow(*(int(c[at]) for c in columns)) if told else OwnRow(ahead, Role.DECODE.value, -1))
    return rows


def _as_rows(rows: pl.DataFrame) -> list[OwnRow]:
    told = rows.sort("position").select(
        "position", pl.col("role").fill_null(Role.DECODE.value), pl.col("attempt").fill_null(-1)
    )
    return [OwnRow(*row) for row in told.iter_rows()]
