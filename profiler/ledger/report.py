"""What the ledger says of a whole trace: sums by cause, the worst tokens, who lost time and who took it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.culprits import Culprit
from profiler.ledger.parts import PartKind

__all__ = ["CausesOverTime", "ChunkCost", "CulpritCost", "StallGroup", "StallReport", "Victim"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StallGroup:
    """Tokens late at one instant for one cause: gaps with the same start, own forward and cause."""

    start_ns: int
    end_ns: int
    own_forward_id: int
    cause: PartKind  # the largest part but for its own decode forwards
    rids: tuple[int, ...]  # who waited, ascending
    names: tuple[str, ...]
    token_index: int  # of the first of `rids`: with it, the gap that stands for all of them
    gap_ns: int  # of each
    late_ns: int  # of the one that stands for all
    lost_ns: int  # Σ late_ns of all
    by_kind: Mapping[PartKind, int]  # of the one that stands for all; sums to gap_ns
    culprits: tuple[Culprit, ...]  # of the same, most time first

    @property
    def requests(self) -> int:
        """How many waited."""
        return len(self.rids)


@dataclass(frozen=True, slots=True)
class Victim:
    """What one request lost between its tokens."""

    rid: int
    name: str
    gaps: int
    waiting_ns: int  # Σ gap_ns
    late_ns: int  # Σ late_ns
    longest_ns: int
    longest_token_index: int


@dataclass(frozen=True, slots=True)
class CulpritCost:
    """What one request's chunks cost others, between their tokens."""

    rid: int
    name: str
    chunks: int  # that cost anybody anything
    cost_ns: int  # Σ over the gaps of all others
    longest_ns: int  # the most that one of them took of one gap
    device_ns: int | None  # device time of its chunks, whoever waited


@dataclass(frozen=True, slots=True)
class ChunkCost:
    """What one chunk cost others."""

    rid: int
    name: str
    forward_id: int
    number: int  # k of k/n
    of: int | None
    prefix_len: int
    extend_end: int
    device_ns: int | None  # its share of its forward
    cost_ns: int  # Σ over the gaps of all others
    gaps: int  # in which it cost something


@dataclass(frozen=True, slots=True)
class CausesOverTime:
    """Waiting by kind in equal spans of time; at each instant every request that waits counts."""

    edges_ns: Ints  # (spans + 1,)
    waiting_ns: Ints  # (spans, kinds) in order of PartKind


@dataclass(frozen=True, slots=True)
class StallReport:
    """The ledger of all gaps of a trace; everything is a sum of the same parts."""

    gaps: int
    waiting_ns: int  # Σ gap_ns
    late_ns: int  # Σ late_ns
    by_kind: Mapping[PartKind, int]  # every kind; sums to waiting_ns
    longest: StallGroup | None  # the longest gap, and whoever shared it
    groups: tuple[StallGroup, ...]  # those of the largest late_ns and of the largest lost_ns; by late_ns
    victims: tuple[Victim, ...]  # largest late_ns first
    culprits: tuple[CulpritCost, ...]  # largest cost_ns first
    chunks: tuple[ChunkCost, ...]  # largest cost_ns first
    over_time: CausesOverTime
    split: str  # what a forward shared by several chunks was split by
    mixed_extra_estimator: str | None  # None where no forward has a mixed extra
