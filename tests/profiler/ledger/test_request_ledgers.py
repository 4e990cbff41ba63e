"""The gaps of one request, and what one request's chunks cost others."""

from collections import Counter
from itertools import pairwise

import pytest

from profiler.ledger.culprit_costs import chunk_tolls, costliest, victims_of
from profiler.ledger.parts import PartKind
from profiler.ledger.request_ledgers import RequestLedgers, worst_gaps
from profiler.tables import request_names
from tests.support.ledgers import FEW, LONG
from tests.support.three_runs import record_three_runs
from traces.reader import Trace, open_trace

POLICIES = ("whole", "chunked", "mixed")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    paths = record_three_runs(tmp_path_factory.mktemp("runs"), FEW)
    return {name: open_trace(paths[name]) for name in POLICIES}


@pytest.fixture(scope="module", params=POLICIES)
def trace(request: pytest.FixtureRequest, traces: dict[str, Trace]) -> Trace:
    return traces[request.param]


@pytest.fixture(scope="module")
def ledgers(trace: Trace) -> RequestLedgers:
    return RequestLedgers.of(trace, request_names(trace))


def test_what_chunks_cost_is_what_the_gaps_of_all_others_were_charged(
    trace: Trace, ledgers: RequestLedgers
) -> None:
    wanted: Counter[tuple[int, int, int]] = Counter()  # by culprit, its forward, and who waited
    for rid in request_names(trace):
        for gap in ledgers.gaps_of(rid):
            for part in gap.parts:
                if part.chunk is not None:
                    wanted[part.chunk.rid, part.chunk.forward_id, rid] += part.part_ns
    assert wanted
    found: Counter[tuple[int, int, int]] = Counter()
    for rid in request_names(trace):
        tolls = chunk_tolls(ledgers.gaps_behind(rid), rid)
        assert [toll.chunk.start_ns for toll in tolls] == sorted(toll.chunk.start_ns for toll in tolls)
        for toll in tolls:
            assert toll.cost_ns == sum(victim.cost_ns for victim in toll.victims)
            for victim in toll.victims:
                found[rid, toll.chunk.forward_id, victim.rid] += victim.cost_ns
        assert sum(cost_ns for _, cost_ns in victims_of(tolls)) == sum(toll.cost_ns for toll in tolls)
    assert found == wanted


def test_every_gap_of_a_request_is_there_and_sums_exactly(trace: Trace, ledgers: RequestLedgers) -> None:
    for rid in request_names(trace):
        gaps = ledgers.gaps_of(rid)
        assert [gap.token_index for gap in gaps] == list(range(1, len(gaps) + 1))
        assert all(sum(part.part_ns for part in gap.parts) == gap.gap_ns for gap in gaps)
        assert all(before.end_ns == after.start_ns for before, after in pairwise(gaps))


def test_worst_gaps_are_long_ones_longest_first_and_never_none(ledgers: RequestLedgers) -> None:
    gaps = ledgers.gaps_of(0)
    lengths = [gap.gap_ns for gap in worst_gaps(gaps, len(gaps))]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == max(gap.gap_ns for gap in gaps)
    middle = gaps[0].median_gap_ns or 0
    assert lengths == sorted((gap.gap_ns for gap in gaps if gap.gap_ns >= 2 * middle), reverse=True)
    assert worst_gaps(gaps, 1) == worst_gaps(gaps, 9)[:1]
    even = [gap for gap in gaps if gap.gap_ns < 2 * middle]
    assert worst_gaps(even, 5) == [max(even, key=lambda gap: gap.gap_ns)]
    assert worst_gaps([], 5) == []


def test_the_costliest_chunks_stay_in_order(ledgers: RequestLedgers) -> None:
    tolls = chunk_tolls(ledgers.gaps_behind(LONG), LONG)
    two = costliest(tolls, 2)
    assert sorted(toll.cost_ns for toll in two) == sorted(toll.cost_ns for toll in tolls)[-2:]
    assert [toll.chunk.start_ns for toll in two] == sorted(toll.chunk.start_ns for toll in two)
    assert costliest(tolls, 99) == list(tolls)


def test_a_request_nobody_waited_for_cost_nothing(ledgers: RequestLedgers) -> None:
    assert chunk_tolls(ledgers.gaps_behind(12345), 12345) == ()
    assert ledgers.gaps_of(12345) == []


def test_a_long_prompt_costs_under_every_policy(traces: dict[str, Trace]) -> None:
    prefill, riding = {PartKind.OTHERS_PREFILL}, {PartKind.MIXED_EXTRA, PartKind.MIXED_UNKNOWN}
    for name, causes in {"whole": prefill, "chunked": prefill, "mixed": riding}.items():
        ledgers = RequestLedgers.of(traces[name], request_names(traces[name]))
        tolls = chunk_tolls(ledgers.gaps_behind(LONG), LONG)
        assert [victim for victim, _ in victims_of(tolls)[:3]] == ["decode-1", "decode-2", "decode-3"]
        wall = worst_gaps(ledgers.gaps_of(0), 1)[0]
        assert wall.culprits[0].rid == LONG
        assert max(PartKind, key=lambda kind: wall.sum_ns([kind])) in causes
