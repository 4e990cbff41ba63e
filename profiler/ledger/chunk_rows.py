"""The chunks of a trace in order of forwards: whose they are, and their place k/n in their prompt."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch import Role
from profiler.ledger.own_rows import SpecialRows

__all__ = ["ChunkRows"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """(chunks,) columns in order of forwards, of one forward by rid."""

    forward: Ints  # position in the `ForwardTable`
    rid: Ints
    number: Ints  # k of k/n, within an attempt, from 1
    of: Ints  # n; -1 where the attempt's last chunk is not there
    prefix_len: Ints
    extend_len: Ints

    @classmethod
    def of_rows(cls, rows: SpecialRows, rank: Ints) -> "ChunkRows":
        """Those of a trace; `rank` is that of each forward, as each rank counts its own chunks."""
        chunks = np.flatnonzero(rows.is_chunk)
        chunks = chunks[np.lexsort((rank[rows.forward[chunks]], rows.rid[chunks]))]
        columns = (rows.forward, rows.rid, rows.attempt, rows.role, rows.prefix_len, rows.extend_len)
        forward, rid, attempt, role, prefix_len, extend_len = (column[chunks] for column in columns)
        keys = (rid, rank[forward], attempt)
        begins = np.any([np.diff(key, prepend=-2) != 0 for key in keys], axis=0)
        first = np.flatnonzero(begins)
        lengths = np.diff(np.append(first, len(rid)))
        number = np.arange(len(rid)) - np.repeat(first, lengths) + 1
        last = (role == Role.LAST.value) | (role == Role.WHOLE.value)
        ended = np.logical_or.reduceat(last, first) if len(first) else np.zeros(0, dtype=np.bool_)
        of = np.repeat(np.where(ended, lengths, -1), lengths)
        order = np.lexsort((rid, forward))
        columns = (forward, rid, number, of, prefix_len, extend_len)
        return cls(*(column[order] for column in columns))

    def __len__(self) -> int:
        return len(self.forward)

    def bounds(self, forward: Ints) -> tuple[Ints, Ints]:
        """Where the chunks of each forward begin and end."""
        first = np.searchsorted(self.forward, forward, side="left")
        return first, np.searchsorted(self.forward, forward, side="right")

    def of_forward(self, forward: int) -> slice:
        """Where the chunks of one forward lie."""
        return slice(*np.searchsorted(self.forward, [forward, forward + 1]).tolist())
