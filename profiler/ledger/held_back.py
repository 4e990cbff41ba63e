"""When requests were held back: forwards that they sat out or were deferred in, times they gave KV back."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.observer import EventKind
from profiler.forward_table import ForwardTable
from profiler.ledger.parts import PartKind
from profiler.tables import TraceLike, frame

__all__ = ["HeldBack", "held_back"]

Ints = NDArray[np.int64]

_IN_FORWARD = {EventKind.SIT_OUT: PartKind.SIT_OUT, EventKind.DEFER: PartKind.DEFERRED}
_GIVEN_BACK = {EventKind.RETRACT: PartKind.RETRACTED, EventKind.PREEMPT: PartKind.PREEMPTED}
_KINDS = [kind.value for kind in (*_IN_FORWARD, *_GIVEN_BACK)]


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Columns in order of rid. A forward is a position in the `ForwardTable`."""

    rid: Ints  # (held,) requests without a row in `forward`
    forward: Ints
    kind: Ints  # SIT_OUT or DEFERRED
    gave_rid: Ints  # (gave,) requests that gave their KV back
    gave_ns: Ints
    gave_attempt: Ints  # that ended with it; -1 is unknown
    gave_kind: Ints  # RETRACTED or PREEMPTED

    @property
    def rids(self) -> Ints:
        """Everyone concerned, ascending."""
        return np.union1d(self.rid, self.gave_rid)

    def forwards_of(self, rid: int) -> dict[int, PartKind]:
        """The forwards that a request was held back in; sitting out comes first."""
        mine = slice(*np.searchsorted(self.rid, [rid, rid + 1]).tolist())
        kinds = zip(self.forward[mine].tolist(), self.kind[mine].tolist(), strict=True)
        return {forward: PartKind(kind) for forward, kind in sorted(kinds, reverse=True)}

    def given_back_by(self, rid: int) -> list[tuple[int, int, PartKind]]:
        """When a request gave its KV back, the attempt that ended with it, and why."""
        mine = slice(*np.searchsorted(self.gave_rid, [rid, rid + 1]).tolist())
        columns = (self.gave_ns[mine], self.gave_attempt[mine], self.gave_kind[mine])
        told = zip(*(column.tolist() for column in columns), strict=True)
        return [(gave_ns, attempt, PartKind(kind)) for gave_ns, attempt, kind in told]


def held_back(trace: TraceLike, forwards: ForwardTable) -> HeldBack:
    """What a trace's events tell."""
    events = frame(trace, "events", ["t_ns", "forward_id", "rid", "attempt", "kind"])
    events = events.filter(pl.col("kind").is_in(_KINDS) & pl.col("rid").is_not_null())
    events = events.sort("rid", "t_ns", maintain_order=True)
    in_forward = pl.DataFrame(
        {"forward_id": forwards.forward_id, "position": np.arange(len(forwards), dtype=np.int64)},
        {"forward_id": pl.UInt32, "position": pl.Int64},
    )
    held = events.filter(pl.col("kind").is_in([kind.value for kind in _IN_FORWARD]))
    held = held.join(in_forward, on="forward_id", maintain_order="left")
    gave = events.filter(pl.col("kind").is_in([kind.value for kind in _GIVEN_BACK]))
    gave = gave.filter(pl.col("t_ns").is_not_null())
    kinds = {event.value: part.value for event, part in (_IN_FORWARD | _GIVEN_BACK).items()}
    return HeldBack(
        rid=_ints(held["rid"]),
        forward=_ints(held["position"]),
        kind=_ints(held["kind"].replace_strict(kinds, return_dtype=pl.Int64)),
        gave_rid=_ints(gave["rid"]),
        gave_ns=_ints(gave["t_ns"]),
        gave_attempt=_ints(gave["attempt"].cast(pl.Int64).fill_null(-1)),
        gave_kind=_ints(gave["kind"].replace_strict(kinds, return_dtype=pl.Int64)),
    )


def _ints(column: pl.Series) -> Ints:
    return column.cast(pl.Int64).to_numpy()
