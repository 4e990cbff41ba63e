"""The whole ledger of ten forwards, first tokens and findings, written out; all times are milliseconds.

`tests/support/ten_forwards.py` draws the run. Every gap of n forwards has 6 ms of host for each: 1 planned, 1
launched, 1 for the result, 1 waiting before and 1 after the device, 1 idle before the plan.
"""

from collections.abc import Iterator

import pytest

from profiler.findings import Thresholds, findings
from profiler.invariants import Status, check_trace
from profiler.ledger.parts import Chunk, GapDetail
from profiler.ledger.report import StallGroup
from profiler.ledger.stall_report import stall_report
from profiler.ledger.ttft import ttft_ledger
from profiler.ledger.ttft_parts import TtftPart
from tests.support.ledger_checks import ALL, gap_reader, ledgers_agree
from tests.support.ten_forwards import MS, NAMES, ten_forwards

Line = tuple[object, ...]


def host(forwards: int, idle: int = 0) -> tuple[Line, ...]:
    """What no forward holds in a gap of so many, with `idle` more."""
    once = (("PLAN", forwards), ("LAUNCH", forwards), ("RESULT", forwards))
    return (*once, ("WAIT", 2 * forwards), ("IDLE", forwards + idle))


# The kind of part, how long, which forward, and whose chunk it is charged to.
GAPS: dict[tuple[str, int], tuple[int, tuple[Line, ...]]] = {
    # Forward 1 decodes ann and bob, and nothing is in its way.
    ("ann", 1): (14, (("OWN_DECODE", 8, 1), *host(1))),
    ("bob", 1): (14, (("OWN_DECODE", 8, 1), *host(1))),
    # Forward 2 computes doc's first chunk alone. Forward 3 computes the second beside both decodes, in 14 ms;
    # the only decode forward like it took 8 (2 rows, which read 18 tokens instead of 20): the chunk cost 6.
    ("ann", 2): (
        46,
        (
            ("OTHERS_PREFILL", 20, 2, "doc 1/2"),
            ("OWN_DECODE", 8, 3),
            ("MIXED_EXTRA", 6, 3, "doc 2/2"),
            *host(2),
        ),
    ),
    ("bob", 2): (
        46,
        (
            ("OTHERS_PREFILL", 20, 2, "doc 1/2"),
            ("OWN_DECODE", 8, 3),
            ("MIXED_EXTRA", 6, 3, "doc 2/2"),
            *host(2),
        ),
    ),
    # Forwards 4 and 5 decode ann and doc.
    ("ann", 3): (15, (("OWN_DECODE", 9, 4), *host(1))),
    ("doc", 1): (15, (("OWN_DECODE", 9, 4), *host(1))),
    ("ann", 4): (15, (("OWN_DECODE", 9, 5), *host(1))),
    ("doc", 2): (15, (("OWN_DECODE", 9, 5), *host(1))),
    # Meanwhile bob had given its KV back, then was deferred: those forwards are nobody's chunk. Forward 6
    # computes its 11 tokens anew, and eve's 5 beside them.
    ("bob", 3): (
        52,
        (
            ("RETRACTED", 9, 4),
            ("DEFERRED", 9, 5),
            ("RECOMPUTE", 11, 6),
            ("OTHERS_PREFILL", 5, 6, "eve 1/1"),
            *host(3),
        ),
    ),
    # ann and doc sit forward 6 out: it is bob's and eve's by their tokens.
    ("ann", 5): (
        38,
        (("SIT_OUT", 11, 6, "bob 1/1"), ("SIT_OUT", 5, 6, "eve 1/1"), ("OWN_DECODE", 10, 7), *host(2)),
    ),
    ("doc", 3): (
        38,
        (("SIT_OUT", 11, 6, "bob 1/1"), ("SIT_OUT", 5, 6, "eve 1/1"), ("OWN_DECODE", 10, 7), *host(2)),
    ),
    ("bob", 4): (16, (("OWN_DECODE", 10, 7), *host(1))),
    ("eve", 1): (16, (("OWN_DECODE", 10, 7), *host(1))),
    # Before forward 8 nothing happens for 30 ms.
    ("ann", 6): (46, (("OWN_DECODE", 10, 8), *host(1, idle=30))),
    ("bob", 5): (46, (("OWN_DECODE", 10, 8), *host(1, idle=30))),
    ("doc", 4): (46, (("OWN_DECODE", 10, 8), *host(1, idle=30))),
    ("eve", 2): (46, (("OWN_DECODE", 10, 8), *host(1, idle=30))),
    ("bob", 6): (16, (("OWN_DECODE", 10, 9), *host(1))),
    ("doc", 5): (16, (("OWN_DECODE", 10, 9), *host(1))),
    ("eve", 3): (16, (("OWN_DECODE", 10, 9), *host(1))),
}

