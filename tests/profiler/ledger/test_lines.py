"""A gap's ledger in lines: one a culprit with its chunks, then one a kind, and all sum to the gap."""

from profiler.ledger.lines import LedgerLine, ledger_lines
from profiler.ledger.parts import Chunk, GapDetail, Part, PartKind


def part(kind: PartKind, ns: int, forward_id: int | None = None, chunk: Chunk | None = None) -> Part:
    return Part(kind, ns, forward_id, chunk)


def chunk(rid: int, number: int, of: int | None, forward_id: int, ns: int) -> Chunk:
    return Chunk(rid, f"r{rid}", number, of, 0, 10, forward_id, 0, ns, ns)


def gap(*parts: Part) -> GapDetail:
    length = sum(each.part_ns for each in parts)
    return GapDetail(1, "r1", 37, 0, length, None, 7, "DECODE", None, (), (), (), None, None, None, parts)


def test_culprits_come_first_and_its_own_time_last() -> None:
    lines = ledger_lines(
        gap(
            part(PartKind.OTHERS_PREFILL, 1000, 5, chunk(7, 1, 2, 5, 1000)),
            part(PartKind.OTHERS_PREFILL, 500, 6, chunk(7, 2, 2, 6, 500)),
            part(PartKind.OTHERS_PREFILL, 200, 6, chunk(8, 1, 1, 6, 200)),
            part(PartKind.OWN_DECODE, 100, 7),
            part(PartKind.PLAN, 50),
            part(PartKind.WAIT, 150),
        )
    )
    assert lines == (
        LedgerLine(PartKind.OTHERS_PREFILL, "r7", 1500, 0.75, 2, (1, 2, 2)),
        LedgerLine(PartKind.OTHERS_PREFILL, "r8", 200, 0.1, 1, (1, 1, 1)),
        LedgerLine(PartKind.PLAN, None, 50, 0.025, 0),
        LedgerLine(PartKind.WAIT, None, 150, 0.075, 0),
        LedgerLine(PartKind.OWN_DECODE, None, 100, 0.05, 1),
    )


def test_a_culprit_has_a_line_for_each_kind() -> None:
    lines = ledger_lines(
        gap(
            part(PartKind.OTHERS_PREFILL, 40, 5, chunk(7, 1, None, 5, 40)),
            part(PartKind.MIXED_EXTRA, 60, 6, chunk(7, 2, None, 6, 60)),
        )
    )
    assert [(line.kind, line.part_ns, line.chunks) for line in lines] == [
        (PartKind.MIXED_EXTRA, 60, (2, 2, None)),
        (PartKind.OTHERS_PREFILL, 40, (1, 1, None)),
    ]


def test_a_gap_of_no_length_has_no_line() -> None:
    assert ledger_lines(gap()) == ()
