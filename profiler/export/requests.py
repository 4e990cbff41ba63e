"""Requests as tracks: waits, chunks, decodes, tokens and stalls, and arrows from culprits to late tokens."""

from collections.abc import Iterator, Sequence
from itertools import count as counting
from typing import Any

import polars as pl

from profiler.export.forwards import EVERY, Forwards, extent_text
from profiler.export.gap_arguments import costliest_chunks, gap_arguments
from profiler.ledger.parts import GapDetail
from profiler.tables import frame
from profiler.timeline.tiles import UNKNOWN, Lane, LaneKind, LaneRef
from profiler.timeline.timeline import Timeline
from traces.drawing import Flow, Instant, Item, Slice, Track

__all__ = ["request_items"]

_BELOW_FORWARDS = 1
_STALLS = {
    LaneKind.STALL_PREFILL: "stall: others' prefill",
    LaneKind.STALL_MIXED: "stall: mixed extra",
    LaneKind.STALL_HELD: "stall: no KV",
    LaneKind.STALL_DEFERRED: "stall: deferred",
    LaneKind.STALL_UNKNOWN: "stall: mixed forward, its extra unknown",
}
_ARROW = "late token"


def request_items(timeline: Timeline, forwards: Forwards, start_ns: int, end_ns: int) -> Iterator[Item]:
    """The tracks of all requests in the range, by arrival."""
    refs, _ = timeline.lane_refs(start_ns, end_ns, timeline.num_requests)
    listed = timeline.stalls.filter((pl.col("end_ns") >= start_ns) & (pl.col("start_ns") < end_ns))
    picture = _Requests(timeline, forwards, refs, listed, end_ns)
    until_ns = max(end_ns, forwards.last_result_ns + 1)  # a forward in the range may give its tokens later
    for ref in refs:
        yield from picture.items(ref, timeline.lane(ref.rid, start_ns, until_ns, EVERY))


