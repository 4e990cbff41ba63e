"""Which rows of a table lie in a range of forwards or of time.

A row's time is: of a forward, from its plan to its processed result; of a kernel, its interval; of an event,
its moment; of a request, from arrival to finish, without end while unfinished. Rows without a known time lie
in no range of time. `rows` and `pages` have no time of their own: they go with their forward.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["FOREVER_NS", "bounds", "has_forward_ids", "has_times", "ids_within", "times_within"]

FOREVER_NS = np.iinfo(np.int64).max
_STARTS = {
    "forwards": ("plan_start_ns", "launch_start_ns", "start_ns", "result_start_ns"),
    "kernels": ("start_ns",),
    "events": ("t_ns",),
    "requests": ("arrival_ns",),
}
_ENDS = {
    "forwards": ("result_end_ns", "end_ns", "launch_end_ns", "plan_end_ns"),
    "kernels": ("end_ns", "start_ns"),
    "events": ("t_ns",),
    "requests": ("finish_ns",),
}


def has_forward_ids(table: str) -> bool:
    """Whether the table's rows name a forward."""
    return table != "requests"


def has_times(table: str) -> bool:
    """Whether the table's rows have times of their own."""
    return table in _STARTS


def ids_within(batch: pa.RecordBatch, first: int, last: int) -> NDArray[np.bool_]:
    """(rows,) whether the row's forward_id is known and in [first, last]."""
    ids, known = _numbers(batch.column("forward_id"))
    return known & (ids >= first) & (ids <= last)


def times_within(table: str, batch: pa.RecordBatch, start_ns: int, end_ns: int) -> NDArray[np.bool_]:
    """(rows,) whether the row's time overlaps [start_ns, end_ns)."""
    starts, ends, known = _times(table, batch)
    return known & (starts < end_ns) & ((ends > start_ns) | (starts >= start_ns))


def bounds(table: str, batch: pa.RecordBatch) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Least and greatest forward id, and the time that covers all rows; None where no row has any."""
    ids = times = None
    if has_forward_ids(table):
        values, known = _numbers(batch.column("forward_id"))
        if known.any():
            ids = int(values[known].min()), int(values[known].max())
    if has_times(table):
        starts, ends, known = _times(table, batch)
        if known.any():
            times = int(starts[known].min()), int(ends[known].max())
    return ids, times


def _times(
    table: str, batch: pa.RecordBatch
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    starts, known = _numbers(pc.coalesce(*(batch.column(name) for name in _STARTS[table])))
    ends, ended = _numbers(pc.coalesce(*(batch.column(name) for name in _ENDS[table])))
    open_end = FOREVER_NS if table == "requests" else starts
    return starts, np.where(ended, ends, open_end), known


def _numbers(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Values as int64, with 0 for null, and which are known."""
    known = column.is_valid().to_numpy(zero_copy_only=False)
    return column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False), known
