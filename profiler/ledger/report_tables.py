"""From the sums over a trace's gaps to the report of them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN
from profiler.ledger.charges import ChunkCharges, Stretches, until_each
from profiler.ledger.gap_pieces import LedgerSource
from profiler.ledger.groups import stall_groups, worst_groups
from profiler.ledger.parts import HOST_KINDS, PartKind
from profiler.ledger.report import CausesOverTime, ChunkCost, CulpritCost, StallGroup, StallReport, Victim
from profiler.ledger.split import split_all
from profiler.ledger.unusual_gaps import GapSums
from profiler.ledger.victims import VictimSums
from profiler.mixed_extra import DECODE_MEDIAN, DECODE_PLANE, extra_estimators

__all__ = ["LedgerSums", "as_report"]

Ints = NDArray[np.int64]
_SPANS = 60  # of the picture over time


@dataclass(frozen=True, slots=True)
class LedgerSums:
    """What was found by going through all gaps of a trace."""

    source: LedgerSource
    by_kind: Ints  # (kinds,)
    victims: VictimSums
    charges: ChunkCharges
    stretches: Stretches
    host_over: Callable[[Ints], Ints]  # waiting for the host between edges that no stretch holds
    worst: list[tuple[int, GapSums]]  # with their token indices: all gaps of every group worth a look


def as_report(sums: LedgerSums, name_of: Callable[[int], str], top: int) -> StallReport:
    """The report with the `top` worst of everything."""
    victims, source = sums.victims, sums.source
    groups = stall_groups(sums.worst, source, name_of)
    charged = _charged(sums)
    return StallReport(
        gaps=int(victims.gaps.sum()),
        waiting_ns=int(victims.waiting_ns.sum()),
        late_ns=int(victims.late_ns.sum()),
        by_kind={kind: int(sums.by_kind[kind]) for kind in PartKind},
        longest=max(groups, key=_length, default=None),
        groups=worst_groups(groups, top),
        victims=tuple(_victim(victims, rid, name_of) for rid in victims.worst(top).tolist()),
        culprits=_culprits(sums, charged, name_of, top),
        chunks=tuple(_chunk(sums, charged, at, name_of) for at in _largest(sums.charges.cost_ns, top)),
        over_time=_over_time(sums),
        split=source.split.name,
        mixed_extra_estimator=_estimator(source),
    )


def _estimator(source: LedgerSource) -> str | None:
    """What mixed extras were estimated by; None of none."""
    told = np.flatnonzero(source.mixed_extra_ns != UNKNOWN)
    used = set(extra_estimators(source.forwards, source.mixed_extra_ns, told))
    return "; else ".join(name for name in (DECODE_MEDIAN, DECODE_PLANE) if name in used) or None


def _length(group: StallGroup) -> tuple[int, int, int]:
    """The longest; of equals the earliest, then that of the lowest rid."""
    return group.gap_ns, -group.start_ns, -group.rids[0]


def _victim(victims: VictimSums, rid: int, name_of: Callable[[int], str]) -> Victim:
    return Victim(
        rid=rid,
        name=name_of(rid),
        gaps=int(victims.gaps[rid]),
        waiting_ns=int(victims.waiting_ns[rid]),
        late_ns=int(victims.late_ns[rid]),
        longest_ns=int(victims.longest_ns[rid]),
        longest_token_index=int(victims.longest_token_index[rid]),
    )


def _charged(sums: LedgerSums) -> Ints:
    """(chunks,) each one's share of its forward's device time; -1 where that is not known."""
    forwards, chunks = sums.source.forwards, sums.source.chunks
    at = np.unique(chunks.forward)
    length = np.where(forwards.on_device[at], forwards.end_ns[at] - forwards.start_ns[at], 0)
    _, chunk, ns = split_all(length, *chunks.bounds(at), sums.source.split)
    shares = np.zeros(len(chunks), dtype=np.int64)
    shares[chunk] = ns
    return np.where(forwards.on_device[chunks.forward], shares, -1)


def _culprits(
    sums: LedgerSums, device_ns: Ints, name_of: Callable[[int], str], top: int
) -> tuple[CulpritCost, ...]:
    """Those who cost others most."""
    chunks, charges = sums.source.chunks, sums.charges
    order = np.argsort(chunks.rid, kind="stable")
    first = np.flatnonzero(np.diff(chunks.rid[order], prepend=-1))
    if not len(first):
        return ()
    rids = chunks.rid[order][first].tolist()
    cost = np.add.reduceat(charges.cost_ns[order], first)
    counts = np.add.reduceat((charges.cost_ns > 0)[order].astype(np.int64), first).tolist()
    longest = np.maximum.reduceat(charges.longest_ns[order], first).tolist()
    device = np.add.reduceat(device_ns[order], first).tolist()
    told = (np.minimum.reduceat(device_ns[order], first) >= 0).tolist()
    return tuple(
        CulpritCost(
            rid=rids[at],
            name=name_of(rids[at]),
            chunks=counts[at],
            cost_ns=int(cost[at]),
            longest_ns=longest[at],
            device_ns=device[at] if told[at] else None,
        )
        for at in _largest(cost, top)
    )


def _chunk(sums: LedgerSums, device_ns: Ints, at: int, name_of: Callable[[int], str]) -> ChunkCost:
    chunks, charges = sums.source.chunks, sums.charges
    rid, of, prefix_len = int(chunks.rid[at]), int(chunks.of[at]), int(chunks.prefix_len[at])
    return ChunkCost(
        rid=rid,
        name=name_of(rid),
        forward_id=int(sums.source.forwards.forward_id[chunks.forward[at]]),
        number=int(chunks.number[at]),
        of=None if of < 0 else of,
        prefix_len=prefix_len,
        extend_end=prefix_len + int(chunks.extend_len[at]),
        device_ns=None if device_ns[at] < 0 else int(device_ns[at]),
        cost_ns=int(charges.cost_ns[at]),
        gaps=int(charges.gaps[at]),
    )


def _largest(values: Ints, top: int) -> list[int]:
    """Where the largest positive values are, of equals the first."""
    some = np.flatnonzero(values > 0)
    largest: list[int] = some[np.argsort(-values[some], kind="stable")][:top].tolist()
    return largest


def _over_time(sums: LedgerSums) -> CausesOverTime:
    """In equal spans from the first forward's start to the last result."""
    forwards, stretches = sums.source.forwards, sums.stretches
    begin, end = 0, 0
    if len(forwards):
        begin = int(forwards.start_ns.min())
        end = max(begin, int(forwards.end_ns.max()), int(forwards.result_end_ns.max()))
    spans = max(1, min(_SPANS, end - begin))
    edges = np.array([begin + (end - begin) * at // spans for at in range(spans + 1)], dtype=np.int64)
    waiting = np.zeros((spans, len(PartKind)), dtype=np.int64)
    for kind in np.unique(stretches.kind).tolist():
        waiting[:, kind] = np.diff(until_each(stretches.some(stretches.kind == kind), edges))
    waiting[:, HOST_KINDS[0] :] += sums.host_over(edges)
    return CausesOverTime(edges, waiting)
