"""Sums over gaps that are taken apart one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN
from profiler.ledger.charges import Stretches, joined
from profiler.ledger.gap_pieces import LedgerSource, OwnRow, Pieces, Span, gap_pieces
from profiler.ledger.parts import PartKind

__all__ = ["GapSums", "UnusualSums", "gap_sums"]

Ints = NDArray[np.int64]
_CAUSES = tuple(kind for kind in PartKind if kind > PartKind.OWN_OTHER)


@dataclass(frozen=True, slots=True)
class GapSums:
    """One gap taken apart."""

    span: Span
    pieces: Pieces
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
    pieces = gap_pieces(source, span, rows)
    return GapSums(span, pieces, pieces.of_kind())


class UnusualSums:
    """(chunks,) what chunks cost in these gaps, and the stretches that their time lay in."""

    def __init__(self, chunks: int) -> None:
        self.by_kind = np.zeros(len(PartKind), dtype=np.int64)
        self.cost_ns = np.zeros(chunks, dtype=np.int64)
        self.gaps = np.zeros(chunks, dtype=np.int64)
        self.longest_ns = np.zeros(chunks, dtype=np.int64)
        self._stretches: list[Stretches] = []

    def add(self, gap: GapSums) -> None:
        """Count one gap."""
        pieces = gap.pieces
        np.add.at(self.by_kind, pieces.kind, pieces.ns)
        charged = pieces.chunk != UNKNOWN
        took = np.unique(pieces.chunk[charged])
        ns = np.zeros(len(took), dtype=np.int64)
        np.add.at(ns, np.searchsorted(took, pieces.chunk[charged]), pieces.ns[charged])
        self.cost_ns[took] += ns
        self.gaps[took] += 1
        self.longest_ns[took] = np.maximum(self.longest_ns[took], ns)
        self._stretches.append(_end_to_end(pieces))

    def stretches(self) -> Stretches:
        """Their time, shares of a stretch laid end to end, the host's from the gap's start on."""
        return joined(self._stretches)


def _end_to_end(pieces: Pieces) -> Stretches:
    """The pieces side by side where they share a stretch; those of one stretch follow one another."""
    first = np.append(True, (np.diff(pieces.start_ns) != 0) | (np.diff(pieces.forward) != 0))[
        : len(pieces.ns)
    ]
    ends = np.cumsum(pieces.ns)
    begins = ends - pieces.ns
    offset = begins - np.maximum.accumulate(np.where(first, begins, 0))
    start_ns = pieces.start_ns + offset
    ones = np.ones(len(pieces.ns), dtype=np.int64)
    return Stretches(pieces.kind, pieces.forward, start_ns, start_ns + pieces.ns, ones)
