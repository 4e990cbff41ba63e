"""Gaps of one trace by request: each one's ledger, with the chunks and culprits in it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode, Role
from profiler.culprits import ranked_culprits
from profiler.forward_table import UNKNOWN, UNKNOWN_MODE, ForwardTable
from profiler.ledger.gap_pieces import LedgerSource, OwnRow, Pieces, Span, gap_pieces
from profiler.ledger.parts import Chunk, GapDetail, GapForward, Part, PartKind
from profiler.mixed_extra import extra_estimators
from profiler.request_rows import RequestRows
from profiler.token_gaps import Gaps, token_gaps

__all__ = ["GapReader", "rows_in"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GapReader:
    """Takes gaps apart. `rows_of` gives all rows of a request, `name_of` the user's name for it."""

    source: LedgerSource
    rows_of: Callable[[int], RequestRows]
    name_of: Callable[[int], str]

    def gap(self, rid: int, token_index: int) -> GapDetail | None:
        """The gap before a request's token; None when there is no such gap."""
        gaps, rows = self._gaps(rid)
        at = np.flatnonzero(rows.token_index[gaps.row] == token_index)
        return self._detail(rid, gaps, int(at[0]), rows) if len(at) else None

    def at(self, rid: int, t_ns: int) -> GapDetail | None:
        """The gap of a request that holds `t_ns`; the one that begins there, at a token's time."""
        gaps, rows = self._gaps(rid)
        at = np.flatnonzero((gaps.start_ns <= t_ns) & (t_ns < gaps.end_ns))
        return self._detail(rid, gaps, int(at[0]), rows) if len(at) else None

    def longest(self, rid: int) -> GapDetail | None:
        """The longest gap of a request, the earliest of equals."""
        gaps, rows = self._gaps(rid)
        lengths = gaps.end_ns - gaps.start_ns
        return self._detail(rid, gaps, int(lengths.argmax()), rows) if len(lengths) else None

    def all(self, rid: int) -> list[GapDetail]:
        """Every gap of a request, in order of tokens."""
        gaps, rows = self._gaps(rid)
        return [self._detail(rid, gaps, at, rows) for at in range(len(gaps.row))]

    def _gaps(self, rid: int) -> tuple[Gaps, RequestRows]:
        rows = self.rows_of(rid)
        return token_gaps(rows, self.source.forwards), rows

    def _detail(self, rid: int, gaps: Gaps, at: int, rows: RequestRows) -> GapDetail:
        forwards = self.source.forwards
        own = int(rows.forward[gaps.row[at]])
        gap = Span(rid, int(forwards.rank[own]), int(gaps.start_ns[at]), int(gaps.end_ns[at]), own)
        pieces = gap_pieces(self.source, gap, rows_in(gap, rows, forwards))
        parts = self._parts(pieces)
        chunks = tuple(sorted((part.chunk for part in parts if part.chunk), key=_by_start))
        mode = int(forwards.mode[own])
        decodes = mode == ForwardMode.MIXED.value and rows.role[gaps.row[at]] == Role.DECODE.value
        extra_ns = _known(int(self.source.mixed_extra_ns[own])) if decodes else None
        return GapDetail(
            rid=rid,
            name=self.name_of(rid),
            token_index=int(rows.token_index[gaps.row[at]]),
            start_ns=gap.start_ns,
            end_ns=gap.end_ns,
            median_gap_ns=float(np.median(gaps.end_ns - gaps.start_ns)),
            own_forward_id=int(forwards.forward_id[own]),
            own_mode=_mode(mode),
            own_start_ns=int(np.clip(forwards.start_ns[own], gap.start_ns, gap.end_ns)),
            forwards=self._forwards(gap, pieces, rows),
            culprits=ranked_culprits(((chunk.rid, chunk.in_gap_ns) for chunk in chunks), self.name_of),
            chunks=chunks,
            costliest=max(chunks, key=lambda chunk: (chunk.in_gap_ns, -chunk.start_ns), default=None),
            mixed_extra_ns=extra_ns,
            mixed_extra_estimator=None if extra_ns is None else self._estimator(own),
            parts=parts,
            split=self.source.split.name,
        )

    def _estimator(self, forward: int) -> str | None:
        at = np.array([forward])
        return extra_estimators(self.source.forwards, self.source.mixed_extra_ns, at)[0]

    def _parts(self, pieces: Pieces) -> tuple[Part, ...]:
        columns = (pieces.kind, pieces.ns, pieces.forward, pieces.chunk)
        parts = []
        for kind, ns, forward, chunk in zip(*(column.tolist() for column in columns), strict=True):
            forward_id = None if forward == UNKNOWN else int(self.source.forwards.forward_id[forward])
            charged = None if chunk == UNKNOWN else self._chunk(chunk, forward, ns)
            parts.append(Part(PartKind(kind), ns, forward_id, charged))
        return tuple(parts)

    def _chunk(self, chunk: int, forward: int, ns: int) -> Chunk:
        chunks, forwards = self.source.chunks, self.source.forwards
        rid, prefix_len = int(chunks.rid[chunk]), int(chunks.prefix_len[chunk])
        return Chunk(
            rid=rid,
            name=self.name_of(rid),
            number=int(chunks.number[chunk]),
            of=_known(int(chunks.of[chunk])),
            prefix_len=prefix_len,
            extend_end=prefix_len + int(chunks.extend_len[chunk]),
            forward_id=int(forwards.forward_id[forward]),
            start_ns=int(forwards.start_ns[forward]),
            end_ns=int(forwards.end_ns[forward]),
            in_gap_ns=ns,
        )

    def _forwards(self, gap: Span, pieces: Pieces, rows: RequestRows) -> tuple[GapForward, ...]:
        """Others' forwards with device time in the gap, then the own one."""
        in_gap: dict[int, int] = {}
        for forward, ns in zip(pieces.forward.tolist(), pieces.ns.tolist(), strict=True):
            if forward != UNKNOWN:
                in_gap[forward] = in_gap.get(forward, 0) + ns
        mine = set(rows.forward.tolist())
        others = [forward for forward in in_gap if forward not in mine]
        return tuple(self._forward(forward, in_gap.get(forward, 0)) for forward in (*others, gap.own))

    def _forward(self, position: int, in_gap_ns: int) -> GapForward:
        forwards = self.source.forwards
        return GapForward(
            forward_id=int(forwards.forward_id[position]),
            mode=_mode(int(forwards.mode[position])),
            start_ns=int(forwards.start_ns[position]),
            end_ns=int(forwards.end_ns[position]),
            in_gap_ns=in_gap_ns,
            extend_tokens=_known(int(forwards.extend_tokens[position])),
            decode_tokens=_known(int(forwards.decode_tokens[position])),
        )


def rows_in(gap: Span, rows: RequestRows, forwards: ForwardTable) -> list[OwnRow]:
    """The request's rows in forwards that share time with the gap."""
    start, end = forwards.start_ns[rows.forward], forwards.end_ns[rows.forward]
    there = np.flatnonzero((start < gap.end_ns) & (end > gap.start_ns))
    columns = (rows.forward[there], rows.role[there], rows.attempt[there])
    return [OwnRow(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _by_start(chunk: Chunk) -> tuple[int, int]:
    return chunk.start_ns, chunk.rid


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _mode(code: int) -> str | None:
    return None if code == UNKNOWN_MODE else ForwardMode(code).name
