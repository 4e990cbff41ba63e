"""A trace's rows put together by request: what each one had in which forward, in time order."""

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.batch import Role
from profiler.forward_positions import ForwardPositions
from profiler.forward_table import ForwardTable
from profiler.stable_order import stable_order
from profiler.tables import TraceLike, integers

__all__ = ["RequestRows", "request_rows"]

_UNKNOWN_CODE = 255
_CODES = ("role", "outcome")
_NUMBERS = ("attempt", "prefix_len", "extend_len", "token_index")


@dataclass(frozen=True, slots=True)
class RequestRows:
    """(rows,) columns in order of rid, then of forwards; those of rids[i] lie at bounds[i] to bounds[i + 1].

    `forward` is a position in the `ForwardTable`. An unknown number is -1, an unknown code 255.
    """

    rids: NDArray[np.int64]  # (requests,) ascending
    bounds: NDArray[np.int64]  # (requests + 1,)
    forward: NDArray[np.int32]
    role: NDArray[np.uint8]
    outcome: NDArray[np.uint8]
    attempt: NDArray[np.int32]
    prefix_len: NDArray[np.int32]
    extend_len: NDArray[np.int32]
    token_index: NDArray[np.int32]

    def of(self, rid: int) -> slice:
        """Where a request's rows lie; an empty slice when it has none."""
        at = int(np.searchsorted(self.rids, rid))
        if at == len(self.rids) or self.rids[at] != rid:
            return slice(0, 0)
        return slice(int(self.bounds[at]), int(self.bounds[at + 1]))

    def only(self, rid: int) -> "RequestRows":
        """The rows of one request, as if the trace had no others."""
        mine = self.of(rid)
        columns = {name: getattr(self, name)[mine] for name in self.__dataclass_fields__}
        columns["rids"], columns["bounds"] = np.array([rid]), np.array([0, mine.stop - mine.start])
        return RequestRows(**columns)

    def chunk_number(self, rid: int, forward: int) -> tuple[int, int | None]:
        """k and n of the chunk k/n that a forward, by position, computed; n is None if the last is not known.

        Chunks count within an attempt, from 1. Of a forward without a chunk of the request, the last before.
        """
        mine = self.of(rid)
        upto = int(np.searchsorted(self.forward[mine], forward, side="right"))
        if not upto:
            return 0, None
        role, attempt = self.role[mine], self.attempt[mine]
        chunks = (attempt == attempt[upto - 1]) & (role <= Role.LAST.value)
        ended = (chunks & ((role == Role.LAST.value) | (role == Role.WHOLE.value))).any()
        return int(chunks[:upto].sum()), int(chunks.sum()) if ended else None


def request_rows(trace: TraceLike, forwards: ForwardTable) -> RequestRows:
    """A trace's rows by request, without those of no request or of a forward that `forwards` lacks."""
    table = trace.table("rows")
    if table.column("rid").null_count or table.column("forward_id").null_count:
        table = table.filter(pc.is_valid(table.column("rid")))
        table = table.filter(pc.is_valid(table.column("forward_id")))
    at = ForwardPositions(forwards.forward_id).of(integers(table, "forward_id", 0, np.uint32))
    known = at >= 0
    rids = integers(table, "rid", 0, np.uint32)
    columns = {name: integers(table, name, _UNKNOWN_CODE, np.uint8) for name in _CODES}
    columns |= {name: integers(table, name, -1, np.int32) for name in _NUMBERS}
    if not known.all():
        at, rids = at[known], rids[known]
        columns = {name: values[known] for name, values in columns.items()}
    order = stable_order(at) if len(at) and (np.diff(at) < 0).any() else None
    if order is not None:
        at, rids = at[order], rids[order]
        columns = {name: values[order] for name, values in columns.items()}
    order = stable_order(rids)
    rids = rids[order]
    first = np.flatnonzero(np.diff(rids.astype(np.int64), prepend=-1))
    return RequestRows(
        rids=rids[first].astype(np.int64),
        bounds=np.append(first, len(rids)),
        forward=at[order].astype(np.int32, copy=False),
        **{name: values[order] for name, values in columns.items()},
    )
