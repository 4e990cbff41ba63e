"""Prefill-first starvation: bursts of prefill while decodes wait."""

from pathlib import Path

import polars as pl
import pytest

from engine.config import CHUNKING_OFF
from engine.observer import EventKind
from engine.request import Request
from profiler.findings import FindingKind, Severity, Thresholds
from profiler.latency import gaps
from profiler.tables import frame
from tests.profiler.findings.hand_made import META, MS, decode, found, made, prefill, request, simulated
from tests.support.traces import decode_row, event, extend_row
from traces.reader import Trace

KIND = FindingKind.PREFILL_FIRST_STARVATION


def a_long_prompt(tokens: int) -> list[Request]:
    """Three requests decode, then it comes."""
    return [*(request(rid, 0, 20, 60) for rid in range(3)), request(3, 20, tokens, 3)]


@pytest.fixture(scope="module")
def chunked(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Ten chunks of it, one after another."""
    return simulated(tmp_path_factory.mktemp("chunked"), a_long_prompt(1000))


def test_chunks_of_one_prompt_in_a_row_starve_decodes(chunked: Trace) -> None:
    finding = found(chunked, KIND)
    assert finding is not None
    assert finding.severity is Severity.BAD
    assert finding.numbers["forwards"] == 10
    assert finding.numbers["waiting_decodes"] == 3
    assert finding.numbers["silent_ns"] == gaps(chunked)["gap_ns"].max()
    assert finding.rids == (0, 1, 2)
    assert finding.threshold == ("starvation_forwards", 8)
    assert finding.option == ("--enable-mixed-chunk",)
    assert finding.mend is not None
    assert "--enable-mixed-chunk" in finding.mend
    assert finding.sentence.startswith("3 decodes emitted nothing for 21.0 ms")
    assert "prefill of r3" in finding.sentence
    assert f"({finding.forward_ids[0]} to {finding.forward_ids[-1]})" in finding.evidence


def test_its_instant_begins_the_gap_of_those_who_wait(chunked: Trace) -> None:
    finding = found(chunked, KIND)
    assert finding is not None
    longest = gaps(chunked).sort("gap_ns", descending=True).head(3)
    assert set(longest["start_ns"]) == {finding.at_ns}
    assert set(longest["rid"]) == set(finding.rids)


def test_what_is_lost_is_the_device_time_once_for_each_that_waits(chunked: Trace) -> None:
    finding = found(chunked, KIND)
    assert finding is not None
    burst = frame(chunked, "forwards").filter(pl.col("absent_decode_reqs") > 0)
    assert finding.lost_ns == 3 * (burst["end_ns"] - burst["start_ns"]).sum()


def test_one_whole_prompt_starves_them_as_well(tmp_path: Path) -> None:
    finding = found(simulated(tmp_path, a_long_prompt(4000), chunk=CHUNKING_OFF), KIND)
    assert finding is not None
    assert finding.numbers["forwards"] == 1
    assert finding.threshold == ("starvation_ratio", 20.0)
    assert finding.option == ("--enable-mixed-chunk", "--chunked-prefill-size")
    assert "alone" in finding.evidence


@pytest.mark.parametrize(
    "limits", [Thresholds(starvation_forwards=11, starvation_ratio=19), Thresholds(starvation_ratio=1e9)]
)
def test_a_threshold_that_is_not_reached_leaves_the_other(chunked: Trace, limits: Thresholds) -> None:
    assert found(chunked, KIND, limits) is not None


def test_neither_threshold_reached_is_no_finding(chunked: Trace) -> None:
    assert found(chunked, KIND, Thresholds(starvation_forwards=11, starvation_ratio=1e9)) is None


def test_decodes_that_ride_along_are_not_starved(tmp_path: Path) -> None:
    assert found(simulated(tmp_path, a_long_prompt(1000), enable_mixed_chunk=True), KIND) is None


def test_a_few_chunks_are_no_starvation(tmp_path: Path) -> None:
    assert found(simulated(tmp_path, a_long_prompt(250)), KIND) is None


def test_an_interval_breaks_the_burst(tmp_path: Path) -> None:
    assert found(simulated(tmp_path, a_long_prompt(1000), prefill_decode_interval=1), KIND) is None


def test_prefill_beside_nobody_starves_nobody(tmp_path: Path) -> None:
    assert found(simulated(tmp_path, [request(0, 0, 3000, 5)]), KIND) is None


def burst(forwards: int, **more: object) -> list[dict[str, object]]:
    return [decode(0, 0, 1), *(prefill(1 + i, 1 + i, 2 + i, 50, **more) for i in range(forwards))]


def test_a_burst_at_the_end_of_the_trace_lasts_until_its_own_end() -> None:
    finding = found(made(burst(8)), KIND)
    assert finding is not None
    assert finding.numbers["silent_ns"] == 8 * MS
    assert finding.numbers["waiting_decodes"] == 1


def test_forwards_that_decodes_sat_out_for_lack_of_kv_are_none_of_it() -> None:
    sat_out = [event(0, 0, EventKind.SIT_OUT, forward_id=1 + i) for i in range(8)]
    assert found(made(burst(8), events=sat_out), KIND) is None
    assert found(made(burst(8), events=sat_out[:1]), KIND) is None  # seven are left


def test_ranks_have_bursts_of_their_own() -> None:
    other = [prefill(20 + i, 1 + i, 2 + i, 50, rank=1) for i in range(7)]
    assert found(made([*burst(7), *other]), KIND) is None


def test_without_device_times_forwards_still_count_and_nothing_is_said_of_time() -> None:
    untimed = [{**row, "start_ns": None, "end_ns": None} for row in burst(8)]
    finding = found(made(untimed), KIND)
    assert finding is not None
    assert finding.lost_ns is None
    assert finding.numbers["device_ns"] is None
    assert "decode time lost" not in finding.evidence


def test_a_trace_that_does_not_tell_who_was_absent_has_none() -> None:
    assert found(made(burst(20, absent_decode_reqs=None)), KIND) is None


def test_who_joined_later_waited_for_a_part_of_it() -> None:
    forwards = [*burst(7), prefill(8, 8, 9, 50, absent_decode_reqs=2), decode(9, 9, 10, rows=2)]
    rows = [extend_row(1 + i, 1, 50) for i in range(6)]
    rows += [extend_row(7, 1, 50, 0), extend_row(8, 2, 50), decode_row(9, 0, 1), decode_row(9, 1, 1)]
    finding = found(made(forwards, META, rows=rows), KIND)
    assert finding is not None
    assert finding.rids == (0,)
    assert finding.numbers["joined_decodes"] == 1
    assert "1 decode emitted nothing for 9.0 ms, and 1 more for a part of it," in finding.sentence
