"""All kinds together: order, thresholds, traces that lack columns, and the picture of the demo."""

from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path

import pytest

from engine.config import CHUNKING_OFF
from engine.errors import ConfigError
from profiler.findings import FindingKind, Severity, Thresholds, findings
from profiler.findings.thresholds import thresholds
from profiler.tables import frame
from tests.profiler.findings.hand_made import made, request, simulated
from tests.support.recorded import record_run
from tests.support.seeded_workloads import seeded_workload
from tests.support.traces import MemoryTrace

ORDER = (Severity.BAD, Severity.WATCH, Severity.FINE)
SHARES = (
    *("fragment_time_share", "kv_limited_share", "retractions_per_request", "recomputed_share"),
    *("thrash_share", "host_share", "past_saturation_share"),
)
USED = {
    "forwards": (
        *("mode", "rank", "start_ns", "end_ns", "result_end_ns", "extend_tokens", "decode_tokens"),
        *("running_reqs", "absent_decode_reqs", "waiting_reqs", "chunk_budget_start_tokens", "stop_reason"),
        *("chunked_rid", "evicted_pages", "pages_total", "pages_free", "pages_evictable", "retracted_reqs"),
    ),
    "rows": ("rid", "role", "extend_len", "outcome", "token_index"),
    "requests": ("name", "finish_reason", "finish_ns", "first_scheduled_ns", "cached_tokens", "ignore_eos"),
    "events": ("kind", "t_ns", "rid", "attempt", "tokens"),
}
METRICS = Path(__file__).parents[3] / "docs" / "metrics.md"


def story(path: Path, chunk: int, **options: bool) -> list[FindingKind]:
    """Six requests decode; a long prompt comes, and a shorter one while it runs."""
    requests = [*(request(rid, 0, 20, 150) for rid in range(6)), request(6, 25, 3200, 20)]
    requests += [request(7, 33, 1200, 20), *(request(8 + i, 60 + 30 * i, 40, 10) for i in range(3))]
    return [each.kind for each in findings(simulated(path, requests, chunk=chunk, **options))]


def test_the_three_policies_of_the_demo(tmp_path: Path) -> None:
    starved = FindingKind.PREFILL_FIRST_STARVATION
    whole, chunked = story(tmp_path / "whole", CHUNKING_OFF), story(tmp_path / "chunked", 200)
    assert whole[0] is starved
    assert chunked[0] is starved
    assert FindingKind.P99_HIDES_THE_WALL in chunked
    assert starved not in story(tmp_path / "mixed", 200, enable_mixed_chunk=True)


def test_a_sweep_is_no_workload(tmp_path: Path) -> None:
    trace = simulated(tmp_path, [*(request(rid, 0, 20, 60) for rid in range(3)), request(3, 20, 1000, 3)])
    tables = {name: frame(trace, name).to_dicts() for name in USED}
    assert findings(MemoryTrace(tables, trace.meta))
    assert findings(MemoryTrace(tables, {**trace.meta, "workload": {"kind": "closed"}})) == ()


@pytest.mark.parametrize("seed", range(9))
def test_random_runs_are_told_in_order_with_evidence_that_is_there(tmp_path: Path, seed: int) -> None:
    config, todo = seeded_workload(seed)
    trace, _kept = record_run(tmp_path / "t.chunkscope", config, todo)
    told = findings(trace, thresholds(dict.fromkeys(_names(), "1")) if seed % 2 else Thresholds())
    forwards, requests = set(frame(trace, "forwards")["forward_id"]), set(frame(trace, "requests")["rid"])
    assert len({each.kind for each in told}) == len(told)
    for before, after in pairwise(told):
        assert ORDER.index(before.severity) <= ORDER.index(after.severity)
        if before.severity is after.severity:
            assert (before.lost_ns or 0) >= (after.lost_ns or 0)
    for each in told:
        assert set(each.forward_ids) <= forwards
        assert set(each.rids) <= requests
        assert each.threshold[0] in _names()
        assert each.lost_ns is None or each.lost_ns >= 0


def _names() -> list[str]:
    return [each.name for each in fields(Thresholds)]


def test_an_empty_trace_says_nothing() -> None:
    assert findings(made([], {})) == ()


def test_a_trace_that_lacks_a_column_says_less_and_never_more(tmp_path: Path) -> None:
    """Under thresholds that next to anything reaches, but that of what fills a forward."""
    low = replace(thresholds(dict.fromkeys(_names(), "1")), **dict.fromkeys(SHARES, 1e-6))
    requests = [*(request(rid, 0, 20, 60) for rid in range(3)), request(3, 5, 1000, 3)]
    requests += [request(4 + i, 20 * i, 400, 30, family=i % 2) for i in range(8)]
    trace = simulated(tmp_path, requests, pool=1300)
    tables = {name: frame(trace, name).to_dicts() for name in USED}
    whole = {each.kind for each in findings(trace, low)}
    assert len(whole) >= 5
    for table, columns in USED.items():
        for column in columns:
            lacking = {**tables, table: [{**row, column: None} for row in tables[table]]}
            told = findings(MemoryTrace(lacking, trace.meta), low)
            assert {each.kind for each in told} <= whole, column


def test_thresholds_are_set_by_name() -> None:
    told = thresholds({"starvation-forwards": "4", "host_share": "0.5"})
    assert told == Thresholds(starvation_forwards=4, host_share=0.5)
    assert thresholds({}) == Thresholds()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("hots_share", "1", "'hots_share' is not known: give one of starvation_forwards, "),
        ("host_share", "much", "host_share='much': give a number above 0"),
        ("host_share", "nan", "host_share='nan': give a number above 0"),
        ("host_share", "inf", "host_share='inf': give a number above 0"),
        ("host_share", "-1", "host_share='-1': give a number above 0"),
        ("starvation_forwards", "2.5", "starvation_forwards='2.5': give a whole number above 0"),
        ("starvation_forwards", "0", "starvation_forwards='0': give a whole number above 0"),
    ],
)
def test_a_wrong_threshold_is_refused_in_one_line(name: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        thresholds({name: value})
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_kind_and_every_threshold_is_defined() -> None:
    section = METRICS.read_text().partition("\n## Findings")[2].partition("\n## ")[0]
    for kind in FindingKind:
        assert f"`{kind.value}`" in section, kind
    for each in fields(Thresholds):
        assert f"`{each.name}` ({each.default:g})" in section, each.name
