"""Ledgers as JSON-safe values: whole nanoseconds, and requests under the user's names."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profiler.culprits import Culprit
from profiler.ledger.culprit_costs import ChunkToll, costliest, victims_of
from profiler.ledger.parts import Chunk, GapDetail, Part, PartKind
from profiler.ledger.report import ChunkCost, CulpritCost, StallGroup, StallReport, Victim
from profiler.ledger.request_ledgers import worst_gaps

__all__ = ["culprit_document", "report_document", "request_document"]


def report_document(report: StallReport, top: int) -> dict[str, Any]:
    """What a trace's ledger says; at most `top` rows of each list. docs/metrics.md, "Stall report"."""
    return {
        "gaps": report.gaps,
        "waiting_ns": report.waiting_ns,
        "late_ns": report.late_ns,
        "by_kind_ns": _by_kind(report.by_kind),
        "longest": None if report.longest is None else _group(report.longest),
        "groups": [_group(group) for group in report.groups[:top]],
        "victims": [_victim(victim) for victim in report.victims[:top]],
        "culprits": [_culprit(culprit) for culprit in report.culprits[:top]],
        "chunks": [_chunk_cost(chunk) for chunk in report.chunks[:top]],
        "over_time": {
            "edges_ns": report.over_time.edges_ns.tolist(),
            "waiting_ns": {kind.name: report.over_time.waiting_ns[:, kind].tolist() for kind in PartKind},
        },
        "split": report.split,
        "mixed_extra_estimator": report.mixed_extra_estimator,
    }


def request_document(name: str, gaps: Sequence[GapDetail], top: int) -> dict[str, Any]:
    """All waiting of one request, and at most `top` of its worst gaps with every part of them."""
    return {
        "rid": name,
        "gaps": len(gaps),
        "waiting_ns": sum(gap.gap_ns for gap in gaps),
        "late_ns": sum(gap.late_ns for gap in gaps),
        "by_kind_ns": {kind.name: sum(gap.sum_ns([kind]) for gap in gaps) for kind in PartKind},
        "worst": [_gap(gap) for gap in worst_gaps(gaps, top)],
    }


def culprit_document(name: str, tolls: Sequence[ChunkToll], top: int | None) -> dict[str, Any]:
    """What one request's chunks cost whom: at most `top` of the chunks; None lists them all.

    Costs of a chunk's victims sum to the chunk's; `cost_ns` and `victims` of the whole are over all chunks.
    """
    return {
        "rid": name,
        "cost_ns": sum(toll.cost_ns for toll in tolls),
        "victims": [{"rid": victim, "cost_ns": cost_ns} for victim, cost_ns in victims_of(tolls)],
        "chunks": [_toll(toll) for toll in (tolls if top is None else costliest(tolls, top))],
    }


def _gap(gap: GapDetail) -> dict[str, Any]:
    return {
        "token_index": gap.token_index,
        "since_ns": gap.start_ns,
        "until_ns": gap.end_ns,
        "gap_ns": gap.gap_ns,
        "late_ns": gap.late_ns,
        "median_gap_ns": gap.median_gap_ns,
        "own_forward_id": gap.own_forward_id,
        "own_mode": gap.own_mode,
        "culprits": _culprits(gap.culprits),
        "parts": [_part(part) for part in gap.parts],
        "mixed_extra_ns": gap.mixed_extra_ns,
    }


def _toll(toll: ChunkToll) -> dict[str, Any]:
    victims = [{"rid": each.name, "cost_ns": each.cost_ns, "gaps": each.gaps} for each in toll.victims]
    return {**_place(toll.chunk), "cost_ns": toll.cost_ns, "victims": victims}


def _group(group: StallGroup) -> dict[str, Any]:
    return {
        "rids": list(group.names),
        "token_index": group.token_index,
        "since_ns": group.start_ns,
        "until_ns": group.end_ns,
        "gap_ns": group.gap_ns,
        "late_ns": group.late_ns,
        "lost_ns": group.lost_ns,
        "cause": group.cause.name,
        "own_forward_id": group.own_forward_id,
        "by_kind_ns": _by_kind(group.by_kind),
        "culprits": _culprits(group.culprits),
    }


def _victim(victim: Victim) -> dict[str, Any]:
    return {
        "rid": victim.name,
        "gaps": victim.gaps,
        "waiting_ns": victim.waiting_ns,
        "late_ns": victim.late_ns,
        "longest_ns": victim.longest_ns,
        "longest_token_index": victim.longest_token_index,
    }


def _culprit(culprit: CulpritCost) -> dict[str, Any]:
    return {
        "rid": culprit.name,
        "chunks": culprit.chunks,
        "cost_ns": culprit.cost_ns,
        "longest_ns": culprit.longest_ns,
        "device_ns": culprit.device_ns,
    }


def _chunk_cost(chunk: ChunkCost) -> dict[str, Any]:
    return {
        **_place(chunk),
        "device_ns": chunk.device_ns,
        "cost_ns": chunk.cost_ns,
        "gaps": chunk.gaps,
    }


def _place(chunk: Chunk | ChunkCost) -> dict[str, Any]:
    """Which chunk it is, and where it ran."""
    return {
        "rid": chunk.name,
        "forward_id": chunk.forward_id,
        "number": chunk.number,
        "of": chunk.of,
        "prefix_len": chunk.prefix_len,
        "extend_end": chunk.extend_end,
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "kind": part.kind.name,
        "part_ns": part.part_ns,
        "forward_id": part.forward_id,
        "chunk": None if part.chunk is None else _place(part.chunk),
    }


def _culprits(culprits: Iterable[Culprit]) -> list[dict[str, Any]]:
    return [{"rid": culprit.name, "device_ns": culprit.device_ns} for culprit in culprits]


def _by_kind(sums: Mapping[PartKind, int]) -> dict[str, int]:
    return {kind.name: sums.get(kind, 0) for kind in PartKind}
