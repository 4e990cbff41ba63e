"""KV-limited admission."""

from pathlib import Path
from typing import Any

import pytest

from engine.batch import StopReason
from profiler.findings import FindingKind, Thresholds
from profiler.tables import frame
from tests.profiler.findings.hand_made import MS, decode, found, made, prefill, request, simulated
from tests.support.traces import request as entry

KIND = FindingKind.KV_LIMITED_ADMISSION
META: dict[str, Any] = {
    "provenance": "measured",
    "engine": {"max_running_requests": 4, "schedule_conservativeness": 1.0, "max_total_tokens": 1000},
}


def test_a_pool_that_holds_half_of_the_requests_is_found(tmp_path: Path) -> None:
    trace = simulated(tmp_path, [request(rid, rid, 200, 60) for rid in range(8)], pool=900)
    finding = found(trace, KIND)
    assert finding is not None
    assert finding.numbers["waiting_reqs"] == frame(trace, "forwards")["waiting_reqs"].max()
    assert finding.option is not None
    assert finding.option[0] in ("--max-total-tokens", "--schedule-conservativeness")
    assert finding.lost_ns is None
    assert "waited for KV" in finding.sentence


def test_a_pool_with_room_for_all_is_not(tmp_path: Path) -> None:
    trace = simulated(tmp_path, [request(rid, rid, 200, 60) for rid in range(8)])
    assert found(trace, KIND) is None


def test_a_queue_behind_slots_or_an_interval_is_not_behind_kv(tmp_path: Path) -> None:
    requests = [request(rid, rid, 200, 60) for rid in range(8)]
    assert found(simulated(tmp_path / "a", requests, max_running_requests=2), KIND) is None
    assert found(simulated(tmp_path / "b", requests, prefill_decode_interval=3), KIND) is None


def stopped(
    held: int, free: int = 1000, reason: StopReason | None = StopReason.TOTAL, **more: Any
) -> list[Any]:
    """A prefill that admission stopped behind, so many decode forwards beside a queue, ten without."""
    pool = {"pages_total": 1000, "pages_free": free, "pages_evictable": 0, "retracted_reqs": 0, **more}
    code = None if reason is None else reason.value
    first = prefill(0, 0, 1, 50, waiting_reqs=2, stop_reason=code, blocked_rid=5, running_reqs=0, **pool)
    beside = [decode(1 + i, 1 + i, 2 + i, waiting_reqs=2, running_reqs=1, **pool) for i in range(held)]
    after = [decode(50 + i, 50 + i, 51 + i, running_reqs=1, **pool) for i in range(10)]
    return [first, *beside, *after]


def test_decode_forwards_beside_the_queue_count_as_well() -> None:
    finding = found(made(stopped(9), META), KIND)
    assert finding is not None
    assert finding.numbers["forwards"] == 10
    assert finding.numbers["share"] == 0.5
    assert finding.numbers["queue_ns"] == 2 * 10 * MS
    assert finding.forward_ids[0] == 0
    assert finding.forward_ids[-1] == 9
    assert finding.rids == (5,)
    assert finding.at_ns == 0


def test_of_an_imported_trace_only_what_it_states_counts() -> None:
    imported = {**META, "provenance": "imported"}
    assert found(made(stopped(9), imported), KIND) is None
    finding = found(made(stopped(9), imported), KIND, Thresholds(kv_limited_share=0.05))
    assert finding is not None
    assert finding.numbers["forwards"] == 1


@pytest.mark.parametrize(("chunk", "held"), [(1, False), (2, False), (3, True), (-1, True), (None, True)])
def test_decodes_that_fill_a_mixed_forward_keep_prompts_out_without_kv(chunk: int | None, held: bool) -> None:
    """One decode runs, and one token of a page must fit beside it."""
    engine = {**META["engine"], "enable_mixed_chunk": True, "chunked_prefill_size": chunk, "page_size": 1}
    finding = found(made(stopped(9), {**META, "engine": engine}), KIND)
    assert (finding is not None) is held


def test_a_large_reserve_is_to_be_lowered_and_a_full_pool_to_grow() -> None:
    reserve, full = (
        found(made(stopped(9, free=500), META), KIND),
        found(made(stopped(9, free=20), META), KIND),
    )
    assert reserve is not None
    assert full is not None
    assert reserve.option is None or reserve.option[0] == "--max-total-tokens"  # no request is known
    early = made(stopped(9, free=500), META, requests=[entry(5, ignore_eos=False)])
    reserve = found(early, KIND)
    assert reserve is not None
    assert reserve.option == ("--schedule-conservativeness", "0.5")
    assert full.option == ("--max-total-tokens",)
    assert full.mend is not None
    assert "now 1,000" in full.mend


@pytest.mark.parametrize("more", [{"retracted_reqs": 1}, {"free": 20}])
def test_a_reserve_that_is_too_small_already_is_not_lowered(more: dict[str, int]) -> None:
    told = {"free": 500, **more}
    trace = made(stopped(9, **told), META, requests=[entry(5, ignore_eos=False)])
    finding = found(trace, KIND)
    assert finding is not None
    assert finding.option == ("--max-total-tokens",)


@pytest.mark.parametrize(
    "forwards",
    [
        pytest.param(stopped(0), id="once is below a tenth"),
        pytest.param(stopped(9, reason=None), id="no stop reason at all"),
        pytest.param([{**row, "waiting_reqs": None} for row in stopped(9)], id="queue unknown"),
        pytest.param([], id="nothing ran"),
    ],
)
def test_what_is_rare_or_unknown_is_none(forwards: list[dict[str, Any]]) -> None:
    assert found(made(forwards, META), KIND) is None


def test_without_device_times_no_waiting_is_summed() -> None:
    finding = found(made([{**row, "end_ns": None} for row in stopped(9)], META), KIND)
    assert finding is not None
    assert finding.numbers["queue_ns"] is None
    assert finding.sentence == "Up to 2 requests waited for KV."
