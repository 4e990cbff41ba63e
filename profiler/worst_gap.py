"""The longest gap of a trace, taken apart, and which forward took the most of it."""

from profiler.forward_table import forward_table
from profiler.ledger.gap_reader import GapReader
from profiler.ledger.own_rows import SpecialRows
from profiler.ledger.parts import OWN_KINDS, GapDetail
from profiler.ledger.source import ledger_source
from profiler.mixed_extra import mixed_extras
from profiler.request_rows import request_rows
from profiler.tables import TraceLike, request_names
from profiler.token_gaps import longest_gap, token_gaps

__all__ = ["culprit_forward_id", "worst_gap"]


def worst_gap(trace: TraceLike) -> GapDetail | None:
    """The longest gap, the earliest of equals, then the lowest rid; None when no request gave two tokens."""
    forwards = forward_table(trace)
    rows = request_rows(trace, forwards)
    between = token_gaps(rows, forwards)
    longest = longest_gap(between)
    if longest is None:
        return None
    names = request_names(trace)
    reader = GapReader(
        ledger_source(trace, forwards, SpecialRows.of(rows), mixed_extras(forwards)),
        rows.only,
        lambda rid: names.get(rid, str(rid)),
    )
    return reader.gap(int(rows.rids[between.request[longest]]), int(rows.token_index[between.row[longest]]))


def culprit_forward_id(gap: GapDetail) -> int | None:
    """The forward that took the most of a gap, its own decode left out; None where there is none."""
    charges: dict[int, int] = {}
    for part in gap.parts:
        if part.forward_id is not None and part.kind not in OWN_KINDS:
            charges[part.forward_id] = charges.get(part.forward_id, 0) + part.part_ns
    return max(charges, key=lambda forward_id: (charges[forward_id], -forward_id), default=None)