# The kind of part, how long, which forward or round; which budget blocked it, behind whom; whose chunk.
FIRST_TOKENS: dict[str, tuple[int, tuple[Line, ...]]] = {
    # Nobody planned before 4 ms, and the two share forward 0.
    "ann": (
        25,
        (
            ("IDLE", 4),
            ("OWN_CHUNKS", 8, 0),
            ("OTHERS_PREFILL", 8, 0, "bob 1/1"),
            *host(1)[:-1],
        ),
    ),
    "bob": (
        24,
        (
            ("IDLE", 3),
            ("OTHERS_PREFILL", 8, 0, "ann 1/1"),
            ("OWN_CHUNKS", 8, 0),
            *host(1)[:-1],
        ),
    ),
    # Round 0 stopped at doc, as ann and bob took the total budget. Round 1 admitted nobody and says no more:
    # of such a round idle time does not count as blocked. Rounds 2 and 3 compute doc.
    "doc": (
        83,
        (
            ("IDLE", 2),
            ("BLOCKED", 11, 0, "TOTAL", "ann 1/1"),
            ("BLOCKED", 11, 0, "TOTAL", "bob 1/1"),
            ("BLOCKED", 13, 1),
            ("IDLE", 1),
            ("OWN_CHUNKS", 20, 2),
            ("OWN_CHUNKS", 14, 3),
            *host(2)[:-1],
            ("IDLE", 1),
        ),
    ),
    # eve stands behind doc, then does not fit beside its chunks, then the interval keeps prompts out.
    "eve": (
        134,
        (
            ("IDLE", 1),
            ("BLOCKED", 11, 0, "TOTAL", "behind doc", "ann 1/1"),
            ("BLOCKED", 11, 0, "TOTAL", "behind doc", "bob 1/1"),
            ("BLOCKED", 13, 1),
            ("IDLE", 1),
            ("BLOCKED", 26, 2, "CHUNK", "doc 1/2"),
            ("BLOCKED", 20, 3, "TOTAL", "doc 2/2"),
            ("BLOCKED", 14, 4),
            ("IDLE", 1),
            ("DEFERRED", 15, 5),
            ("OTHERS_PREFILL", 11, 6, "bob 1/1"),
            ("OWN_CHUNKS", 5, 6),
            *host(1)[:-1],
        ),
    ),
}


def test_the_ledger_of_every_gap() -> None:
    found = {(gap.name, gap.token_index): (ms(gap.gap_ns), tuple(_lines(gap))) for gap in _gaps()}
    assert found == GAPS


def test_every_gap_is_as_long_as_its_parts() -> None:
    for length, lines in (*GAPS.values(), *FIRST_TOKENS.values()):
        assert sum(int(str(line[1])) for line in lines) == length


@pytest.mark.parametrize("name", NAMES)
def test_the_ledger_of_every_first_token(name: str) -> None:
    ledger = ttft_ledger(ten_forwards(), NAMES.index(name))
    assert ledger is not None
    assert (ms(ledger.ttft_ns), tuple(_first_token_line(part) for part in ledger.parts)) == FIRST_TOKENS[name]


def test_the_oracle_says_the_same() -> None:
    ledgers_agree(ten_forwards(), tops=(1, 4, ALL))


def test_the_run_breaks_no_rule() -> None:
    assert check_trace(ten_forwards()).having(Status.VIOLATED) == ()


def test_the_sums() -> None:
    report = stall_report(ten_forwards())
    assert (report.gaps, ms(report.waiting_ns), ms(report.late_ns)) == (20, 572, 394)
    assert {kind.name: ms(ns) for kind, ns in report.by_kind.items() if ns} == {
        "OWN_DECODE": 178,
        "OTHERS_PREFILL": 45,
        "MIXED_EXTRA": 12,
        "RECOMPUTE": 11,
        "SIT_OUT": 32,
        "RETRACTED": 9,
        "DEFERRED": 9,
        "PLAN": 26,
        "LAUNCH": 26,
        "RESULT": 26,
        "WAIT": 52,
        "IDLE": 146,
    }
    assert report.split == "tokens"
    assert report.mixed_extra_estimator == "median of DECODE forwards within 25 %"


