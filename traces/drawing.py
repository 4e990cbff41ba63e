"""What an exporter draws: spans, instants and counters on tracks, and arrows between spans.

Times are nanoseconds of the trace. Names and arguments are data: an exporter escapes them as its format asks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Counter", "Flow", "Instant", "Item", "Slice", "Track"]

Arguments = Mapping[str, Any]  # what JSON holds; whoever draws leaves out what is unknown


@dataclass(frozen=True, slots=True)
class Track:
    """A row of the picture, within the group of its rank. `order` tells it from all others of the rank."""

    rank: int
    order: int  # from the top
    name: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Slice:
    """Something that lasted. On a track slices come in order of start, of equal starts the longer first."""

    track: Track
    name: str
    start_ns: int
    end_ns: int
    args: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Instant:
    """Something that happened at one moment."""

    track: Track
    name: str
    t_ns: int
    args: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counter:
    """Values of one of a rank's counters, which hold until its next ones."""

    rank: int
    name: str
    t_ns: int
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Flow:
    """An arrow from a span to a span. Each end is a track and a moment inside its span."""

    number: int  # its own
    name: str
    source: Track
    source_ns: int
    target: Track
    target_ns: int


Item = Slice | Instant | Counter | Flow
