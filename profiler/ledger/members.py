"""Who shares a gap: the requests with consecutive tokens from two forwards, and their rows in between."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from engine.batch import Outcome, Role
from profiler.forward_table import ForwardTable
from profiler.ledger.gap_pieces import OwnRow, Span
from profiler.ledger.own_rows import SpecialRows
from profiler.tables import TraceLike, column_batches

__all__ = ["Members", "next_row", "own_rows"]

_COLUMNS = ["forward_id", "rid", "role", "outcome", "token_index"]


@runtime_checkable
class _Ranged(Protocol):
    def read_forwards(self, name: str, first_id: int, last_id: int) -> pa.Table: ...


@dataclass(frozen=True, slots=True)
class Members:
    """Finds the gaps between two forwards of a trace of one rank."""

    trace: TraceLike
    forwards: ForwardTable
    special: SpecialRows
    in_device: NDArray[np.int64]  # (forwards,) the forward that runs at each one's result; -1 is none

    def between(self, before: int, own: int) -> Iterator[tuple[int, Span, Sequence[OwnRow]]]:
        """Token index, span and own rows of each gap from a token of `before` to one of `own`, by rid."""
        start_ns, end_ns = (int(self.forwards.result_end_ns[forward]) for forward in (before, own))
        earlier = dict(self._tokens(before).select("rid", "token_index").iter_rows())
        following = int(self.in_device[own])
        ahead = set(self._rows(following)["rid"])
        for rid, index, role in self._tokens(own).select("rid", "token_index", "role").iter_rows():
            if earlier.get(rid) == index - 1:
                rows = own_rows(self.special, rid, before, own, role)
                if rid in ahead:
                    rows += next_row(self.special, rid, following)
                yield index, Span(rid, int(self.forwards.rank[own]), start_ns, end_ns, own), rows

    def _tokens(self, forward: int) -> pl.DataFrame:
        gave = (pl.col("outcome") == Outcome.EMITTED.value) & pl.col("token_index").is_not_null()
        return self._rows(forward).filter(gave).sort("rid")

    def _rows(self, forward: int) -> pl.DataFrame:
        """Rows of known request of one forward."""
        if forward < 0:
            return pl.DataFrame(schema=_COLUMNS)
        forward_id = int(self.forwards.forward_id[forward])
        if isinstance(self.trace, _Ranged):
            found = pl.from_arrow(self.trace.read_forwards("rows", forward_id, forward_id).select(_COLUMNS))
        else:
            found = pl.from_arrow(pa.Table.from_batches(column_batches(self.trace, "rows", _COLUMNS)))
        assert isinstance(found, pl.DataFrame)
        mine = found.filter((pl.col("forward_id") == forward_id) & pl.col("rid").is_not_null())
        return mine.with_columns(pl.col("role").fill_null(Role.DECODE.value))


def own_rows(special: SpecialRows, rid: int, before: int, own: int, own_role: int) -> list[OwnRow]:
    """The rows of a request after that in forward `before`, up to the one in `own`, in order of forwards."""
    mine = special.of_request(rid)
    forward = special.forward[mine]
    some = slice(*np.searchsorted(forward, [before + 1, own + 1]).tolist())
    columns = (column[mine][some].tolist() for column in (special.forward, special.role, special.attempt))
    rows = [OwnRow(*row) for row in zip(*columns, strict=True)]
    if not rows or rows[-1].forward != own:
        rows.append(OwnRow(own, own_role, -1))
    return rows


def next_row(special: SpecialRows, rid: int, forward: int) -> list[OwnRow]:
    """The row of a request in a forward that it is known to be in."""
    mine = special.of_request(rid)
    at = mine.start + int(np.searchsorted(special.forward[mine], forward))
    if at < mine.stop and special.forward[at] == forward:
        return [OwnRow(forward, int(special.role[at]), int(special.attempt[at]))]
    return [OwnRow(forward, Role.DECODE.value, -1)]
