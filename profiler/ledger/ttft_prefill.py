"""Many requests at once from the round that admitted them to their first token: sums by kind, and costs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN
from profiler.ledger.parts import HOST_KINDS, PartKind
from profiler.ledger.rank_time import MODES, RankTime
from profiler.ledger.split import split_all
from profiler.ledger.ttft_charges import OwnParts, Spans, device_costs, own_parts
from profiler.ledger.ttft_parts import TtftKind
from profiler.ledger.ttft_pieces import OTHERS, prefill_pieces
from profiler.ledger.ttft_source import TtftSource

__all__ = ["PrefillSums", "prefill_sums"]

Ints = NDArray[np.int64]

_MODE_KINDS = [OTHERS.get(mode, TtftKind.OTHERS_DECODE).value for mode in MODES]


@dataclass(frozen=True, slots=True)
class PrefillSums:
    """Of the requests of one rank."""

    by_kind: Ints  # (requests, kinds)
    running_ns: Ints  # (chunks,) what each cost by the device time that it took


def prefill_sums(source: TtftSource, rank: int, waits: Ints, piecewise: Ints) -> PrefillSums:
    """Those of some requests, by their places in `Waits`; the `piecewise` among them are taken one by one."""
    time, split, chunks = source.ledger.times[rank], source.ledger.split, source.ledger.chunks
    by_kind = np.zeros((len(waits), len(TtftKind)), dtype=np.int64)
    alone = np.isin(waits, piecewise)
    summed = waits[~alone]
    spans = Spans(source.waits.queue_end_ns[summed], source.waits.first_token_ns[summed])
    own = _own(source, time, summed, spans)
    sums = _time(time, spans)
    _move(sums, time, own.span, own.interval, own.ns)
    decodes = ~own.is_chunk
    np.add.at(sums[:, TtftKind.OWN_DECODE], own.span[decodes], own.ns[decodes])
    running_ns = device_costs(time, chunks, split, spans, own)
    _share_own(source, time, summed, own, sums, running_ns)
    _defer(source, time, summed, spans, own, sums)
    by_kind[~alone] = sums
    for at in np.flatnonzero(alone).tolist():
        for piece in prefill_pieces(source, int(waits[at])):
            by_kind[at, piece.kind] += piece.ns
            if piece.chunk != UNKNOWN:
                running_ns[piece.chunk] += piece.ns
    return PrefillSums(by_kind, running_ns)


def _time(time: RankTime, spans: Spans) -> Ints:
    """(spans, kinds) where the time went if no request had a row."""
    sums = np.zeros((len(spans.start_ns), len(TtftKind)), dtype=np.int64)
    device = time.device_until(spans.end_ns) - time.device_until(spans.start_ns)
    host = time.host_until(spans.end_ns) - time.host_until(spans.start_ns)
    for column, kind in enumerate(_MODE_KINDS):
        sums[:, kind] += device[:, column]
    for column, host_kind in enumerate(HOST_KINDS):
        sums[:, TtftKind[host_kind.name]] += host[:, column]
    return sums


def _move(sums: Ints, time: RankTime, span: Ints, interval: Ints, ns: Ints) -> None:
    """Take pieces of device time away from the kind that their mode put them under."""
    kind = np.array(_MODE_KINDS)[time.device.kind[interval]]
    np.subtract.at(sums, (span, kind), ns)


def _own(source: TtftSource, time: RankTime, waits: Ints, spans: Spans) -> OwnParts:
    """Device time of forwards that the requests have rows in."""
    own = source.own
    span = _span_of(source, waits)[source.waits.index(own.rid)]
    interval = _interval_of(source, time)[own.forward]
    there = (span >= 0) & (interval >= 0)
    return own_parts(time, spans, span[there], interval[there], own.is_chunk[there])


def _share_own(
    source: TtftSource, time: RankTime, waits: Ints, own: OwnParts, sums: Ints, running_ns: Ints
) -> None:
    """Share forwards of their chunks between these and others'."""
    chunks, split = source.ledger.chunks, source.ledger.split
    span, ns = own.span[own.is_chunk], own.ns[own.is_chunk]
    first, last = chunks.bounds(time.position[own.interval[own.is_chunk]])
    entry, chunk, share_ns = split_all(ns, first, last, split)
    mine = chunks.rid[chunk] == source.waits.rid[waits[span[entry]]]
    kind = np.where(mine, TtftKind.OWN_CHUNKS, TtftKind.OTHERS_PREFILL)
    np.add.at(sums, (span[entry], kind), share_ns)
    np.add.at(running_ns, chunk[~mine], share_ns[~mine])


def _defer(source: TtftSource, time: RankTime, waits: Ints, spans: Spans, own: OwnParts, sums: Ints) -> None:
    """Put forwards that the interval deferred a request's chunk in under DEFERRED."""
    held = source.ledger.held
    deferred = held.kind == PartKind.DEFERRED.value
    span = _span_of(source, waits)[source.waits.index(held.rid[deferred])]
    interval = _interval_of(source, time)[held.forward[deferred]]
    width = len(time.position) + 1
    there = (span >= 0) & (interval >= 0)
    key = np.unique(span[there] * width + interval[there])
    key = key[~np.isin(key, own.span * width + own.interval)]
    span, interval = key // width, key % width
    ns = spans.inside_ns(time, span, interval)
    span, interval, ns = span[ns > 0], interval[ns > 0], ns[ns > 0]
    _move(sums, time, span, interval, ns)
    np.add.at(sums[:, TtftKind.DEFERRED], span, ns)


def _span_of(source: TtftSource, waits: Ints) -> Ints:
    """(requests + 1,) the span of each request, by its place in `Waits`; -1, as at the end, where none is."""
    spans = np.full(len(source.waits) + 1, -1, dtype=np.int64)
    spans[waits] = np.arange(len(waits))
    return spans


def _interval_of(source: TtftSource, time: RankTime) -> Ints:
    """(forwards,) the device interval of each; -1 where the rank has none of it."""
    intervals = np.full(len(source.forwards), -1, dtype=np.int64)
    intervals[time.position] = np.arange(len(time.position))
    return intervals
