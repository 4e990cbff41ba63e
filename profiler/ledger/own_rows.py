"""The rows that a gap's ledger asks for one by one: all that gave no token, and all of prompts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch import Outcome, Role
from profiler.request_rows import RequestRows

__all__ = ["SpecialRows"]

Ints = NDArray[np.int64]
_COLUMNS = ("forward", "rid", "attempt", "role", "prefix_len", "extend_len")


@dataclass(frozen=True, slots=True)
class SpecialRows:
    """Rows of prompts, and rows that gave no token, in order of rid, then of forwards.

    `forward` is a position in the `ForwardTable`. A length that is unknown is 0, an attempt -1.
    """

    forward: Ints
    rid: Ints
    attempt: Ints
    role: Ints
    prefix_len: Ints
    extend_len: Ints

    @classmethod
    def of(cls, rows: RequestRows) -> "SpecialRows":
        """Those of a trace."""
        at = np.flatnonzero(special(rows.role, rows.outcome))
        rid = rows.rids[np.searchsorted(rows.bounds, at, side="right") - 1]
        columns = (rows.attempt, rows.role, rows.prefix_len, rows.extend_len)
        return cls.sorted(rows.forward[at], rid, *(column[at] for column in columns))

    @classmethod
    def sorted(cls, *columns: NDArray[np.integer]) -> "SpecialRows":
        """From columns in order of `__init__`, in any order of rows."""
        forward, rid, attempt, role, prefix_len, extend_len = (c.astype(np.int64) for c in columns)
        prefix_len, extend_len = np.maximum(prefix_len, 0), np.maximum(extend_len, 0)
        order = np.lexsort((forward, rid))
        columns = (forward, rid, attempt, role, prefix_len, extend_len)
        return cls(*(column[order] for column in columns))

    @property
    def is_chunk(self) -> NDArray[np.bool_]:
        """(rows,) whether each is of a prompt."""
        return self.role <= Role.LAST.value

    def of_request(self, rid: int) -> slice:
        """Where a request's rows lie."""
        return slice(*np.searchsorted(self.rid, [rid, rid + 1]).tolist())


def special(role: NDArray[np.uint8], outcome: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """(rows,) whether each is of a prompt, or gave no token."""
    kept: NDArray[np.bool_] = (role <= Role.LAST.value) | (outcome != Outcome.EMITTED.value)
    return kept
