"""One gap taken apart, instant by instant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode, Role
from profiler.forward_table import UNKNOWN, ForwardTable
from profiler.ledger.chunk_rows import ChunkRows
from profiler.ledger.held_back import HeldBack
from profiler.ledger.parts import HOST_KINDS, PartKind
from profiler.ledger.rank_time import RankTime
from profiler.ledger.split import Split, split_all

__all__ = ["LedgerSource", "OwnRow", "Pieces", "Span", "gap_pieces"]

Ints = NDArray[np.int64]

_OTHERS = np.full(256, PartKind.OTHERS_DECODE.value, dtype=np.int64)  # by mode
_OTHERS[ForwardMode.EXTEND.value] = PartKind.OTHERS_PREFILL.value
_OTHERS[ForwardMode.MIXED.value] = PartKind.OTHERS_MIXED.value


Columns = TypeVar("Columns", "Pieces", "_Stretches")


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """What the ledgers of a trace's gaps are made from. Forwards are positions in `forwards`."""

    forwards: ForwardTable
    times: dict[int, RankTime]  # by rank
    chunks: ChunkRows
    split: Split
    mixed_extra_ns: Ints  # (forwards,) UNKNOWN where there is none
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
class Pieces:
    """(pieces,) stretches of device time in time order, then sums of host time, and what each went to."""

    kind: Ints  # PartKind
    ns: Ints
    forward: Ints  # position; UNKNOWN of the host's
    chunk: Ints  # whose it is, as `ChunkRows` has it; UNKNOWN is nobody's
    start_ns: Ints  # of the stretch that it is a share of; of the host's the gap's start
    end_ns: Ints

    def of_kind(self) -> dict[PartKind, int]:
        """The sum of each kind."""
        sums = np.zeros(len(PartKind), dtype=np.int64)
        np.add.at(sums, self.kind, self.ns)
        return {kind: int(sums[kind]) for kind in PartKind}


