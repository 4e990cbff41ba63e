"""Gaps and reports made by hand, for what the Stalls screen makes of them."""

from collections.abc import Sequence

import numpy as np

from profiler.culprits import Culprit
from profiler.ledger.parts import Chunk, GapDetail, Part, PartKind
from profiler.ledger.report import CausesOverTime, StallGroup, StallReport

__all__ = ["MS", "chunk", "gap", "group", "report", "text_of"]

MS = 1_000_000


def text_of(lines: list[list[tuple[str, int]]]) -> str:
    """The words of lines."""
    return "\n".join("".join(text for text, _ in line) for line in lines)


def chunk(rid: int, number: int, forward_id: int, ns: int, *, name: str = "", of: int | None = 9) -> Chunk:
    """Chunk `number` of a prompt in chunks of 100 tokens, in a forward that ran for as long as it took."""
    start_ns = forward_id * 10 * MS
    prefix_len = 100 * (number - 1)
    return Chunk(
        rid,
        name or f"r{rid}",
        number,
        of,
        prefix_len,
        prefix_len + 100,
        forward_id,
        start_ns,
        start_ns + ns,
        ns,
    )


def gap(*parts: Part, rid: int = 0, name: str = "victim", start_ns: int = 0) -> GapDetail:
    """A gap that consists of the parts."""
    chunks = tuple(part.chunk for part in parts if part.chunk is not None)
    costs: dict[int, int] = {}
    for each in chunks:
        costs[each.rid] = costs.get(each.rid, 0) + each.in_gap_ns
    names = {each.rid: each.name for each in chunks}
    ranked = sorted(costs.items(), key=lambda item: -item[1])
    return GapDetail(
        rid=rid,
        name=name,
        token_index=7,
        start_ns=start_ns,
        end_ns=start_ns + sum(part.part_ns for part in parts),
        median_gap_ns=None,
        own_forward_id=99,
        own_mode="DECODE",
        own_start_ns=None,
        forwards=(),
        culprits=tuple(Culprit(each, names[each], ns) for each, ns in ranked),
        chunks=chunks,
        costliest=max(chunks, key=lambda each: each.in_gap_ns, default=None),
        mixed_extra_ns=None,
        mixed_extra_estimator=None,
        parts=parts,
    )


def group(start_ns: int, late_ns: int, names: Sequence[str], culprits: Sequence[Culprit] = ()) -> StallGroup:
    """Requests of these names, each late by as much for others' prefill."""
    return StallGroup(
        start_ns=start_ns,
        end_ns=start_ns + late_ns + MS,
        own_forward_id=1 + start_ns // MS,
        cause=PartKind.OTHERS_PREFILL,
        rids=tuple(range(len(names))),
        names=tuple(names),
        token_index=3,
        gap_ns=late_ns + MS,
        late_ns=late_ns,
        lost_ns=late_ns * len(names),
        by_kind={PartKind.OTHERS_PREFILL: late_ns, PartKind.OWN_DECODE: MS},
        culprits=tuple(culprits),
    )


def report(*groups: StallGroup) -> StallReport:
    """A report of these groups and nothing else."""
    by_kind = {kind: sum(g.by_kind.get(kind, 0) * g.requests for g in groups) for kind in PartKind}
    return StallReport(
        gaps=sum(g.requests for g in groups),
        waiting_ns=sum(by_kind.values()),
        late_ns=sum(g.lost_ns for g in groups),
        by_kind=by_kind,
        longest=max(groups, key=lambda g: g.gap_ns, default=None),
        groups=groups,
        victims=(),
        culprits=(),
        chunks=(),
        over_time=CausesOverTime(np.array([0, 1]), np.zeros((1, len(PartKind)), dtype=np.int64)),
        split="tokens",
        mixed_extra_estimator=None,
    )
