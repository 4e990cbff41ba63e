"""Rows of the list of worst stalls: those of the report, or one a request; in an order, and found by name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum

from profiler.ledger.parts import GapDetail, PartKind
from profiler.ledger.report import StallGroup
from profiler.ledger.why import main_cause

__all__ = ["MOST_ROWS", "Order", "holds", "in_sight", "of_each", "ordered", "same_stall"]

MOST_ROWS = 200  # of one request each: as many gaps are taken apart


class Order(Enum):
    """What the rows are sorted by, in the words of the screen."""

    LATE = "late by"
    LOST = "lost in all"


def ordered(rows: Iterable[StallGroup], order: Order) -> list[StallGroup]:
    """Those who lost anything, the largest first; of equals the earliest."""
    rows = [row for row in rows if row.late_ns > 0]
    if order is Order.LATE:
        return sorted(rows, key=lambda row: (-row.late_ns, row.start_ns, row.rids))
    return sorted(rows, key=lambda row: (-row.lost_ns, row.start_ns, row.rids))


def of_each(groups: Sequence[StallGroup], gap_at: Callable[[int, int], GapDetail | None]) -> list[StallGroup]:
    """One row for every request that waited, at most MOST_ROWS; `gap_at` gives its gap that holds a time."""
    rows: list[StallGroup] = []
    for group in groups:
        for rid in group.rids:
            if len(rows) == MOST_ROWS:
                return rows
            gap = gap_at(rid, group.start_ns)
            if gap is not None:
                rows.append(_alone(gap))
    return rows


def holds(row: StallGroup, text: str) -> bool:
    """Whether the name of somebody who waited, or of a culprit, contains the text, whatever its case."""
    wanted = text.casefold()
    names = (*row.names, *(culprit.name for culprit in row.culprits))
    return any(wanted in name.casefold() for name in names)


def same_stall(one: StallGroup, other: StallGroup) -> bool:
    """Whether both rows tell of the same wait, grouped or not."""
    if (one.start_ns, one.own_forward_id) != (other.start_ns, other.own_forward_id):
        return False
    return not set(one.rids).isdisjoint(other.rids)


def in_sight(total: int, at: int, most: int) -> range:
    """Which of so many rows are shown where there is room for `most`: all, or those around row `at`."""
    most = max(most, 0)
    first = min(max(at - most // 2, 0), max(total - most, 0))
    return range(first, min(first + most, total))


def _alone(gap: GapDetail) -> StallGroup:
    """The row of one gap."""
    cause = main_cause(gap)
    return StallGroup(
        start_ns=gap.start_ns,
        end_ns=gap.end_ns,
        own_forward_id=gap.own_forward_id,
        cause=PartKind.OWN_DECODE if cause is None else cause,
        rids=(gap.rid,),
        names=(gap.name,),
        token_index=gap.token_index,
        gap_ns=gap.gap_ns,
        late_ns=gap.late_ns,
        lost_ns=gap.late_ns,
        by_kind=dict(_sums(gap)),
        culprits=gap.culprits,
    )


def _sums(gap: GapDetail) -> Iterator[tuple[PartKind, int]]:
    return ((kind, gap.sum_ns([kind])) for kind in PartKind)
