"""Sums over gaps that are taken apart one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN
from profiler.ledger.charges import Stretches
from profiler.ledger.gap_pieces import LedgerSource, OwnRow, Piece, Span, gap_pieces
from profiler.ledger.parts import HOST_KINDS, PartKind

__all__ = ["GapSums", "UnusualSums", "gap_sums"]

Ints = NDArray[np.int64]
_CAUSES = tuple(kind for kind in PartKind if kind > PartKind.OWN_OTHER)


@dataclass(frozen=True, slots=True)
class GapSums:
    """One gap taken apart."""

    span: Span
    pieces: tuple[Piece, ...]
    by_kind: dict[PartKind, int]  # every kind; sums to the gap

    @property
    def gap_ns(self) -> int:
        """Its length."""
        return self.span.end_ns - self.span.start_ns

    @property
    def late_ns(self) -> int:
        """By how much the token came later than its own decode forwards needed."""
        return self.gap_ns - self.by_kind[PartKind.OWN_DECODE] - self.by_kind[PartKind.OWN_OTHER]

    @property
    def cause(self) -> PartKind:
        """The largest part but for its own decode forwards; OWN_DECODE where there is none."""
        if not self.late_ns:
            return PartKind.OWN_DECODE
        return max(_CAUSES, key=lambda kind: (self.by_kind[kind], -kind))


def gap_sums(source: LedgerSource, span: Span, rows: Sequence[OwnRow]) -> GapSums:
    """A gap of these rows, taken apart."""
    pieces = tuple(piece for piece in gap_pieces(source, span, rows) if piece.ns)
    by_kind = dict.fromkeys(PartKind, 0)
    for piece in pieces:
        by_kind[piece.kind] += piece.ns
    return GapSums(span, pieces, by_kind)


class UnusualSums:
    """(chunks,) what chunks cost in these gaps, and the stretches that their time lay in."""

    def __init__(self, chunks: int) -> None:
        self.by_kind = np.zeros(len(PartKind), dtype=np.int64)
        self.cost_ns = np.zeros(chunks, dtype=np.int64)
        self.gaps = np.zeros(chunks, dtype=np.int64)
        self.longest_ns = np.zeros(chunks, dtype=np.int64)
        self._stretches: list[tuple[int, int, int]] = []  # kind, start and end

    def add(self, gap: GapSums) -> None:
        """Count one gap."""
        for kind, ns in gap.by_kind.items():
            self.by_kind[kind] += ns
        took: dict[int, int] = {}
        ends: dict[int, int] = {}  # of the stretches of one forward laid end to end, by where they begin
        for piece in gap.pieces:
            if piece.chunk != UNKNOWN:
                took[piece.chunk] = took.get(piece.chunk, 0) + piece.ns
            begin = piece.start_ns if piece.kind not in HOST_KINDS else gap.span.start_ns
            start_ns = ends.get(begin, begin)
            ends[begin] = start_ns + piece.ns
            self._stretches.append((piece.kind, start_ns, start_ns + piece.ns))
        for chunk, ns in took.items():
            self.cost_ns[chunk] += ns
            self.gaps[chunk] += 1
            self.longest_ns[chunk] = max(self.longest_ns[chunk], ns)

    def stretches(self) -> Stretches:
        """Their time, shares of a forward laid end to end, and the host's from the gap's start on."""
        columns = np.array(self._stretches, dtype=np.int64).reshape(-1, 3).T
        ones = np.ones(len(self._stretches), dtype=np.int64)
        return Stretches(columns[0], np.full(len(ones), UNKNOWN), columns[1], columns[2], ones)
