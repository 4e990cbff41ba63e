"""ITL p99 hides the wall."""

from pathlib import Path

import pytest

from engine.observer import EventKind
from profiler.findings import FindingKind, Thresholds
from profiler.latency import Spread, gaps
from profiler.ledger.stall_report import stall_report
from profiler.sentences import hidden_wall as demo_words
from profiler.summary import summarize
from tests.profiler.findings.hand_made import MS, found, made, request, simulated, tokens_at
from tests.support.traces import MemoryTrace, event

KIND = FindingKind.P99_HIDES_THE_WALL


def with_gap(gap_ms: float) -> MemoryTrace:
    """Of 301 tokens one comes after that long, all others after 10 ms."""
    times = [10.0 * i for i in range(1, 151)]
    return tokens_at(times + [times[-1] + gap_ms + 10 * i for i in range(151)])


def test_a_silence_that_one_token_hits_is_found() -> None:
    finding = found(with_gap(200), KIND)
    assert finding is not None
    assert finding.sentence == "p99 is 10.0 ms, the longest gap 200 ms: 1 of 300 gaps hit the wall."
    assert finding.numbers["p99_ns"] == 10 * MS
    assert finding.forward_ids == (150,)
    assert finding.rids == (0,)
    assert finding.at_ns == 1500 * MS
    assert finding.lost_ns == 190 * MS


@pytest.mark.parametrize(("gap_ms", "hidden"), [(49.9, False), (50, True)])
def test_five_times_p99_is_a_wall_here_and_in_the_words_of_the_demo(gap_ms: float, hidden: bool) -> None:
    trace = with_gap(gap_ms)
    assert (found(trace, KIND) is not None) is hidden
    assert (demo_words("it", summarize(trace)) is not None) is hidden


def test_the_threshold_can_be_set() -> None:
    assert found(with_gap(200), KIND, Thresholds(hidden_wall_ratio=20.5)) is None


def test_a_wall_that_p99_shows_hides_from_nobody() -> None:
    assert found(tokens_at([10, 20, 30, 500]), KIND) is None


@pytest.mark.parametrize("times", [[], [10.0]])
def test_without_gaps_there_is_none(times: list[float]) -> None:
    assert found(tokens_at(times), KIND) is None


def test_what_is_known_of_a_run_tells_the_same(tmp_path: Path) -> None:
    requests = [*(request(rid, 0, 20, 300) for rid in range(3)), request(3, 20, 1000, 3)]
    trace = simulated(tmp_path, requests)
    stalls, itl = stall_report(trace), Spread.of_ns(gaps(trace)["gap_ns"])
    known, computed = found(trace, KIND, stalls=stalls, itl=itl), found(trace, KIND)
    assert known is not None
    assert computed is not None
    assert known.rids == computed.rids == (0, 1, 2)
    assert (known.at_ns, known.lost_ns, known.mend) == (computed.at_ns, computed.lost_ns, computed.mend)
    assert known.option == ("--enable-mixed-chunk",)
    assert "3 of " in known.sentence


def test_what_most_of_the_gap_went_to_says_which_option_mends_it() -> None:
    """Of a trace without prefill only a retraction is known to have caused it."""
    trace = with_gap(200)
    finding = found(trace, KIND)
    assert finding is not None
    assert finding.mend is None
    retracted = made(
        trace.tables["forwards"],
        rows=trace.tables["rows"],
        events=[event(1510 * MS, 0, EventKind.RETRACT, attempt=0)],
    )
    finding = found(retracted, KIND)
    assert finding is not None
    assert finding.option == ("--schedule-conservativeness", "1.3")


def test_a_long_mixed_forward_asks_for_a_smaller_chunk(tmp_path: Path) -> None:
    requests = [*(request(rid, 0, 20, 300) for rid in range(3)), request(3, 20, 3000, 3)]
    trace = simulated(tmp_path, requests, chunk=3000, enable_mixed_chunk=True)
    finding = found(trace, KIND)
    assert finding is not None
    assert finding.option == ("--chunked-prefill-size",)
