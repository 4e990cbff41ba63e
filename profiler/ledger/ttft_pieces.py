"""The time to first token of one request, stretch by stretch."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.batch import ForwardMode
from profiler.forward_table import UNKNOWN
from profiler.ledger.parts import HOST_KINDS, PartKind
from profiler.ledger.rank_time import RankTime
from profiler.ledger.ttft_parts import TtftKind
from profiler.ledger.ttft_rounds import Rounds
from profiler.ledger.ttft_source import TtftSource, rest_kind
from profiler.ledger.ttft_spells import Spell, spells

__all__ = ["OTHERS", "TtftPiece", "prefill_pieces", "queue_pieces"]

OTHERS = {
    ForwardMode.EXTEND.value: TtftKind.OTHERS_PREFILL,
    ForwardMode.MIXED.value: TtftKind.OTHERS_MIXED,
}


@dataclass(frozen=True, slots=True)
class TtftPiece:
    """A stretch of a ledger. `forward` is a position in the `ForwardTable`, `chunk` one in `ChunkRows`."""

    kind: TtftKind
    ns: int
    forward: int = UNKNOWN
    chunk: int = UNKNOWN
    number: int = UNKNOWN  # of the round that did not admit it


def queue_pieces(source: TtftSource, wait: int) -> Iterator[TtftPiece]:
    """From its arrival to the round that admitted it, in time order; `wait` is its place in `Waits`."""
    waits = source.waits
    start_ns, end_ns = int(waits.arrival_ns[wait]), int(waits.queue_end_ns[wait])
    first, last = int(waits.first_round[wait]), int(waits.last_round[wait])
    if first == UNKNOWN:
        yield TtftPiece(TtftKind.UNTOLD, end_ns - start_ns)
        return
    rank = int(waits.rank[wait])
    rounds, time = source.rounds[rank], source.ledger.times[rank]
    queued_ns = end_ns if first == last else int(rounds.start_ns[first])
    yield from _queued(source, time, start_ns, queued_ns)
    yield from _rounds(source, time, rounds, first, last)


def _queued(source: TtftSource, time: RankTime, start_ns: int, end_ns: int) -> Iterator[TtftPiece]:
    """Before the first round that could admit it: charged to whose chunks the device is at."""
    on_device_ns = 0
    for forward, ns in _device(time, start_ns, end_ns):
        on_device_ns += ns
        yield from _charged(source, TtftKind.QUEUED, forward, ns)
    rest_ns = _rest_ns(time, start_ns, end_ns)
    yield TtftPiece(TtftKind.QUEUED, end_ns - start_ns - on_device_ns - rest_ns)
    yield TtftPiece(rest_kind(time), rest_ns)


def _rounds(source: TtftSource, time: RankTime, rounds: Rounds, first: int, last: int) -> Iterator[TtftPiece]:
    """Rounds that did not admit it: charged to those whom they gave the budget."""
    rest_until_ns = time.rest_until(rounds.start_ns[first : last + 1])
    says_why = rounds.says_why[first:last].tolist()
    for number, rest_ns, says in zip(
        range(first, last), np.diff(rest_until_ns).tolist(), says_why, strict=True
    ):
        kind, forward = TtftKind(int(rounds.kind[number])), int(rounds.position[number])
        length_ns = int(rounds.length_ns[number])
        if kind is TtftKind.UNTOLD:
            yield TtftPiece(kind, length_ns, forward, number=number)
        elif says:
            yield from _charged(source, kind, forward, length_ns, number)
        else:
            yield from _charged(source, kind, forward, length_ns - rest_ns, number)
            yield TtftPiece(rest_kind(time), rest_ns)


def _rest_ns(time: RankTime, start_ns: int, end_ns: int) -> int:
    before, after = time.rest_until(np.array([start_ns, end_ns])).tolist()
    return int(after - before)


def prefill_pieces(source: TtftSource, wait: int) -> Iterator[TtftPiece]:
    """From the round that admitted it to its first token: device time in order of forwards, then the host."""
    rank = int(source.waits.rank[wait])
    start_ns, end_ns = int(source.waits.queue_end_ns[wait]), int(source.waits.first_token_ns[wait])
    if rank == UNKNOWN or end_ns <= start_ns:
        return
    rid, time = int(source.waits.rid[wait]), source.ledger.times[rank]
    mine = source.own.of_request(rid)
    own = dict(zip(source.own.forward[mine].tolist(), source.own.is_chunk[mine].tolist(), strict=True))
    held = source.ledger.held.forwards_of(rid)
    retracted = spells(source, wait)
    for forward, ns, since_ns in _device_since(time, start_ns, end_ns):
        if forward in own:
            yield from _own(source, rid, forward, ns, is_chunk=own[forward])
        elif held.get(forward) is PartKind.DEFERRED:
            yield from _charged(source, TtftKind.DEFERRED, forward, ns)
        else:
            yield from _others(source, forward, since_ns, since_ns + ns, retracted)
    at_start, at_end = time.host_until(np.array([start_ns, end_ns]))
    for kind, ns in zip(HOST_KINDS, (at_end - at_start).tolist(), strict=True):
        yield TtftPiece(TtftKind[kind.name], ns)


def _own(source: TtftSource, rid: int, forward: int, ns: int, *, is_chunk: bool) -> Iterator[TtftPiece]:
    if not is_chunk:
        yield TtftPiece(TtftKind.OWN_DECODE, ns, forward)
        return
    for piece in _charged(source, TtftKind.OTHERS_PREFILL, forward, ns):
        mine = source.ledger.chunks.rid[piece.chunk] == rid
        yield TtftPiece(TtftKind.OWN_CHUNKS, piece.ns, forward) if mine else piece


def _others(
    source: TtftSource, forward: int, start_ns: int, end_ns: int, retracted: list[Spell]
) -> Iterator[TtftPiece]:
    kind = OTHERS.get(int(source.forwards.mode[forward]), TtftKind.OTHERS_DECODE)
    marks = {start_ns, end_ns, *(t for spell in retracted for t in spell if start_ns < t < end_ns)}
    for begin, end in pairwise(sorted(marks)):
        inside = any(since <= begin < until for since, until in retracted)
        yield from _charged(source, TtftKind.RETRACTED if inside else kind, forward, end - begin)


def _charged(
    source: TtftSource, kind: TtftKind, forward: int, ns: int, number: int = UNKNOWN
) -> Iterator[TtftPiece]:
    """A stretch shared among the chunks of its forward, or charged to nobody where it has none."""
    there = source.ledger.chunks.of_forward(forward)
    chunks = range(there.start, there.stop)
    if not chunks:
        yield TtftPiece(kind, ns, forward, number=number)
    for chunk, part_ns in zip(chunks, source.ledger.split.of(ns, chunks), strict=True):
        yield TtftPiece(kind, part_ns, forward, chunk, number)


def _device(time: RankTime, start_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
    for forward, ns, _ in _device_since(time, start_ns, end_ns):
        yield forward, ns


def _device_since(time: RankTime, start_ns: int, end_ns: int) -> Iterator[tuple[int, int, int]]:
    """Forwards with device time in a stretch, how much, and from when on."""
    if end_ns <= start_ns:
        return
    first, last = time.touching(start_ns, end_ns)
    for at in range(first, last):
        since_ns = max(int(time.device.start_ns[at]), start_ns)
        yield int(time.position[at]), min(int(time.device.end_ns[at]), end_ns) - since_ns, since_ns
