"""What every analysis reads: a trace's tables as polars frames, and nothing of where they are stored."""

from collections.abc import Mapping
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

__all__ = ["TraceLike", "frame", "request_names"]


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


def request_names(trace: TraceLike) -> dict[int, str]:
    """The user's name of each rid; the rid itself where the trace has no name."""
    requests = frame(trace, "requests")
    return {
        rid: str(rid) if name is None else name
        for rid, name in zip(requests["rid"], requests["name"], strict=True)
    }
