"""The summary's keys and numbers, known and unknown."""

import json
from pathlib import Path

import numpy as np
import pytest

from engine.batch import ForwardMode, Role
from engine.observer import EventKind
from engine.request import FinishReason
from profiler.summary import summarize
from tests.support.traces import (
    MemoryTrace,
    decode_row,
    event,
    extend_row,
    forward,
    prefill_trace,
    request,
)

CONTRACT = {
    "provenance", "requests", "forwards", "output_tokens_per_s", "ttft_s", "itl_s", "waiting_s",
    "worst_stall", "saturation", "kv_pages_peak", "inflight_middle_chunks_max", "retractions",
}  # fmt: skip


def small_run() -> MemoryTrace:
    pool = {"pages_total": 100, "pages_free": 60, "pages_evictable": 10}
    return MemoryTrace(
        {
            "requests": [
                request(0, 0, "alice", finish_reason=FinishReason.LENGTH.value),
                request(1, 5, "bob"),
            ],
            "forwards": [
                forward(0, 0, 100, ForwardMode.EXTEND, extend_tokens=30, decode_tokens=0, **pool),
                forward(1, 100, 400, ForwardMode.EXTEND, extend_tokens=50, decode_tokens=0, **pool),
                forward(2, 400, 450, extend_tokens=0, decode_tokens=1, **pool | {"pages_free": 20}),
            ],
            "rows": [
                extend_row(0, 0, 30, 0, inflight_after_plan=0),
                extend_row(1, 1, 50, role=Role.FIRST, inflight_after_plan=1),
                decode_row(2, 0, 1, inflight_after_plan=0),
            ],
            "events": [event(90, 1, EventKind.ARRIVE), event(420, 1, EventKind.RETRACT)],
        },
        torn_bytes=17,
    )


def test_a_small_run() -> None:
    found = summarize(small_run())
    assert found.keys() >= CONTRACT
    assert (found["provenance"], found["requests"], found["forwards"]) == ("measured", 2, 3)
    assert found["forwards_by_mode"] == {"EXTEND": 2, "DECODE": 1}
    assert found["requests_by_finish"] == {"LENGTH": 1, "UNFINISHED": 1}
    assert found["output_tokens_per_s"] == pytest.approx(2 / 450e-9)
    assert found["ttft_s"]["max"] == 100e-9
    assert found["itl_s"] == {"p50": 350e-9, "p99": 350e-9, "max": 350e-9}
    assert found["worst_stall"] == {
        "gap_s": 350e-9, "rid": "alice", "token_index": 1, "own_forward_id": 2, "own_mode": "DECODE",
        "forward_ids": [1], "modes": ["EXTEND"], "culprit_rids": ["bob"], "culprit_forward_id": 1,
        "cause": "OTHERS_PREFILL", "cause_s": 300e-9, "mixed_extra_s": None,
    }  # fmt: skip
    assert (found["kv_pages_total"], found["kv_pages_peak"]) == (100, 70)
    assert found["inflight_middle_chunks_max"] == 1
    assert found["retractions"] == 1
    assert found["largest_forward_tokens"] == 50
    assert found["memory_peak_bytes"] is None
    assert found["activation_peak_bytes"] is None
    assert found["torn_bytes"] == 17
    assert found["saturation"]["status"] == "too_few_points"


def test_an_empty_trace_is_unknown_and_not_zero() -> None:
    found = summarize(MemoryTrace({}, meta={}))
    assert found.keys() >= CONTRACT
    assert (found["requests"], found["forwards"]) == (0, 0)
    for key in (
        "provenance",
        "output_tokens_per_s",
        "waiting_s",
        "kv_pages_peak",
        "inflight_middle_chunks_max",
        "retractions",
    ):
        assert found[key] is None
    assert found["ttft_s"] == found["itl_s"] == {"p50": None, "p99": None, "max": None}
    assert found["worst_stall"].keys() == summarize(small_run())["worst_stall"].keys()
    assert found["worst_stall"]["gap_s"] is None
    assert found["worst_stall"]["culprit_rids"] == []


def test_retractions_come_from_forwards_where_there_are_no_events() -> None:
    trace = MemoryTrace({"forwards": [forward(i, i, i + 1, retracted_reqs=i) for i in range(3)]})
    assert summarize(trace)["retractions"] == 3


def test_saturation_is_told_with_its_raw_statistics() -> None:
    sizes = np.unique(np.round(np.geomspace(8, 1024, 10))).astype(int)
    found = summarize(prefill_trace([(int(t), int(max(10**6, t * 10**4))) for t in sizes for _ in range(3)]))
    point = found["saturation"]
    assert point["status"] == "ok"
    assert point["low"] <= point["tokens"] <= point["high"]
    assert point["tokens"] == pytest.approx(95, abs=2)
    assert (point["first_reach"], point["last_below"], point["q"]) == (119, 69, 0.95)
    assert point["fit_kind"] == "parametric"


@pytest.mark.parametrize("trace", [small_run(), MemoryTrace({}), prefill_trace([(8, 10), (16, 20)])])
def test_the_summary_is_json(trace: MemoryTrace) -> None:
    found = summarize(trace)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_every_key_is_defined_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    found = summarize(small_run())
    keys = [*found, *found["itl_s"], *found["worst_stall"], *found["saturation"]]
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_the_activation_peak_is_the_most_that_one_forward_added() -> None:
    held = [(900, 1000), (700, 950), (990, 1010)]  # the highest peak is not that of the hungriest forward
    forwards = [
        forward(i, i * 10, i * 10 + 5, memory_allocated_bytes=before, memory_peak_bytes=peak)
        for i, (before, peak) in enumerate(held)
    ]
    found = summarize(MemoryTrace({"forwards": forwards}))
    assert (found["memory_peak_bytes"], found["activation_peak_bytes"]) == (1010, 250)
