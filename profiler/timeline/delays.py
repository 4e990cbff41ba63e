"""When requests were held back: without KV for their next token, retracted, or deferred."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.observer import EventKind
from profiler.tables import TraceLike, frame

__all__ = ["Delays", "delays"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Delays:
    """Times, ascending, by request."""

    held: dict[int, Ints] = field(default_factory=dict)
    deferred: dict[int, Ints] = field(default_factory=dict)


def delays(trace: TraceLike) -> Delays:
    """From a trace's events."""
    events = frame(trace, "events").filter(pl.col("rid").is_not_null() & pl.col("t_ns").is_not_null())
    return Delays(
        held=_times(events, EventKind.SIT_OUT, EventKind.RETRACT), deferred=_times(events, EventKind.DEFER)
    )


def _times(events: pl.DataFrame, *kinds: EventKind) -> dict[int, Ints]:
    chosen = events.filter(pl.col("kind").is_in([kind.value for kind in kinds])).sort("t_ns")
    return {int(rid): part["t_ns"].to_numpy() for (rid,), part in chosen.group_by("rid", maintain_order=True)}