@dataclass(frozen=True, slots=True)
class _Stretches:
    """(stretches,) device time by forward, before it is shared among chunks."""

    kind: Ints
    forward: Ints
    start_ns: Ints
    end_ns: Ints

    def some(self, chosen: NDArray[np.bool_] | Ints) -> "_Stretches":
        return _Stretches(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def cut(self, t_ns: int) -> "_Stretches":
        """The same with the one that holds a time cut there."""
        at = np.flatnonzero((self.start_ns < t_ns) & (t_ns < self.end_ns))
        left, right = self.some(at), self.some(at)
        left.end_ns[:], right.start_ns[:] = t_ns, t_ns
        return _joined([self.some(np.delete(np.arange(len(self.kind)), at)), left, right])


def gap_pieces(source: LedgerSource, gap: Span, rows: Sequence[OwnRow]) -> Pieces:
    """A gap taken apart; the pieces sum to it, and none is empty.

    `rows` are those of the request from the earlier token's to the last that may share time with the gap, in
    order of forwards.
    """
    time = source.times[gap.rank]
    at = slice(*time.touching(gap.start_ns, gap.end_ns))
    forward = time.position[at]
    every = _Stretches(
        _OTHERS[source.forwards.mode[forward]],
        forward,
        np.maximum(time.device.start_ns[at], gap.start_ns),
        np.minimum(time.device.end_ns[at], gap.end_ns),
    )
    own = np.isin(forward, [row.forward for row in rows])
    others = _held(source, gap, rows, every.some(~own))
    mine = every.some(own)
    pieces = _joined([_shared(source, others), *_own(source, gap, rows, mine), _host(source, gap)])
    order = np.lexsort((pieces.chunk, pieces.start_ns, pieces.forward == UNKNOWN))
    order = order[pieces.ns[order] > 0]
    return Pieces(*(getattr(pieces, name)[order] for name in Pieces.__dataclass_fields__))


def _held(source: LedgerSource, gap: Span, rows: Sequence[OwnRow], others: _Stretches) -> _Stretches:
    """Others' forwards, with what held the request back in them."""
    spells = _spells(source, gap, rows)
    for t_ns in {t for spell in spells for t in spell[:2]}:
        others = others.cut(t_ns)
    for since, until, kind in spells:
        others.kind[(others.start_ns >= since) & (others.end_ns <= until)] = kind.value
    held = source.held.forwards_of(gap.rid)
    for forward in held.keys() & set(others.forward.tolist()):
        others.kind[others.forward == forward] = held[forward].value
    return others


def _spells(source: LedgerSource, gap: Span, rows: Sequence[OwnRow]) -> list[tuple[int, int, PartKind]]:
    """From each time that it gave its KV back to the start of its next chunk of a later attempt."""
    spells = []
    for gave_ns, attempt, kind in source.held.given_back_by(gap.rid):
        if gap.start_ns <= gave_ns <= gap.end_ns:
            starts = [
                int(source.forwards.start_ns[row.forward])
                for row in rows
                if row.is_chunk and (attempt < 0 or row.attempt > attempt)
            ]
            spells.append((gave_ns, min((s for s in starts if s >= gave_ns), default=gap.end_ns), kind))
    return spells


def _own(source: LedgerSource, gap: Span, rows: Sequence[OwnRow], mine: _Stretches) -> list[Pieces]:
    """Forwards that the request has a row in."""
    chunks = {row.forward for row in rows if row.is_chunk}
    computes = np.isin(mine.forward, list(chunks))
    pieces = [_with_chunk(source, gap.rid, mine.some(computes))]
    decodes = mine.some(~computes)
    alone = np.where(decodes.forward == gap.own, PartKind.OWN_DECODE.value, PartKind.OWN_OTHER.value)
    mixed = source.forwards.mode[decodes.forward] == ForwardMode.MIXED.value
    extra_ns = source.mixed_extra_ns[decodes.forward]
    unknown = mixed & (extra_ns == UNKNOWN)
    begin = source.forwards.end_ns[decodes.forward] - np.where(mixed, extra_ns, 0)
    begin = np.where(unknown, decodes.start_ns, np.clip(begin, decodes.start_ns, decodes.end_ns))
    extra = np.where(unknown, PartKind.MIXED_UNKNOWN.value, PartKind.MIXED_EXTRA.value)
    pieces.append(_nobodys(_Stretches(alone, decodes.forward, decodes.start_ns, begin)))
    pieces.append(_shared(source, _Stretches(extra, decodes.forward, begin, decodes.end_ns)))
    return pieces


def _with_chunk(source: LedgerSource, rid: int, stretches: _Stretches) -> Pieces:
    """Its own share of forwards that compute its prompt, and the others' shares."""
    shared = _shared(source, stretches)
    own = (shared.chunk != UNKNOWN) & (source.chunks.rid[shared.chunk] == rid)
    shared.kind[:] = np.where(own, PartKind.RECOMPUTE.value, PartKind.OTHERS_PREFILL.value)
    shared.chunk[own] = UNKNOWN
    return shared


def _shared(source: LedgerSource, stretches: _Stretches) -> Pieces:
    """Stretches charged to the chunks of their forwards, or to nobody where there are none."""
    first, last = source.chunks.bounds(stretches.forward)
    charged = last > first
    theirs = stretches.some(charged)
    length = theirs.end_ns - theirs.start_ns
    entry, chunk, ns = split_all(length, first[charged], last[charged], source.split)
    columns = (theirs.kind[entry], ns, theirs.forward[entry], chunk)
    shares = Pieces(*columns, theirs.start_ns[entry], theirs.end_ns[entry])
    return _joined([shares, _nobodys(stretches.some(~charged))])


def _nobodys(stretches: _Stretches) -> Pieces:
    length = stretches.end_ns - stretches.start_ns
    nobody = np.full(len(length), UNKNOWN, dtype=np.int64)
    return Pieces(stretches.kind, length, stretches.forward, nobody, stretches.start_ns, stretches.end_ns)


def _host(source: LedgerSource, gap: Span) -> Pieces:
    at_start, at_end = source.times[gap.rank].host_until(np.array([gap.start_ns, gap.end_ns]))
    kinds = np.array(HOST_KINDS, dtype=np.int64)
    none = np.full(len(kinds), UNKNOWN, dtype=np.int64)
    start, end = np.full(len(kinds), gap.start_ns), np.full(len(kinds), gap.end_ns)
    return Pieces(kinds, at_end - at_start, none, none, start, end)


def _joined(parts: Sequence[Columns]) -> Columns:
    names = parts[0].__dataclass_fields__
    return type(parts[0])(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
