"""What the time to a first token is made of: the kinds of its parts, one request's, and those of all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from engine.batch import StopReason
from profiler.culprits import Culprit
from profiler.ledger.parts import Chunk

__all__ = ["BlockedBehind", "TtftCost", "TtftKind", "TtftLedger", "TtftPart", "TtftSum", "TtftTotals"]


class TtftKind(IntEnum):
    """What a stretch of a time to first token went to. The kinds share no instant, so the parts sum to it."""

    QUEUED = 0  # before the first round that could admit it: the one under way when it arrived
    BLOCKED = 1  # rounds that did not admit it
    DEFERRED = 2  # rounds that the prefill-decode interval kept prompts out of
    OWN_CHUNKS = 3  # device time of its own chunks
    OWN_DECODE = 4  # forwards that it decodes in already, launched ahead of its first token's result
    OTHERS_PREFILL = 5  # others' chunks beside its own, or in EXTEND forwards
    OTHERS_MIXED = 6  # MIXED forwards that it has no row in
    OTHERS_DECODE = 7  # DECODE forwards that it has no row in
    RETRACTED = 8  # forwards between giving its KV back and its first chunk after that
    PLAN = 9  # the host planned
    LAUNCH = 10  # the host launched
    RESULT = 11  # the host processed a result
    WAIT = 12  # a forward was launched and not processed, and neither device nor host was busy
    IDLE = 13  # nothing was planned, launched, run or processed
    UNTOLD = 14  # the trace lacks what would tell


@dataclass(frozen=True, slots=True)
class TtftPart:
    """One line of a ledger."""

    kind: TtftKind
    part_ns: int
    forward_id: int | None = None  # whose round or device time it is; None for what no forward holds
    budget: StopReason | None = None  # of BLOCKED: what ended admission; None where the round does not say
    behind_rid: int | None = None  # of BLOCKED: the request that admission stopped at, if that is another
    behind_name: str | None = None
    chunk: Chunk | None = None  # of another request, if the time is charged to it; its in_gap_ns is part_ns


@dataclass(frozen=True, slots=True)
class TtftLedger:
    """The time to first token of a request, taken apart. The `part_ns` of `parts` sum to `ttft_ns`."""

    rid: int
    name: str
    arrival_ns: int
    first_token_ns: int
    parts: tuple[TtftPart, ...]  # the queue in time order, then device time, then what no forward holds
    split: str  # what a forward shared by several chunks was split by

    @property
    def ttft_ns(self) -> int:
        """Its length."""
        return self.first_token_ns - self.arrival_ns

    @property
    def holders(self) -> tuple[Culprit, ...]:
        """Whose chunks had the budget while it was blocked; the most time first."""
        return self._charged((TtftKind.BLOCKED,))

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Whom the time is charged to, for the budget or for the device; the most time first."""
        return self._charged(TtftKind)

    def sum_ns(self, kinds: Iterable[TtftKind]) -> int:
        """Sum of the parts of these kinds."""
        wanted = frozenset(kinds)
        return sum(part.part_ns for part in self.parts if part.kind in wanted)

    def _charged(self, kinds: Iterable[TtftKind]) -> tuple[Culprit, ...]:
        wanted = frozenset(kinds)
        shares: dict[int, int] = {}
        names: dict[int, str] = {}
        for part in self.parts:
            if part.chunk is not None and part.kind in wanted:
                shares[part.chunk.rid] = shares.get(part.chunk.rid, 0) + part.part_ns
                names[part.chunk.rid] = part.chunk.name
        ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        return tuple(Culprit(rid, names[rid], ns) for rid, ns in ranked)


@dataclass(frozen=True, slots=True)
class TtftSum:
    """The ledger of one request, summed."""

    rid: int
    name: str
    arrival_ns: int
    first_token_ns: int
    by_kind: Mapping[TtftKind, int]  # every kind; sums to ttft_ns
    by_budget: Mapping[
        StopReason | None, int
    ]  # what its BLOCKED time was blocked by; None: rounds do not say

    @property
    def ttft_ns(self) -> int:
        """Its time to first token."""
        return self.first_token_ns - self.arrival_ns


@dataclass(frozen=True, slots=True)
class TtftCost:
    """What the chunks of one request cost the first tokens of others."""

    rid: int
    name: str
    cost_ns: int  # Σ over all others
    budget_ns: int  # of it, for the budget that they were blocked by; the rest is for the device


@dataclass(frozen=True, slots=True)
class BlockedBehind:
    """How long others were BLOCKED in rounds whose admission stopped at one request."""

    rid: int
    name: str
    blocked_ns: int


@dataclass(frozen=True, slots=True)
class TtftTotals:
    """The ledgers of all first tokens of a trace, summed."""

    requests: int
    waiting_ns: int  # Σ ttft_ns
    by_kind: Mapping[TtftKind, int]  # every kind; sums to waiting_ns
    by_budget: Mapping[StopReason | None, int]  # sums to by_kind[BLOCKED]; None: rounds do not say
    culprits: tuple[TtftCost, ...]  # largest cost_ns first
    behind: tuple[BlockedBehind, ...]  # largest blocked_ns first
    worst: tuple[TtftSum, ...]  # largest ttft_ns first
    split: str  # what a forward shared by several chunks was split by
