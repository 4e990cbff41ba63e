"""Gaps with one start, one own forward and one cause, put together: tokens late at one instant."""

from collections.abc import Callable, Iterable, Sequence

from profiler.culprits import Culprit, ranked_culprits
from profiler.forward_table import UNKNOWN
from profiler.ledger.gap_pieces import LedgerSource
from profiler.ledger.parts import PartKind
from profiler.ledger.report import StallGroup
from profiler.ledger.unusual_gaps import GapSums

__all__ = ["stall_groups", "worst_groups"]


def stall_groups(
    gaps: Iterable[tuple[int, GapSums]], source: LedgerSource, name_of: Callable[[int], str]
) -> list[StallGroup]:
    """Groups of gaps, each given with its token index; all gaps of a group must be among them."""
    together: dict[tuple[int, int, PartKind], list[tuple[int, GapSums]]] = {}
    for index, gap in gaps:
        together.setdefault((gap.span.start_ns, gap.span.own, gap.cause), []).append((index, gap))
    return [_group(members, source, name_of) for members in together.values()]


def worst_groups(groups: Sequence[StallGroup], top: int) -> tuple[StallGroup, ...]:
    """The `top` with the largest late_ns and the `top` with the largest lost_ns, the former order."""
    late = [group for group in groups if group.late_ns > 0]
    late.sort(key=lambda group: (-group.late_ns, group.start_ns, group.rids))
    lost = sorted(late, key=lambda group: -group.lost_ns)[:top]
    return tuple(group for at, group in enumerate(late) if at < top or group in lost)


def _group(
    members: list[tuple[int, GapSums]], source: LedgerSource, name_of: Callable[[int], str]
) -> StallGroup:
    members.sort(key=lambda member: member[1].span.rid)
    index, first = members[0]
    rids = tuple(gap.span.rid for _, gap in members)
    return StallGroup(
        start_ns=first.span.start_ns,
        end_ns=first.span.end_ns,
        own_forward_id=int(source.forwards.forward_id[first.span.own]),
        cause=first.cause,
        rids=rids,
        names=tuple(name_of(rid) for rid in rids),
        token_index=index,
        gap_ns=first.gap_ns,
        late_ns=first.late_ns,
        lost_ns=sum(gap.late_ns for _, gap in members),
        by_kind={kind: ns for kind, ns in first.by_kind.items() if ns},
        culprits=_culprits(first, source, name_of),
    )


def _culprits(gap: GapSums, source: LedgerSource, name_of: Callable[[int], str]) -> tuple[Culprit, ...]:
    charged = gap.pieces.chunk != UNKNOWN
    rids = source.chunks.rid[gap.pieces.chunk[charged]].tolist()
    return ranked_culprits(zip(rids, gap.pieces.ns[charged].tolist(), strict=True), name_of)
