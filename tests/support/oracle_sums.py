"""Sums over the oracle's gaps: what a stall report says, by the definitions of its entries."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.ledger_oracle import KINDS, LedgerOracle, OracleGap

__all__ = [
    "OracleCost",
    "OracleGroup",
    "by_kind",
    "chunk_costs",
    "culprit_costs",
    "groups",
    "longest",
    "victims",
]

ChunkKey = tuple[int, int]  # rid and forward


@dataclass
class OracleCost:
    """What a chunk, or all chunks of a request, cost others."""

    cost_ns: int = 0
    longest_ns: int = 0
    gaps: int = 0
    chunks: set[ChunkKey] = field(default_factory=set)


@dataclass(frozen=True)
class OracleGroup:
    """Gaps with one start, own forward and cause."""

    gaps: tuple[OracleGap, ...]  # by rid

    @property
    def late_ns(self) -> int:
        """Of the first."""
        return self.gaps[0].late_ns

    @property
    def lost_ns(self) -> int:
        """Of all."""
        return sum(gap.late_ns for gap in self.gaps)


def by_kind(oracle: LedgerOracle) -> dict[str, int]:
    """Waiting by kind; every kind."""
    return {kind: sum(gap.by_kind[kind] for gap in oracle.gaps) for kind in KINDS}


def victims(oracle: LedgerOracle) -> dict[int, tuple[int, int, int, int, int]]:
    """By request: gaps, waiting, late, the longest gap and its token; who lost nothing is left out."""
    told = {}
    for rid in {gap.rid for gap in oracle.gaps}:
        mine = [gap for gap in oracle.gaps if gap.rid == rid]
        worst = max(mine, key=lambda gap: (gap.gap_ns, -gap.token_index))
        late_ns = sum(gap.late_ns for gap in mine)
        if late_ns:
            waiting_ns = sum(gap.gap_ns for gap in mine)
            told[rid] = (len(mine), waiting_ns, late_ns, worst.gap_ns, worst.token_index)
    return told


def chunk_costs(oracle: LedgerOracle) -> dict[ChunkKey, OracleCost]:
    """By chunk; those that cost nobody anything are left out."""
    costs: dict[ChunkKey, OracleCost] = defaultdict(OracleCost)
    for charged in _charges(oracle):
        for key, ns in charged.items():
            cost = costs[key]
            cost.cost_ns += ns
            cost.longest_ns = max(cost.longest_ns, ns)
            cost.gaps += 1
            cost.chunks.add(key)
    return dict(costs)


def culprit_costs(oracle: LedgerOracle) -> dict[int, OracleCost]:
    """By request; those that cost nobody anything are left out."""
    costs: dict[int, OracleCost] = defaultdict(OracleCost)
    for charged in _charges(oracle):
        for rid in {rid for rid, _ in charged}:
            taken = sum(ns for (culprit, _), ns in charged.items() if culprit == rid)
            costs[rid].cost_ns += taken
            longest_ns = max(ns for (culprit, _), ns in charged.items() if culprit == rid)
            costs[rid].longest_ns = max(costs[rid].longest_ns, longest_ns)
            costs[rid].gaps += 1
            costs[rid].chunks |= {key for key in charged if key[0] == rid}
    return dict(costs)


def groups(oracle: LedgerOracle, top: int) -> list[OracleGroup]:
    """The `top` latest and the `top` that lost most, latest first."""
    late = sorted(
        (group for group in _groups(oracle) if group.late_ns),
        key=lambda group: (-group.late_ns, group.gaps[0].start_ns, [gap.rid for gap in group.gaps]),
    )
    lost = sorted(late, key=lambda group: -group.lost_ns)[:top]
    return [group for at, group in enumerate(late) if at < top or group in lost]


def longest(oracle: LedgerOracle) -> OracleGroup | None:
    """The group of the longest gap; of equals the earliest, then that of the lowest rid."""
    order = sorted(oracle.gaps, key=lambda gap: (-gap.gap_ns, gap.start_ns, gap.rid))
    return next((group for gap in order[:1] for group in _groups(oracle) if gap in group.gaps), None)


def _groups(oracle: LedgerOracle) -> list[OracleGroup]:
    together = defaultdict(list)
    for gap in oracle.gaps:
        together[gap.start_ns, gap.own, gap.cause].append(gap)
    return [OracleGroup(tuple(sorted(gaps, key=lambda gap: gap.rid))) for gaps in together.values()]


def _charges(oracle: LedgerOracle) -> Iterator[dict[ChunkKey, int]]:
    """For each gap, what each chunk took of it."""
    for gap in oracle.gaps:
        charged: dict[ChunkKey, int] = defaultdict(int)
        for (_, forward_id, culprit), ns in gap.parts.items():
            if forward_id is not None and culprit is not None:
                charged[culprit, forward_id] += ns
        yield dict(charged)
