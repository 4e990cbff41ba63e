"""What the chunks of one request cost whom, chunk by chunk."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from profiler.ledger.parts import Chunk, GapDetail

__all__ = ["ChunkToll", "VictimShare", "chunk_tolls", "costliest", "victims_of"]


@dataclass(frozen=True, slots=True)
class VictimShare:
    """What one chunk cost one request that waited."""

    rid: int
    name: str
    cost_ns: int
    gaps: int  # in which it cost something


@dataclass(frozen=True, slots=True)
class ChunkToll:
    """One chunk and whoever waited for it, most time first; their costs sum to `cost_ns`."""

    chunk: Chunk  # its in_gap_ns is that of one of the gaps
    victims: tuple[VictimShare, ...]

    @property
    def cost_ns(self) -> int:
        """What it cost all of them."""
        return sum(victim.cost_ns for victim in self.victims)


def chunk_tolls(gaps: Iterable[GapDetail], rid: int) -> tuple[ChunkToll, ...]:
    """What the chunks of `rid` took of some gaps, in time order of chunks."""
    chunks: dict[int, Chunk] = {}
    shares: dict[int, dict[int, VictimShare]] = {}
    for gap in gaps:
        for forward_id, ns in _took(gap, rid, chunks).items():
            of_chunk = shares.setdefault(forward_id, {})
            before = of_chunk.get(gap.rid, VictimShare(gap.rid, gap.name, 0, 0))
            of_chunk[gap.rid] = replace(before, cost_ns=before.cost_ns + ns, gaps=before.gaps + 1)
    ordered = sorted(chunks.values(), key=lambda chunk: (chunk.start_ns, chunk.forward_id))
    return tuple(ChunkToll(chunk, _ranked(shares[chunk.forward_id].values())) for chunk in ordered)


def costliest(tolls: Sequence[ChunkToll], most: int) -> list[ChunkToll]:
    """Those that cost most, still in time order."""
    ranked = sorted(range(len(tolls)), key=lambda at: (-tolls[at].cost_ns, at))
    return [tolls[at] for at in sorted(ranked[:most])]


def victims_of(tolls: Iterable[ChunkToll]) -> list[tuple[str, int]]:
    """Who waited for any of the chunks, and what they cost each in nanoseconds; most time first."""
    costs: dict[int, int] = {}
    names: dict[int, str] = {}
    for victim in (victim for toll in tolls for victim in toll.victims):
        names[victim.rid] = victim.name
        costs[victim.rid] = costs.get(victim.rid, 0) + victim.cost_ns
    return [(names[rid], costs[rid]) for rid in sorted(costs, key=lambda rid: (-costs[rid], rid))]


def _took(gap: GapDetail, rid: int, chunks: dict[int, Chunk]) -> dict[int, int]:
    """What each forward's chunk of `rid` took of a gap; `chunks` gains those it lacks."""
    took: dict[int, int] = {}
    for chunk in gap.chunks:
        if chunk.rid == rid:
            chunks.setdefault(chunk.forward_id, chunk)
            took[chunk.forward_id] = took.get(chunk.forward_id, 0) + chunk.in_gap_ns
    return took


def _ranked(shares: Iterable[VictimShare]) -> tuple[VictimShare, ...]:
    return tuple(sorted(shares, key=lambda share: (-share.cost_ns, share.rid)))
