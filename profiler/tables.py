"""What every analysis reads: a trace's tables as polars frames, and nothing of where they are stored."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["TraceLike", "frame", "integers", "request_names"]


class TraceLike(Protocol):
    """The part of `traces.reader.Trace` that analyses need."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """The content of `meta.json`."""
        ...

    @property
    def torn_bytes(self) -> int:
        """Unreadable bytes after the last whole batch of an unsealed trace."""
        ...

    def table(self, name: str) -> pa.Table:
        """A table with the full schema; what the trace lacks is null."""
        ...


def frame(trace: TraceLike, name: str) -> pl.DataFrame:
    """The table `name` as a polars frame; enums stay the integers of `engine.batch` and `engine.observer`."""
    table = pl.from_arrow(trace.table(name))
    assert isinstance(table, pl.DataFrame)
    return table


def integers(table: pa.Table, name: str, unknown: int, kind: type[np.integer[Any]]) -> NDArray[Any]:
    """A column of whole numbers as one numpy array of a type that holds them; null becomes `unknown`."""
    column = table.column(name)
    if not column.null_count:
        known: NDArray[Any] = column.to_numpy().astype(kind, copy=False)
        return known
    parts = [chunk.cast(pa.int64()).fill_null(unknown).to_numpy().astype(kind) for chunk in column.chunks]
    return np.concatenate(parts)


def request_names(trace: TraceLike) -> dict[int, str]:
    """The user's name of each rid; the rid itself where the trace has no name."""
    requests = frame(trace, "requests")
    return {
        rid: str(rid) if name is None else name
        for rid, name in zip(requests["rid"], requests["name"], strict=True)
    }
