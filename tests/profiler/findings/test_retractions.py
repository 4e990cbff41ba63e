"""Retraction storm."""

from pathlib import Path
from typing import Any

import polars as pl

from engine.batch import Role
from engine.observer import EventKind
from profiler.findings import FindingKind, Severity, Thresholds
from profiler.tables import frame
from tests.profiler.findings.hand_made import MS, decode, found, made, prefill, request, simulated
from tests.support.traces import event
from tests.support.traces import request as entry
from traces.reader import Trace

KIND = FindingKind.RETRACTION_STORM


def storm(path: Path, **options: Any) -> Trace:
    """Requests admitted on the hope that they end early, which they do not."""
    requests = [request(rid, rid, 100, 150) for rid in range(8)]
    return simulated(path, requests, pool=900, schedule_conservativeness=0.05, **options)


def test_requests_that_outgrow_the_pool_are_found(tmp_path: Path) -> None:
    trace = storm(tmp_path)
    finding = found(trace, KIND)
    assert finding is not None
    assert finding.severity is Severity.BAD
    retracted = frame(trace, "events").filter(pl.col("kind") == EventKind.RETRACT.value)
    assert finding.numbers["retractions"] == retracted.height > 0
    assert finding.numbers["retractions_per_request"] == retracted.height / 8
    assert set(finding.rids) <= set(retracted["rid"])
    assert finding.at_ns == retracted["t_ns"].min()
    assert finding.option == ("--schedule-conservativeness", "1")
    assert finding.lost_ns is not None
    assert finding.lost_ns > 0


def test_tokens_computed_anew_are_those_of_the_rows(tmp_path: Path) -> None:
    trace = storm(tmp_path, disable_radix_cache=True)
    finding = found(trace, KIND)
    assert finding is not None
    again = frame(trace, "rows").filter(pl.col("attempt") > 0, pl.col("role") != Role.DECODE.value)
    assert finding.numbers["recomputed_tokens"] == again["extend_len"].sum()


def test_a_reserve_that_is_large_enough_retracts_nobody(tmp_path: Path) -> None:
    requests = [request(rid, rid, 100, 150) for rid in range(8)]
    assert found(simulated(tmp_path, requests, pool=900, schedule_conservativeness=2.0), KIND) is None


def told(retractions: int = 1, requests: int = 20, held: int = 90, hit: int | None = None) -> Any:
    """Retractions of request 0 of so many, each giving back KV, in a trace of 1,000 prompt tokens."""
    events = []
    for at in range(retractions):
        events.append(event((10 * at + 1) * MS, 0, EventKind.RETRACT, attempt=at, tokens=held))
        events.append(event((10 * at + 4) * MS, 0, EventKind.ADMIT, attempt=at + 1, tokens=held))
        if hit is not None:
            events.append(event((10 * at + 4) * MS, 0, EventKind.HIT, attempt=at + 1, tokens=hit))
    forwards = [prefill(0, 0, 1, 1000), decode(1, 1, 2, retracted_reqs=retractions)]
    return made(forwards, requests=[entry(rid, finish_reason=2) for rid in range(requests)], events=events)


def test_one_in_twenty_requests_is_no_storm() -> None:
    assert found(told(), KIND) is None


def test_one_in_ten_is() -> None:
    finding = found(told(requests=10), KIND)
    assert finding is not None
    assert finding.threshold == ("retractions_per_request", 0.1)
    assert finding.forward_ids == (1,)
    assert finding.rids == (0,)
    assert finding.lost_ns == 3 * MS
    assert "(r0); 90 tokens were computed anew." in finding.sentence


def test_a_tenth_of_all_prompt_tokens_computed_anew_is_one() -> None:
    finding = found(told(held=100), KIND)
    assert finding is not None
    assert finding.threshold == ("recomputed_share", 0.1)


def test_what_is_found_in_the_cache_is_not_computed_anew() -> None:
    assert found(told(held=100, hit=20), KIND) is None


def test_thresholds_can_be_set() -> None:
    limits = Thresholds(retractions_per_request=0.2, recomputed_share=0.5)
    assert found(told(requests=10), KIND, limits) is None
    assert found(told(), KIND, Thresholds(retractions_per_request=0.05)) is not None


def test_without_events_the_forwards_tell_how_many() -> None:
    bare = told(requests=10)
    finding = found(made(bare.tables["forwards"], requests=bare.tables["requests"]), KIND)
    assert finding is not None
    assert finding.numbers["recomputed_tokens"] is None
    assert finding.lost_ns is None
    unknown = [{**row, "retracted_reqs": None} for row in bare.tables["forwards"]]
    assert found(made(unknown, requests=bare.tables["requests"]), KIND) is None
