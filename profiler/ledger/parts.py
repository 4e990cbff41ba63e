"""What a wait is made of: the kinds of its parts, and one gap taken apart. docs/metrics.md defines each."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from profiler.culprits import Culprit

__all__ = ["DEVICE_KINDS", "HOST_KINDS", "OWN_KINDS", "Chunk", "GapDetail", "GapForward", "Part", "PartKind"]


class PartKind(IntEnum):
    """What a stretch of a gap went to. The kinds share no instant, so the parts of a gap sum to it."""

    OWN_DECODE = 0  # device time of the own forward, less what others' prompts cost in it
    OWN_OTHER = 1  # device time of its other decode rows: they yield other tokens, or none
    RECOMPUTE = 2  # its own chunks, computed anew after it gave its KV back
    OTHERS_PREFILL = 3  # others' chunks, in EXTEND forwards or beside its own chunk
    OTHERS_MIXED = 4  # MIXED forwards that it has no row in
    OTHERS_DECODE = 5  # DECODE forwards that it has no row in
    MIXED_EXTRA = 6  # what others' chunks cost in MIXED forwards that it decodes in
    MIXED_UNKNOWN = 7  # MIXED forwards that it decodes in, where the extra is not known
    SIT_OUT = 8  # forwards that it sat out for lack of KV
    RETRACTED = 9  # forwards between giving its KV back for lack of KV and its first chunk after that
    DEFERRED = 10  # forwards before which the prefill-decode interval deferred its chunk
    PREEMPTED = 11  # forwards between giving way to a more urgent request and its first chunk after that
    PLAN = 12  # the host planned
    LAUNCH = 13  # the host launched
    RESULT = 14  # the host processed a result
    WAIT = 15  # a forward was launched and not processed, and neither device nor host was busy
    IDLE = 16  # nothing was planned, launched, run or processed
    UNTOLD = 17  # the trace lacks the times that would tell


DEVICE_KINDS = tuple(kind for kind in PartKind if kind <= PartKind.PREEMPTED)
HOST_KINDS = tuple(kind for kind in PartKind if kind > PartKind.PREEMPTED)
OWN_KINDS = (PartKind.OWN_DECODE, PartKind.OWN_OTHER, PartKind.RECOMPUTE)  # charged to nobody else


@dataclass(frozen=True, slots=True)
class Chunk:
    """Part of a prompt that one forward computed."""

    rid: int
    name: str
    number: int  # k of k/n
    of: int | None
    prefix_len: int
    extend_end: int
    forward_id: int
    start_ns: int
    end_ns: int
    in_gap_ns: int  # its share of the gap


@dataclass(frozen=True, slots=True)
class GapForward:
    """A forward that took device time of a gap."""

    forward_id: int
    mode: str | None
    start_ns: int
    end_ns: int
    in_gap_ns: int
    extend_tokens: int | None
    decode_tokens: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """One line of a ledger."""

    kind: PartKind
    part_ns: int
    forward_id: int | None = None  # None for what no forward holds: HOST_KINDS
    chunk: Chunk | None = None  # of another request, if the time is charged to it; its in_gap_ns is part_ns


@dataclass(frozen=True, slots=True)
class GapDetail:
    """One gap of a request, and what filled it. The `part_ns` of `parts` sum to `gap_ns`."""

    rid: int
    name: str
    token_index: int
    start_ns: int
    end_ns: int
    median_gap_ns: float | None
    own_forward_id: int
    own_mode: str | None
    own_start_ns: int | None
    forwards: tuple[GapForward, ...]  # in time order, the own one last
    culprits: tuple[Culprit, ...]  # most device time first
    chunks: tuple[Chunk, ...]  # of the culprits, in time order; their in_gap_ns sum to the culprits'
    costliest: Chunk | None
    mixed_extra_ns: int | None
    mixed_extra_estimator: str | None
    parts: tuple[Part, ...] = ()  # device time in order of forwards, then what no forward holds by kind
    split: str = "tokens"  # what a forward shared by several chunks was split by

    @property
    def gap_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.start_ns

    @property
    def late_ns(self) -> int:
        """By how much the token came later than its own decode forwards needed."""
        return self.gap_ns - self.sum_ns((PartKind.OWN_DECODE, PartKind.OWN_OTHER))

    def sum_ns(self, kinds: Iterable[PartKind]) -> int:
        """Sum of the parts of these kinds."""
        wanted = frozenset(kinds)
        return sum(part.part_ns for part in self.parts if part.kind in wanted)
