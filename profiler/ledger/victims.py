"""What each request waited, and by how much its tokens were late, counted while a trace is gone through."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["VictimSums"]

Ints = NDArray[np.int64]


class VictimSums:
    """(rids,) sums by rid; `longest_ns` is -1 of a request without a gap."""

    def __init__(self) -> None:
        self.gaps = np.zeros(0, dtype=np.int64)
        self.waiting_ns = np.zeros(0, dtype=np.int64)
        self.late_ns = np.zeros(0, dtype=np.int64)
        self.longest_ns = np.full(0, -1, dtype=np.int64)
        self.longest_token_index = np.zeros(0, dtype=np.int64)

    def add(self, rid: Ints, token_index: Ints, gap_ns: Ints, late_ns: Ints) -> None:
        """Count gaps, given in order of rid, then of tokens."""
        if not len(rid):
            return
        self._grow(int(rid[-1]))
        first = np.flatnonzero(np.diff(rid, prepend=-1))
        who, counts = rid[first], np.diff(np.append(first, len(rid)))
        self.gaps[who] += counts
        self.waiting_ns[who] += np.add.reduceat(gap_ns, first)
        self.late_ns[who] += np.add.reduceat(late_ns, first)
        longest = np.maximum.reduceat(gap_ns, first)
        number = np.repeat(np.arange(len(who)), counts)
        at = np.flatnonzero(gap_ns == longest[number])[::-1]  # the first of equals is written last
        index = np.zeros(len(who), dtype=np.int64)
        index[number[at]] = token_index[at]
        sooner = (longest == self.longest_ns[who]) & (index < self.longest_token_index[who])
        better = np.flatnonzero((longest > self.longest_ns[who]) | sooner)
        self.longest_ns[who[better]] = longest[better]
        self.longest_token_index[who[better]] = index[better]

    def worst(self, top: int) -> Ints:
        """The requests with the largest late_ns, of equals the lowest rid."""
        some = np.flatnonzero(self.late_ns > 0)
        return some[np.argsort(-self.late_ns[some], kind="stable")][:top]

    def _grow(self, rid: int) -> None:
        more = rid + 1 - len(self.gaps)
        if more > 0:
            more = max(more, len(self.gaps))
            for name in ("gaps", "waiting_ns", "late_ns", "longest_token_index"):
                setattr(self, name, np.append(getattr(self, name), np.zeros(more, dtype=np.int64)))
            self.longest_ns = np.append(self.longest_ns, np.full(more, -1, dtype=np.int64))
