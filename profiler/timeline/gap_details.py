"""One gap taken apart: its forwards, whose prompts they computed, and what each chunk took of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode, Role
from profiler.culprits import Culprit, split_exactly
from profiler.forward_table import UNKNOWN_MODE, ForwardTable
from profiler.ledger.parts import Chunk, GapDetail, GapForward
from profiler.mixed_extra import DECODE_MEDIAN
from profiler.request_rows import RequestRows
from profiler.timeline.requests import Requests, known
from profiler.token_gaps import Gaps, token_gaps

__all__ = ["GapReader"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """Where the rows of prompts lie in `RequestRows`, in order of forwards, of one forward by rid."""

    at: Ints
    forward: Ints
    rid: Ints

    @classmethod
    def of(cls, rows: RequestRows) -> "ChunkRows":
        """Those of a trace."""
        at = np.flatnonzero(rows.role <= Role.LAST.value)
        at = at[np.argsort(rows.forward[at], kind="stable")]
        rid = rows.rids[np.searchsorted(rows.bounds, at, side="right") - 1]
        return cls(at, rows.forward[at].astype(np.int64), rid)


@dataclass(frozen=True, slots=True)
class GapReader:
    """Takes gaps of one trace apart."""

    forwards: ForwardTable
    rows: RequestRows
    chunk_rows: ChunkRows
    requests: Requests
    mixed_extra_ns: Ints  # (forwards,) UNKNOWN where there is none
    ended_by_ns: Ints  # (forwards,) the latest end of a forward and of those before it

    def gap(self, rid: int, token_index: int) -> GapDetail | None:
        """The gap before a request's token; None when there is no such gap."""
        gaps, one = self._gaps(rid)
        at = np.flatnonzero(one.token_index[gaps.row] == token_index)
        return self._detail(rid, gaps, int(at[0]), one) if len(at) else None

    def at(self, rid: int, t_ns: int) -> GapDetail | None:
        """The gap of a request that holds `t_ns`; the one that begins there, at a token's time."""
        gaps, one = self._gaps(rid)
        at = np.flatnonzero((gaps.start_ns <= t_ns) & (t_ns < gaps.end_ns))
        return self._detail(rid, gaps, int(at[0]), one) if len(at) else None

    def longest(self, rid: int) -> GapDetail | None:
        """The longest gap of a request, the earliest of equals."""
        gaps, one = self._gaps(rid)
        lengths = gaps.end_ns - gaps.start_ns
        return self._detail(rid, gaps, int(lengths.argmax()), one) if len(lengths) else None

    def _gaps(self, rid: int) -> tuple[Gaps, RequestRows]:
        one = self.rows.only(rid)
        return token_gaps(one, self.forwards), one

    def _detail(self, rid: int, gaps: Gaps, at: int, one: RequestRows) -> GapDetail:
        start_ns, end_ns = int(gaps.start_ns[at]), int(gaps.end_ns[at])
        own = int(one.forward[gaps.row[at]])
        own_mode = int(self.forwards.mode[own])
        reach, inside = self._reach(start_ns, end_ns)
        others = ~np.isin(reach, one.forward)
        positions, in_gap = reach[others], inside[others]
        charges = dict(zip(positions.tolist(), in_gap.tolist(), strict=True))
        rides = own_mode == ForwardMode.MIXED.value and one.role[gaps.row[at]] == Role.DECODE.value
        extra_ns = known(self.mixed_extra_ns[own]) if rides else None
        if own_mode == ForwardMode.MIXED.value:
            own_ns = int(inside[reach == own].sum())
            charges[own] = own_ns if extra_ns is None else min(extra_ns, own_ns)
        chunks = self._chunks(rid, charges)
        return GapDetail(
            rid=rid,
            name=self.requests.name(rid),
            token_index=int(one.token_index[gaps.row[at]]),
            start_ns=start_ns,
            end_ns=end_ns,
            median_gap_ns=float(np.median(gaps.end_ns - gaps.start_ns)),
            own_forward_id=int(self.forwards.forward_id[own]),
            own_mode=_mode(own_mode),
            own_start_ns=int(np.clip(self.forwards.start_ns[own], start_ns, end_ns)),
            forwards=tuple(self._forward(p, start_ns, end_ns) for p in (*positions.tolist(), own)),
            culprits=_culprits(chunks),
            chunks=chunks,
            costliest=max(chunks, key=lambda c: (c.in_gap_ns, -c.start_ns), default=None),
            mixed_extra_ns=extra_ns,
            mixed_extra_estimator=None if extra_ns is None else DECODE_MEDIAN,
            own_others_ns=int(inside[~others & (reach != own)].sum()),
        )

    def _reach(self, start_ns: int, end_ns: int) -> tuple[Ints, Ints]:
        """Positions of the forwards with device time in the gap, and how much."""
        forwards = self.forwards
        until = int(np.searchsorted(forwards.start_ns, end_ns, side="left"))
        since = int(np.searchsorted(self.ended_by_ns[:until], start_ns, side="right"))
        near = np.arange(since, until)
        reach = (forwards.end_ns[near] > start_ns) & forwards.on_device[near]
        at = near[reach & (forwards.end_ns[near] > forwards.start_ns[near])]
        inside = np.minimum(forwards.end_ns[at], end_ns) - np.maximum(forwards.start_ns[at], start_ns)
        return at, inside

    def _forward(self, position: int, start_ns: int, end_ns: int) -> GapForward:
        forwards = self.forwards
        begin, end = int(forwards.start_ns[position]), int(forwards.end_ns[position])
        return GapForward(
            forward_id=int(forwards.forward_id[position]),
            mode=_mode(int(forwards.mode[position])),
            start_ns=begin,
            end_ns=end,
            in_gap_ns=max(0, min(end, end_ns) - max(begin, start_ns)),
            extend_tokens=known(forwards.extend_tokens[position]),
            decode_tokens=known(forwards.decode_tokens[position]),
        )

    def _chunks(self, rid: int, charges: dict[int, int]) -> tuple[Chunk, ...]:
        """Others' chunks in the charged forwards; a forward's charge is split among them by tokens."""
        found = [chunk for position, charge in charges.items() for chunk in self._of(position, rid, charge)]
        return tuple(sorted(found, key=lambda c: (c.start_ns, c.rid)))

    def _of(self, position: int, rid: int, charge: int) -> list[Chunk]:
        """Chunks in one forward of all but one request."""
        first, last = np.searchsorted(self.chunk_rows.forward, [position, position + 1]).tolist()
        rows, rids = self.chunk_rows.at[first:last], self.chunk_rows.rid[first:last]
        others = rids != rid
        rows, rids = rows[others], rids[others]
        prefix, length = (
            np.maximum(c[rows], 0).tolist() for c in (self.rows.prefix_len, self.rows.extend_len)
        )
        parts = split_exactly(charge, length)
        return [
            self._chunk(position, rid, start, start + tokens, part)
            for rid, start, tokens, part in zip(rids.tolist(), prefix, length, parts, strict=True)
        ]

    def _chunk(self, position: int, rid: int, prefix_len: int, extend_end: int, in_gap_ns: int) -> Chunk:
        number, of = self.rows.chunk_number(rid, position)
        return Chunk(
            rid=rid,
            name=self.requests.name(rid),
            number=number,
            of=of,
            prefix_len=prefix_len,
            extend_end=extend_end,
            forward_id=int(self.forwards.forward_id[position]),
            start_ns=int(self.forwards.start_ns[position]),
            end_ns=int(self.forwards.end_ns[position]),
            in_gap_ns=in_gap_ns,
        )


def _culprits(chunks: Sequence[Chunk]) -> tuple[Culprit, ...]:
    shares: dict[int, int] = {}
    names = {chunk.rid: chunk.name for chunk in chunks}
    for chunk in chunks:
        shares[chunk.rid] = shares.get(chunk.rid, 0) + chunk.in_gap_ns
    ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Culprit(rid, names[rid], device_ns) for rid, device_ns in ranked)


def _mode(code: int) -> str | None:
    return None if code == UNKNOWN_MODE else ForwardMode(code).name
