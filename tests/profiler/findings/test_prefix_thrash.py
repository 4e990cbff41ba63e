"""Prefix-cache thrash."""

from pathlib import Path
from typing import Any

import pytest

from engine.request import FinishReason, Request
from profiler.findings import FindingKind, Thresholds
from profiler.tables import frame
from tests.profiler.findings.hand_made import MS, found, made, prefill, request, simulated
from tests.support.traces import request as entry

KIND = FindingKind.PREFIX_CACHE_THRASH


def families(number: int) -> list[Request]:
    """Twelve prompts one after the other, of families that take turns and share all of their prompt."""
    return [request(rid, 20 * rid, 640, 4, family=rid % number) for rid in range(12)]


def test_prefixes_that_push_each_other_out_are_found(tmp_path: Path) -> None:
    trace = simulated(tmp_path, families(4), pool=1500)
    finding = found(trace, KIND)
    assert finding is not None
    assert finding.numbers["evicted_pages"] == frame(trace, "forwards")["evicted_pages"].sum()
    assert finding.numbers["requests"] == 8  # all but the first of each family
    assert finding.numbers["recomputed_tokens"] == 8 * 639  # the last token is always computed
    assert finding.rids[0] == 4
    assert finding.option == ("--max-total-tokens",)
    assert "computed again, by r4, r5, r6 and 5 more." in finding.sentence


def test_a_pool_that_holds_all_prefixes_has_none(tmp_path: Path) -> None:
    assert found(simulated(tmp_path, families(4), pool=5000), KIND) is None


def test_prompts_that_share_nothing_lose_nothing(tmp_path: Path) -> None:
    trace = simulated(tmp_path, families(12), pool=1500)
    assert frame(trace, "forwards")["evicted_pages"].sum() > 0
    assert found(trace, KIND) is None


def test_without_a_prefix_cache_nothing_is_evicted(tmp_path: Path) -> None:
    assert found(simulated(tmp_path, families(4), pool=1500, disable_radix_cache=True), KIND) is None


def told(*, waiting: int = 0, evicted: int | None = 5, page_size: int = 1, **later: Any) -> Any:
    """Two requests with the same 128 tokens and 10 of their own, one after the other."""
    first = entry(
        0,
        prompt_tokens=138,
        cached_tokens=0,
        first_scheduled_ns=0,
        finish_ns=2 * MS,
        finish_reason=FinishReason.LENGTH.value,
        prefix_hashes=[11, 12],
    )
    second = {**first, "rid": 1, "name": "r1", "first_scheduled_ns": 5 * MS, "finish_ns": 7 * MS, **later}
    forwards = [
        prefill(0, 0, 1, 138, evicted_pages=0),
        prefill(1, 5, 6, 138, evicted_pages=evicted, waiting_reqs=waiting),
    ]
    meta = {"engine": {"page_size": page_size, "schedule_policy": "fcfs"}}
    return made(forwards, meta, requests=[first, second])


def test_a_prefix_that_had_been_there_is_lost() -> None:
    finding = found(told(), KIND)
    assert finding is not None
    assert finding.numbers["recomputed_tokens"] == 128
    assert finding.at_ns == 5 * MS
    assert finding.forward_ids == (1,)
    assert finding.lost_ns == round(128 / 276 * 2 * MS)


def test_an_order_by_prefix_is_offered_where_there_is_a_queue() -> None:
    finding = found(told(waiting=3), KIND)
    assert finding is not None
    assert finding.option == ("--schedule-policy", "lpm")


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(told(evicted=0), id="nothing was evicted"),
        pytest.param(told(evicted=None), id="evictions unknown"),
        pytest.param(told(cached_tokens=128), id="it was found"),
        pytest.param(told(cached_tokens=None), id="what was found is unknown"),
        pytest.param(told(first_scheduled_ns=1 * MS), id="the other had not ended"),
        pytest.param(told(rank=1), id="another rank's cache"),
        pytest.param(told(prefix_hashes=[21, 22]), id="another prefix"),
        pytest.param(told(prefix_hashes=None), id="prefixes unknown"),
        pytest.param(told(page_size=256), id="less than a page"),
    ],
)
def test_anything_else_is_not(trace: Any) -> None:
    assert found(trace, KIND) is None


def test_what_an_aborted_request_had_is_not_kept() -> None:
    aborted = told()
    requests = [{**aborted.tables["requests"][0], "finish_reason": FinishReason.ABORT.value}]
    requests += aborted.tables["requests"][1:]
    assert found(made(aborted.tables["forwards"], requests=requests), KIND) is None


def test_the_threshold_can_be_set() -> None:
    assert found(told(), KIND, Thresholds(thrash_share=0.5)) is None