class _Requests:
    """Draws one request after another. `listed` are the listed stalls that reach into the range."""

    def __init__(
        self,
        timeline: Timeline,
        forwards: Forwards,
        refs: Sequence[LaneRef],
        listed: pl.DataFrame,
        end_ns: int,
    ) -> None:
        self._timeline = timeline
        self._forwards = forwards
        self._end_ns = end_ns
        self._orders = {ref.rid: order for order, ref in enumerate(refs, start=_BELOW_FORWARDS)}
        self._names = {ref.rid: ref.name for ref in refs}
        self._ranks = dict(frame(timeline.trace, "requests").select("rid", "rank").iter_rows())
        self._arrows = counting(1)
        self._listed: dict[int, list[int]] = {}  # token indices, by request, where the own forward is drawn
        for rid, token_index, own in listed.select("rid", "token_index", "own_forward_id").iter_rows():
            if forwards.position(own) is not None:
                self._listed.setdefault(rid, []).append(token_index)

    def items(self, ref: LaneRef, lane: Lane) -> Iterator[Item]:
        """Spans in the order that a track asks for, then instants and arrows."""
        listed = (self._timeline.gap(ref.rid, index) for index in sorted(self._listed.get(ref.rid, ())))
        gaps = {detail.token_index: detail for detail in listed if detail is not None}
        slices = [*self._waits(ref, lane), *self._computed(ref, lane), *self._stalls(ref, lane, gaps)]
        yield from sorted(slices, key=lambda item: (item.start_ns, -item.end_ns))
        yield from self._tokens(ref, lane)
        for detail in gaps.values():
            yield from self._arrows_to(detail)

    def _waits(self, ref: LaneRef, lane: Lane) -> Iterator[Slice]:
        track = self._track(ref.rid, None)
        for at in self._of(lane, LaneKind.QUEUED):
            args = {} if ref.prompt_tokens is None else {"prompt_tokens": ref.prompt_tokens}
            yield Slice(track, "queued", int(lane.start_ns[at]), int(lane.end_ns[at]), args)

    def _computed(self, ref: LaneRef, lane: Lane) -> Iterator[Slice]:
        """A span for each forward that computed a chunk or gave a decoded token."""
        chunked = set()
        for at in self._of(lane, LaneKind.CHUNK):
            forward_id = int(lane.forward_id[at])
            chunked.add(forward_id)
            args = {"forward_id": forward_id, "tokens": int(lane.tokens[at])}
            track = self._track(ref.rid, forward_id)
            name = self._chunk_name(ref, lane, at)
            yield Slice(track, name, int(lane.start_ns[at]), int(lane.end_ns[at]), args)
        for at in _positions(lane, LaneKind.TOKEN):
            forward_id = int(lane.forward_id[at])
            position = self._forwards.position(forward_id)
            if position is not None and forward_id not in chunked:
                args = {"forward_id": forward_id, "token_index": int(lane.number[at])}
                start_ns, end_ns = self._forwards.interval(position)
                yield Slice(self._track(ref.rid, forward_id), "decode", start_ns, end_ns, args)

    def _chunk_name(self, ref: LaneRef, lane: Lane, at: int) -> str:
        number, of = int(lane.number[at]), int(lane.of[at])
        name = f"chunk {number}" if of == UNKNOWN else f"chunk {number}/{of}"
        extent = self._forwards.extent(int(lane.forward_id[at]), ref.rid)
        return name if extent is None else f"{name} {extent_text(*extent)}"

    def _stalls(self, ref: LaneRef, lane: Lane, gaps: dict[int, GapDetail]) -> Iterator[Slice]:
        for kind, name in _STALLS.items():
            for at in self._of(lane, kind):
                token_index, forward_id = int(lane.number[at]), int(lane.forward_id[at])
                args = {"token_index": token_index, "own_forward_id": forward_id}
                detail = gaps.get(token_index)
                said = name
                if detail is not None:
                    args |= gap_arguments(detail)
                    if kind in (LaneKind.STALL_PREFILL, LaneKind.STALL_HELD) and "cause" in args:
                        said = f"stall: {args['cause']}"
                track = self._track(ref.rid, forward_id)
                yield Slice(track, said, int(lane.start_ns[at]), int(lane.end_ns[at]), args)

    def _tokens(self, ref: LaneRef, lane: Lane) -> Iterator[Instant]:
        for at in self._of(lane, LaneKind.TOKEN):
            token_index, t_ns = int(lane.number[at]), int(lane.start_ns[at])
            args: dict[str, Any] = {"token_index": token_index}
            first = token_index == 0
            if first and ref.arrival_ns is not None:
                args["ttft_ns"] = t_ns - ref.arrival_ns
            track = self._track(ref.rid, int(lane.forward_id[at]))
            yield Instant(track, "first token" if first else "token", t_ns, args)

    def _arrows_to(self, detail: GapDetail) -> Iterator[Flow]:
        """One from each culprit: from just after its costliest chunk's start to just after the own forward's.

        None from what is not drawn, nor from what began only after the own forward: it made nothing late.
        """
        own = self._forwards.position(detail.own_forward_id)
        if own is None:
            return
        start_ns, end_ns = self._forwards.interval(own)
        for chunk in costliest_chunks(detail):
            drawn = chunk.rid in self._orders and self._forwards.position(chunk.forward_id) is not None
            source_ns = min(chunk.start_ns + 1, chunk.end_ns)
            target_ns = max(min(start_ns + 2, end_ns), source_ns + 1)  # later than its source
            if drawn and target_ns <= end_ns:
                source = self._track(chunk.rid, chunk.forward_id)
                target = self._track(detail.rid, detail.own_forward_id)
                yield Flow(next(self._arrows), _ARROW, source, source_ns, target, target_ns)

    def _of(self, lane: Lane, kind: LaneKind) -> Iterator[int]:
        """Positions of the items of one kind that begin within the range or before it."""
        return (at for at in _positions(lane, kind) if lane.start_ns[at] < self._end_ns)

    def _track(self, rid: int, forward_id: int | None) -> Track:
        """A request's track, of the rank that ran the forward, else of its own."""
        position = None if forward_id is None else self._forwards.position(forward_id)
        rank = (self._ranks.get(rid) or 0) if position is None else int(self._forwards.rank[position])
        return Track(rank, self._orders[rid], self._names[rid])


def _positions(lane: Lane, kind: LaneKind) -> list[int]:
    """Positions of the items of one kind."""
    positions: list[int] = (lane.kind == kind).nonzero()[0].tolist()
    return positions
