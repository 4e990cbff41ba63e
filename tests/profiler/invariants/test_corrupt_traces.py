"""A good recorded trace keeps every rule; each of many corruptions of it is found and named."""

import pytest

from profiler.invariants import RULES, Status, check_trace
from tests.profiler.test_invariants import SPOILT
from tests.profiler.test_overlap_invariants import SPOILT_FORWARDS, SPOILT_REST, SPOILT_ROWS
from tests.support.corrupt_forwards import FORWARD_CORRUPTIONS
from tests.support.corrupt_rows import ROW_CORRUPTIONS
from tests.support.corrupt_told import TOLD_CORRUPTIONS
from tests.support.corrupt_traces import RUNS, Corruption, recorded

CORRUPTIONS = (*ROW_CORRUPTIONS, *FORWARD_CORRUPTIONS, *TOLD_CORRUPTIONS)


@pytest.mark.parametrize("run", RUNS)
def test_a_recorded_trace_keeps_every_rule(run: str) -> None:
    report = check_trace(recorded(run).trace())
    assert report.having(Status.VIOLATED) == ()
    assert report.clean_end
    unchecked = {rule.name for rule in report.having(Status.NOT_CHECKABLE)}
    assert unchecked <= {"middle_never_emits"}  # where no prompt is cut


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=[each.spoil.__name__ for each in CORRUPTIONS])
def test_a_corruption_is_found_and_named(corruption: Corruption) -> None:
    trace = recorded(corruption.run)
    expected = corruption.spoil(trace)
    report = check_trace(trace.trace())
    broken = {rule.name: rule for rule in report.having(Status.VIOLATED)}
    assert not report.ok
    assert expected.rule in broken
    first = broken[expected.rule].first
    assert first is not None
    assert expected.forward_id in (None, first.forward_id)
    assert first.request == expected.request
    assert first.numbers


def test_every_rule_is_broken_somewhere() -> None:
    by_hand = {rule for rule, *_ in (*SPOILT, *SPOILT_ROWS, *SPOILT_FORWARDS, *SPOILT_REST)}
    recorded_ones = {each.spoil(recorded(each.run)).rule for each in CORRUPTIONS}
    assert by_hand | recorded_ones == {rule.name for rule in RULES}