def test_who_lost_time() -> None:
    victims = stall_report(ten_forwards()).victims
    assert [(v.name, v.gaps, ms(v.waiting_ns), ms(v.late_ns), ms(v.longest_ns)) for v in victims] == [
        ("bob", 6, 190, 144, 52),
        ("ann", 6, 174, 120, 46),
        ("doc", 5, 130, 82, 46),
        ("eve", 3, 78, 48, 46),
    ]


def test_who_took_it() -> None:
    """doc's two chunks cost ann and bob; bob's and eve's the two that sat out, and eve's bob as well."""
    report = stall_report(ten_forwards())
    assert [
        (c.name, c.chunks, ms(c.cost_ns), ms(c.longest_ns), ms(c.device_ns)) for c in report.culprits
    ] == [
        ("doc", 2, 52, 20, 34),
        ("bob", 1, 22, 11, 19),
        ("eve", 1, 15, 5, 5),
    ]
    assert [(c.name, c.number, c.of, c.forward_id, ms(c.cost_ns), c.gaps) for c in report.chunks] == [
        ("doc", 1, 2, 2, 40, 2),
        ("bob", 1, 1, 6, 22, 2),
        ("eve", 1, 1, 6, 15, 3),
        ("doc", 2, 2, 3, 12, 2),
    ]


def test_tokens_late_at_one_instant() -> None:
    """By how much the first of them was late, and all together."""
    report = stall_report(ten_forwards(), top=4)
    assert [_group(group) for group in report.groups] == [
        ("bob", "RECOMPUTE", 85, 52, 52),
        ("ann bob", "OTHERS_PREFILL", 39, 38, 76),
        ("ann bob doc eve", "IDLE", 153, 36, 144),
        ("ann doc", "SIT_OUT", 115, 28, 56),
    ]
    assert report.longest == report.groups[0]


def test_the_findings() -> None:
    storm, limited = findings(ten_forwards())
    assert (storm.title, storm.rids, storm.forward_ids) == ("Retraction storm", (1,), (4,))
    assert storm.numbers == {
        "retractions": 1,
        "retractions_per_request": 0.25,
        "recomputed_tokens": 10,
        "recomputed_share": 10 / 56,
    }
    assert (storm.at_ns, storm.lost_ns) == (86 * MS, 30 * MS)  # until it was admitted again
    assert (limited.title, limited.rids, limited.forward_ids) == ("KV-limited admission", (2, 3), (0, 1))
    assert limited.numbers["forwards"] == 4  # 0 and 3 say TOTAL; 1 and 4 admitted nobody with slots left


def test_findings_of_other_thresholds() -> None:
    found = findings(ten_forwards(), Thresholds(starvation_forwards=1, retractions_per_request=1))
    assert [finding.title for finding in found] == [
        "Prefill-first starvation",
        "Retraction storm",
        "KV-limited admission",
    ]
    starvation = found[0]
    assert (starvation.forward_ids, starvation.lost_ns) == ((2,), 40 * MS)  # 20 ms of two requests
    assert starvation.numbers["silent_ns"] == 46 * MS


def ms(ns: int | None) -> int | None:
    """Whole milliseconds."""
    if ns is None:
        return None
    whole, rest = divmod(ns, MS)
    assert rest == 0
    return whole


def _gaps() -> Iterator[GapDetail]:
    reader = gap_reader(ten_forwards())
    for rid in range(len(NAMES)):
        yield from reader.all(rid)


def _lines(gap: GapDetail) -> Iterator[Line]:
    for part in gap.parts:
        place = () if part.forward_id is None else (part.forward_id,)
        yield part.kind.name, ms(part.part_ns), *place, *_of(part.chunk)


def _first_token_line(part: TtftPart) -> Line:
    place = () if part.forward_id is None else (part.forward_id,)
    budget = () if part.budget is None else (part.budget.name,)
    behind = () if part.behind_name is None else (f"behind {part.behind_name}",)
    return part.kind.name, ms(part.part_ns), *place, *budget, *behind, *_of(part.chunk)


def _of(chunk: Chunk | None) -> tuple[str, ...]:
    return () if chunk is None else (f"{chunk.name} {chunk.number}/{chunk.of}",)


def _group(group: StallGroup) -> Line:
    return " ".join(group.names), group.cause.name, ms(group.start_ns), ms(group.late_ns), ms(group.lost_ns)
