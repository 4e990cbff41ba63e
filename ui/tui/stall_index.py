"""The listed stalls of a trace in time order, found by moment or range without looking at all of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode

__all__ = ["StallIndex"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StallIndex:
    """Stalls by start. `latest_ns` is the latest end of a stall and all before it.

    `mixed` ones have no device time of others in them, only a mixed forward of their own.
    """

    frame: pl.DataFrame
    start_ns: Ints
    end_ns: Ints
    latest_ns: Ints
    mixed: NDArray[np.bool_]

    @classmethod
    def of(cls, stalls: pl.DataFrame) -> "StallIndex":
        """From the table of `profiler.stalls.stalls`."""
        frame = stalls.sort("start_ns", "rid")
        end_ns = frame["end_ns"].to_numpy()
        own_alone = (frame["own_mode"] == ForwardMode.MIXED.value) & (frame["others_ns"] == 0)
        return cls(
            frame=frame,
            start_ns=frame["start_ns"].to_numpy(),
            end_ns=end_ns,
            latest_ns=np.maximum.accumulate(end_ns),
            mixed=own_alone.fill_null(False).to_numpy(),
        )

    def at(self, t_ns: int) -> list[dict[str, Any]]:
        """The stalls that hold a moment, longest first."""
        found = self._near(t_ns, t_ns + 1)
        inside = found[(self.start_ns[found] <= t_ns) & (t_ns < self.end_ns[found])]
        rows = [self.frame.row(int(i), named=True) for i in inside]
        return sorted(rows, key=lambda row: (-row["gap_ns"], row["rid"]))

    def longest_in(self, start_ns: int, end_ns: int) -> dict[str, Any] | None:
        """The longest stall that reaches into a range."""
        found = self._near(start_ns, end_ns)
        found = found[self.end_ns[found] > start_ns]
        if not len(found):
            return None
        longest = found[np.argmax(self.end_ns[found] - self.start_ns[found])]
        return self.frame.row(int(longest), named=True)

    def longest_by_rid(self) -> dict[int, int]:
        """Length in nanoseconds of each request's longest stall; a request without one is not there."""
        return dict(self.frame.group_by("rid").agg(pl.col("gap_ns").max()).iter_rows())

    def covered(self, start_ns: int, end_ns: int, columns: int, *, mixed: bool) -> NDArray[np.bool_]:
        """Which of so many columns of a range hold a part of a stall, of the mixed ones or of the others."""
        scale = columns / max(end_ns - start_ns, 1)
        chosen = self.mixed == mixed
        first = np.floor((self.start_ns[chosen] - start_ns) * scale).astype(np.int64)
        after = np.ceil((self.end_ns[chosen] - start_ns) * scale).astype(np.int64)
        steps = np.zeros(columns + 1, dtype=np.int64)
        np.add.at(steps, np.clip(first, 0, columns), 1)
        np.add.at(steps, np.clip(np.maximum(after, first + 1), 0, columns), -1)
        return np.asarray(np.cumsum(steps)[:-1] > 0)

    def _near(self, start_ns: int, end_ns: int) -> Ints:
        """Positions that may reach into [start_ns, end_ns): all that do, and few others."""
        first = int(np.searchsorted(self.latest_ns, start_ns, side="right"))
        after = int(np.searchsorted(self.start_ns, end_ns, side="left"))
        return np.arange(first, max(after, first))
