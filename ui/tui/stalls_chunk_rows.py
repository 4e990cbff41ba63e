"""Chunks that took of a gap, as rows: one each for the request that is looked at, one for each other."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from profiler.ledger.parts import Chunk, GapDetail

__all__ = ["ChunkRow", "blamed_forwards", "chunk_rows", "chunks_of"]


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """Chunks of one request that follow each other."""

    chunks: tuple[Chunk, ...]

    @property
    def in_gap_ns(self) -> int:
        """What they took of the gap."""
        return sum(chunk.in_gap_ns for chunk in self.chunks)


def chunks_of(gap: GapDetail) -> tuple[Chunk, ...]:
    """The chunks in order of time, each once with all that it took of the gap."""
    merged: dict[tuple[int, int], Chunk] = {}
    for chunk in gap.chunks:
        key = (chunk.forward_id, chunk.rid)
        before = merged.get(key)
        merged[key] = (
            chunk if before is None else replace(chunk, in_gap_ns=before.in_gap_ns + chunk.in_gap_ns)
        )
    return tuple(merged.values())


def chunk_rows(chunks: tuple[Chunk, ...], chosen: int, room: int) -> list[ChunkRow]:
    """One row a chunk where there is room; else requests other than the chosen chunk's take one row each."""
    if len(chunks) <= room:
        return [ChunkRow((chunk,)) for chunk in chunks]
    rid = chunks[chosen].rid
    rows: list[ChunkRow] = []
    for owner, run in groupby(chunks, key=lambda chunk: chunk.rid):
        there = tuple(run)
        rows += [ChunkRow((chunk,)) for chunk in there] if owner == rid else [ChunkRow(there)]
    return rows


def blamed_forwards(gap: GapDetail, chunks: Iterable[Chunk]) -> tuple[int, int]:
    """How many forwards are blamed, and how many of them lie inside the gap from start to end."""
    spans = {chunk.forward_id: (chunk.start_ns, chunk.end_ns) for chunk in chunks}
    inside = sum(gap.start_ns <= start and end <= gap.end_ns for start, end in spans.values())
    return len(spans), inside
