"""Holds every gap of a trace, and its stall report, against the oracle of the ledger."""

from collections import Counter
from collections.abc import Iterable

from profiler.forward_table import forward_table
from profiler.ledger.gap_reader import GapReader
from profiler.ledger.own_rows import SpecialRows
from profiler.ledger.parts import GapDetail
from profiler.ledger.report import StallGroup, StallReport
from profiler.ledger.source import ledger_source
from profiler.ledger.stall_report import stall_report
from profiler.mixed_extra import mixed_extras
from profiler.price_rows import ForwardCostModel
from profiler.request_rows import request_rows
from profiler.tables import TraceLike, request_names
from tests.support import oracle_sums
from tests.support.ledger_oracle import LedgerOracle, PartKey
from tests.support.oracle_sums import OracleGroup

__all__ = ["ALL", "gap_reader", "gaps_agree", "ledgers_agree", "parts_of", "report_agrees"]

ALL = 10**6
Group = tuple[int, int, int, str, tuple[int, ...], int, int, int, dict[str, int]]


def gap_reader(trace: TraceLike, split: tuple[str, ForwardCostModel] | None = None) -> GapReader:
    """What `Timeline.gap` asks, for traces in memory too; `split` is a cost model and its name."""
    forwards = forward_table(trace)
    rows = request_rows(trace, forwards)
    source = ledger_source(trace, forwards, SpecialRows.of(rows), mixed_extras(forwards), split)
    names = request_names(trace)
    return GapReader(source, rows.only, lambda rid: names.get(rid, str(rid)))


def ledgers_agree(
    trace: TraceLike, split: tuple[str, ForwardCostModel] | None = None, tops: Iterable[int] = (5,)
) -> Counter[str]:
    """Asserts that every gap and all sums are the oracle's; how many parts of each kind there are."""
    oracle = LedgerOracle(trace, split and split[1].seconds)
    kinds = gaps_agree(trace, oracle, split)
    for top in tops:
        report_agrees(stall_report(trace, top, split), oracle, top)
    return kinds


def gaps_agree(
    trace: TraceLike, oracle: LedgerOracle, split: tuple[str, ForwardCostModel] | None = None
) -> Counter[str]:
    """Asserts that the parts of every gap sum to it and are the oracle's; how many there are of each kind."""
    reader = gap_reader(trace, split)
    rids = {row["rid"] for row in oracle.rows if row["rid"] is not None}
    found = {(gap.rid, gap.token_index): gap for rid in sorted(rids) for gap in reader.all(rid)}
    assert set(found) == {(gap.rid, gap.token_index) for gap in oracle.gaps}
    kinds: Counter[str] = Counter()
    for told in oracle.gaps:
        gap = found[told.rid, told.token_index]
        assert (gap.start_ns, gap.end_ns, gap.own_forward_id) == (told.start_ns, told.end_ns, told.own)
        assert all(type(part.part_ns) is int and part.part_ns >= 0 for part in gap.parts)
        assert sum(part.part_ns for part in gap.parts) == gap.gap_ns
        assert parts_of(gap) == told.parts, (told.rid, told.token_index)
        assert gap.late_ns == told.late_ns
        kinds.update(part.kind.name for part in gap.parts)
    return kinds


def report_agrees(report: StallReport, oracle: LedgerOracle, top: int) -> None:
    """Asserts that a report says what the oracle's sums do."""
    kinds = {kind.name: ns for kind, ns in report.by_kind.items()}
    assert kinds == oracle_sums.by_kind(oracle)
    assert report.gaps == len(oracle.gaps)
    assert report.waiting_ns == sum(gap.gap_ns for gap in oracle.gaps) == sum(kinds.values())
    assert report.late_ns == sum(gap.late_ns for gap in oracle.gaps)
    assert dict(zip(kinds, report.over_time.waiting_ns.sum(axis=0).tolist(), strict=True)) == kinds

    told = oracle_sums.victims(oracle)
    worst = sorted(told, key=lambda rid: (-told[rid][2], rid))[:top]
    assert [
        (v.rid, v.gaps, v.waiting_ns, v.late_ns, v.longest_ns, v.longest_token_index) for v in report.victims
    ] == [(rid, *told[rid]) for rid in worst]

    costs = oracle_sums.culprit_costs(oracle)
    dearest = sorted(costs, key=lambda rid: (-costs[rid].cost_ns, rid))[:top]
    assert [(c.rid, c.chunks, c.cost_ns, c.longest_ns) for c in report.culprits] == [
        (rid, len(costs[rid].chunks), costs[rid].cost_ns, costs[rid].longest_ns) for rid in dearest
    ]

    chunks = oracle_sums.chunk_costs(oracle)
    assert all(
        (c.cost_ns, c.gaps) == (chunks[c.rid, c.forward_id].cost_ns, chunks[c.rid, c.forward_id].gaps)
        for c in report.chunks
    )
    most = sorted((cost.cost_ns for cost in chunks.values()), reverse=True)[:top]
    assert [c.cost_ns for c in report.chunks] == most
    if top >= len(chunks):
        assert sum(most) == sum(cost.cost_ns for cost in costs.values())

    assert [_group(group) for group in report.groups] == [_told(g) for g in oracle_sums.groups(oracle, top)]
    longest = oracle_sums.longest(oracle)
    assert (report.longest and _group(report.longest)) == (longest and _told(longest))


def _group(group: StallGroup) -> Group:
    by_kind = {kind.name: ns for kind, ns in group.by_kind.items() if ns}
    place = (group.start_ns, group.end_ns, group.own_forward_id, group.cause.name)
    return *place, group.rids, group.token_index, group.late_ns, group.lost_ns, by_kind


def _told(group: OracleGroup) -> Group:
    first = group.gaps[0]
    by_kind = {kind: ns for kind, ns in first.by_kind.items() if ns}
    place = (first.start_ns, first.end_ns, first.own, first.cause)
    rids = tuple(gap.rid for gap in group.gaps)
    return *place, rids, first.token_index, group.late_ns, group.lost_ns, by_kind


def parts_of(gap: GapDetail) -> dict[PartKey, int]:
    """The parts of a gap in the oracle's form."""
    parts: Counter[PartKey] = Counter()
    for part in gap.parts:
        parts[part.kind.name, part.forward_id, part.chunk.rid if part.chunk else None] += part.part_ns
    return {key: ns for key, ns in parts.items() if ns}
