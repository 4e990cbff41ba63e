"""When requests were held back: without KV for their next token, retracted, preempted, or deferred."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.observer import EventKind
from profiler.tables import TraceLike, frame

__all__ = ["Delays", "delays"]

Ints = NDArray[np.int64]

_HELD, _DEFERRED = 0, 1
_KINDS = {
    EventKind.SIT_OUT: _HELD,
    EventKind.RETRACT: _HELD,
    EventKind.PREEMPT: _HELD,
    EventKind.DEFER: _DEFERRED,
}


@dataclass(frozen=True, slots=True)
class Delays:
    """(delays,) columns in order of rid, then of time."""

    rid: Ints
    t_ns: Ints
    kind: NDArray[np.uint8]

    def held(self, rid: int) -> Ints:
        """Times at which a request found no KV or gave its own back, ascending."""
        return self._of(rid, _HELD)

    def deferred(self, rid: int) -> Ints:
        """Times at which its decode was deferred, ascending."""
        return self._of(rid, _DEFERRED)

    def _of(self, rid: int, kind: int) -> Ints:
        mine = slice(*np.searchsorted(self.rid, [rid, rid + 1]))
        times: Ints = self.t_ns[mine][self.kind[mine] == kind]
        return times


def delays(trace: TraceLike) -> Delays:
    """From a trace's events."""
    kinds = pl.DataFrame(
        {"kind": [kind.value for kind in _KINDS], "held": list(_KINDS.values())},
        {"kind": pl.UInt8, "held": pl.UInt8},
    )
    found = (
        frame(trace, "events")
        .filter(pl.col("rid").is_not_null() & pl.col("t_ns").is_not_null())
        .join(kinds, on="kind")
        .sort("rid", "t_ns")
    )
    return Delays(found["rid"].cast(pl.Int64).to_numpy(), found["t_ns"].to_numpy(), found["held"].to_numpy())
