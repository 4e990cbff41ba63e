"""One gap taken apart, instant by instant."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode, Role
from profiler.forward_table import UNKNOWN, ForwardTable
from profiler.ledger.chunk_rows import ChunkRows
from profiler.ledger.held_back import HeldBack
from profiler.ledger.parts import HOST_KINDS, PartKind
from profiler.ledger.rank_time import RankTime
from profiler.ledger.split import Split

__all__ = ["LedgerSource", "OwnRow", "Piece", "Span", "gap_pieces"]

_OTHERS = {ForwardMode.EXTEND.value: PartKind.OTHERS_PREFILL, ForwardMode.MIXED.value: PartKind.OTHERS_MIXED}


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """What the ledgers of a trace's gaps are made from. Forwards are positions in `forwards`."""

    forwards: ForwardTable
    times: dict[int, RankTime]  # by rank
    chunks: ChunkRows
    split: Split
    mixed_extra_ns: NDArray[np.int64]  # (forwards,) UNKNOWN where there is none
    held: HeldBack


@dataclass(frozen=True, slots=True)
class Span:
    """A gap: whose, on which rank, from when to when, and the forward that ended it."""

    rid: int
    rank: int
    start_ns: int
    end_ns: int
    own: int


@dataclass(frozen=True, slots=True)
class OwnRow:
    """A row of the request whose gap it is."""

    forward: int
    role: int
    attempt: int

    @property
    def is_chunk(self) -> bool:
        """Whether it computed some of its prompt."""
        return self.role <= Role.LAST.value


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of device time, or a sum of host time, and what it went to."""

    kind: PartKind
    ns: int
    forward: int = UNKNOWN
    chunk: int = UNKNOWN  # whose it is, as `ChunkRows` has it
    start_ns: int = 0  # of the stretch that it is a share of
    end_ns: int = 0


def gap_pieces(source: LedgerSource, gap: Span, rows: Sequence[OwnRow]) -> Iterator[Piece]:
    """Device time in order of forwards, then host time by kind; the pieces sum to the gap.

    `rows` are those of the request from the earlier token's to the last that may share time with the gap, in
    order of forwards.
    """
    time = source.times[gap.rank]
    own = {row.forward: row for row in rows}
    held = source.held.forwards_of(gap.rid)
    spells = _spells(source, gap, rows)
    first, last = time.touching(gap.start_ns, gap.end_ns)
    for at in range(first, last):
        forward = int(time.position[at])
        start_ns = max(int(time.device.start_ns[at]), gap.start_ns)
        end_ns = min(int(time.device.end_ns[at]), gap.end_ns)
        row = own.get(forward)
        if row is None:
            yield from _without_row(source, forward, start_ns, end_ns, held.get(forward), spells)
        elif row.is_chunk:
            yield from _with_chunk(source, gap.rid, forward, start_ns, end_ns)
        else:
            yield from _with_decode(source, forward, start_ns, end_ns, is_own=forward == gap.own)
    yield from _host(time, gap)


def _spells(source: LedgerSource, gap: Span, rows: Sequence[OwnRow]) -> list[tuple[int, int]]:
    """From each time that it gave its KV back to the start of its next chunk of a later attempt."""
    spells = []
    for gave_ns, attempt in source.held.given_back_by(gap.rid):
        if gap.start_ns <= gave_ns <= gap.end_ns:
            starts = [
                int(source.forwards.start_ns[row.forward])
                for row in rows
                if row.is_chunk and (row.attempt > attempt if attempt >= 0 else True)
            ]
            spells.append((gave_ns, min((s for s in starts if s >= gave_ns), default=gap.end_ns)))
    return spells


def _without_row(
    source: LedgerSource,
    forward: int,
    start_ns: int,
    end_ns: int,
    held: PartKind | None,
    spells: Sequence[tuple[int, int]],
) -> Iterator[Piece]:
    kind = _OTHERS.get(int(source.forwards.mode[forward]), PartKind.OTHERS_DECODE)
    if held is not None:
        yield from _shared(source, held, forward, start_ns, end_ns)
        return
    for begin, end, retracted in _cut(start_ns, end_ns, spells):
        yield from _shared(source, PartKind.RETRACTED if retracted else kind, forward, begin, end)


def _cut(start_ns: int, end_ns: int, spells: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, bool]]:
    """A stretch cut where spells begin and end, and whether each piece lies in one."""
    marks = {start_ns, end_ns, *(t for spell in spells for t in spell if start_ns < t < end_ns)}
    times = sorted(marks)
    for begin, end in pairwise(times):
        yield begin, end, any(since <= begin < until for since, until in spells)


def _with_chunk(source: LedgerSource, rid: int, forward: int, start_ns: int, end_ns: int) -> Iterator[Piece]:
    chunks = _chunks(source, forward)
    for chunk, ns in zip(chunks, source.split.of(end_ns - start_ns, chunks), strict=True):
        if source.chunks.rid[chunk] == rid:
            yield Piece(PartKind.RECOMPUTE, ns, forward, UNKNOWN, start_ns, end_ns)
        else:
            yield Piece(PartKind.OTHERS_PREFILL, ns, forward, chunk, start_ns, end_ns)


def _with_decode(
    source: LedgerSource, forward: int, start_ns: int, end_ns: int, *, is_own: bool
) -> Iterator[Piece]:
    alone = PartKind.OWN_DECODE if is_own else PartKind.OWN_OTHER
    if source.forwards.mode[forward] != ForwardMode.MIXED.value:
        yield Piece(alone, end_ns - start_ns, forward, UNKNOWN, start_ns, end_ns)
        return
    extra_ns = int(source.mixed_extra_ns[forward])
    if extra_ns == UNKNOWN:
        yield from _shared(source, PartKind.MIXED_UNKNOWN, forward, start_ns, end_ns)
        return
    extra_from = max(start_ns, min(end_ns, int(source.forwards.end_ns[forward]) - extra_ns))
    yield Piece(alone, extra_from - start_ns, forward, UNKNOWN, start_ns, extra_from)
    yield from _shared(source, PartKind.MIXED_EXTRA, forward, extra_from, end_ns)


def _shared(
    source: LedgerSource, kind: PartKind, forward: int, start_ns: int, end_ns: int
) -> Iterator[Piece]:
    """A stretch charged to the chunks of its forward, or to nobody where it has none."""
    if end_ns <= start_ns:
        return
    chunks = _chunks(source, forward)
    if not chunks:
        yield Piece(kind, end_ns - start_ns, forward, UNKNOWN, start_ns, end_ns)
    for chunk, ns in zip(chunks, source.split.of(end_ns - start_ns, chunks), strict=True):
        yield Piece(kind, ns, forward, chunk, start_ns, end_ns)


def _chunks(source: LedgerSource, forward: int) -> range:
    there = source.chunks.of_forward(forward)
    return range(there.start, there.stop)


def _host(time: RankTime, gap: Span) -> Iterator[Piece]:
    at_start, at_end = time.host_until(np.array([gap.start_ns, gap.end_ns]))
    for kind, ns in zip(HOST_KINDS, (at_end - at_start).tolist(), strict=True):
        if ns:
            yield Piece(kind, ns)
