"""Forwards under a roof: intensity, rates, what is unknown, what is above, and what of many is drawn."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from engine.batch import ForwardMode
from profiler.ceilings import Ceilings, GemmRate, Machine
from profiler.roofline import Roof, mode_summary, roof_for, roofline_points, sample_by_mode, simulated_roof
from profiler.sampling import evenly
from tests.support.three_runs import record_three_runs
from tests.support.traces import MemoryTrace, forward
from traces.reader import open_trace

ROOF = Roof("float32", flops_per_s=1e11, bytes_per_s=1e10)
FLOPS = ("flops_linear", "flops_attention_extend", "flops_attention_decode", "flops_head")
BYTES = ("bytes_weights", "bytes_kv_read", "bytes_kv_write", "bytes_activation")
MS = 1_000_000


def costly(
    forward_id: int,
    flops: int,
    size_bytes: int,
    time_ns: int,
    mode: ForwardMode = ForwardMode.EXTEND,
    **more: Any,
) -> dict[str, Any]:
    """A forward with its FLOPs and bytes spread over the columns."""
    costs = dict.fromkeys(FLOPS, flops // 4) | dict.fromkeys(BYTES, size_bytes // 4)
    return forward(forward_id, 0, time_ns, mode, extend_tokens=3, decode_tokens=2, **costs) | more


def points(*forwards: dict[str, Any], roof: Roof | None = ROOF) -> pl.DataFrame:
    return roofline_points(MemoryTrace({"forwards": forwards}), roof)


PEAKS = {"dtype": "bfloat16", "flops_per_s": 9.89e14, "bytes_per_s": 4.8e12}


def test_a_simulated_trace_lies_under_its_own_peaks() -> None:
    meta = {"provenance": "simulated", "hardware": {"peaks": PEAKS}}
    assert simulated_roof(meta) == Roof("bfloat16", 9.89e14, 4.8e12, "memory")


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"provenance": "measured", "hardware": {"peaks": PEAKS}},
        {"provenance": "simulated", "hardware": 3},
        {"provenance": "simulated", "hardware": {"peaks": PEAKS | {"flops_per_s": None}}},
        {"provenance": "simulated", "hardware": {"peaks": PEAKS | {"bytes_per_s": 0}}},
        {"provenance": "simulated", "hardware": {"peaks": PEAKS | {"bytes_per_s": float("inf")}}},
        {"provenance": "simulated", "hardware": {"peaks": PEAKS | {"bytes_per_s": True}}},
    ],
)
def test_other_traces_have_no_peaks(meta: dict[str, Any]) -> None:
    assert simulated_roof(meta) is None


def test_the_roof_is_the_lower_of_two_ceilings() -> None:
    assert ROOF.ridge == 10
    assert [ROOF.at(intensity) for intensity in (0.5, 10, 400)] == [5e9, 1e11, 1e11]


def test_a_roof_needs_the_ceiling_of_the_trace_s_dtype() -> None:
    gemm = (GemmRate("float32", 1e11, 8),)
    measured = Ceilings(Machine("cpu", "x", 1), "2026-11-30", "2", gemm, 1e10, 8, None)
    assert roof_for(measured, "float32") == ROOF
    assert [roof_for(measured, dtype) for dtype in ("bfloat16", None, 3)] == [None] * 3
    assert roof_for(None, "float32") is None


def test_intensity_and_rate_of_a_forward() -> None:
    [point] = points(costly(7, 4 * MS, MS, 2 * MS)).to_dicts()
    assert (point["forward_id"], point["mode"], point["tokens"]) == (7, "EXTEND", 5)
    assert (point["flops"], point["bytes"], point["time_ns"]) == (4 * MS, MS, 2 * MS)
    assert (point["intensity"], point["flops_per_s"]) == (4.0, 2e9)
    assert (point["roof_share"], point["above_roof"]) == (2e9 / 4e10, False)


@pytest.mark.parametrize("column", [*FLOPS, *BYTES, "end_ns", "start_ns"])
def test_one_unknown_column_leaves_a_forward_without_a_place(column: str) -> None:
    [point] = points(costly(0, 4 * MS, MS, MS, **{column: None})).to_dicts()
    assert None in (point["intensity"], point["flops_per_s"])
    assert (point["roof_share"], point["above_roof"]) == (None, None)


def test_no_time_and_no_bytes_are_no_infinite_rate() -> None:
    found = points(costly(0, 4, 4, 0), costly(1, 4, 0, 5), costly(2, 0, 4, 5))
    assert found["flops_per_s"].to_list() == [None, 0.8e9, None]
    assert found["intensity"].to_list() == [1.0, None, None]
    assert found["above_roof"].to_list() == [None, None, None]


def test_a_forward_above_the_roof_is_kept_and_flagged() -> None:
    found = points(costly(0, 4 * MS, MS, 1000), costly(1, 4 * MS, MS, MS))
    assert found["above_roof"].to_list() == [True, False]
    assert found["roof_share"][0] == pytest.approx(4e12 / 4e10)


def test_without_a_roof_nothing_is_above_or_below_it() -> None:
    found = points(costly(0, 4 * MS, MS, 1000), roof=None)
    assert found["flops_per_s"].to_list() == [4e12]
    assert found.select("roof_share", "above_roof").row(0) == (None, None)
    assert mode_summary(found)["above_roof"].to_list() == [None]


def test_the_summary_counts_all_forwards_of_a_mode() -> None:
    found = mode_summary(
        points(
            costly(0, 4 * MS, MS, 1000),
            costly(1, 4 * MS, MS, MS),
            costly(2, 4 * MS, MS, MS, flops_head=None),
            costly(3, 8, 8, 8, ForwardMode.DECODE),
            {**costly(4, 8, 8, 8), "mode": None},
        )
    )
    assert found["mode"].to_list() == ["EXTEND", "DECODE", None]
    assert found["forwards"].to_list() == [3, 1, 1]
    assert found["placed"].to_list() == [2, 1, 1]
    assert found["above_roof"].to_list() == [1, 0, 0]
    assert found["best_flops_per_s"].to_list() == [4e12, 1e9, 1e9]


def test_few_points_are_all_drawn() -> None:
    found = points(*(costly(i, 4 * MS, MS, MS + i) for i in range(5)), costly(9, 4, 4, 4, flops_head=None))
    assert sorted(sample_by_mode(found, 5)["forward_id"]) == [0, 1, 2, 3, 4]


def test_of_many_points_each_mode_keeps_its_share_its_ends_and_those_above() -> None:
    many = [costly(i, 4 * MS, MS + 4 * i, MS) for i in range(900)]
    many += [costly(1000 + i, 4 * MS, MS, 1000 + i) for i in range(3)]
    many += [costly(2000 + i, 8 + 4 * i, 8, 80, ForwardMode.DECODE) for i in range(900)]
    found = points(*many)
    drawn = sample_by_mode(found, 40)
    assert drawn["mode"].value_counts().sort("mode")["count"].to_list() == [40, 40]
    assert drawn.filter("above_roof")["forward_id"].to_list() == [1002, 1001, 1000]
    for mode in ("EXTEND", "DECODE"):
        of_mode, of_drawn = (f.filter(pl.col("mode") == mode)["intensity"] for f in (found, drawn))
        assert (of_drawn.min(), of_drawn.max()) == (of_mode.min(), of_mode.max())
    assert drawn.equals(sample_by_mode(found.sample(fraction=1, shuffle=True, seed=3), 40))


def test_a_sample_has_distinct_rows_at_even_steps() -> None:
    rows = pl.DataFrame({"x": range(1000, 0, -1)})
    assert evenly(rows, ("x",), 4)["x"].to_list() == [1, 334, 667, 1000]
    assert evenly(rows, ("x",), 999)["x"].n_unique() == 999
    assert evenly(rows, ("x",), 1000).height == 1000
    assert evenly(rows, ("x",), 0).height == 0


def test_a_recorded_run_has_all_its_forwards_placed(tmp_path: Path) -> None:
    trace = open_trace(record_three_runs(tmp_path)["mixed"])
    found = roofline_points(trace)
    assert found.height == trace.table("forwards").num_rows
    assert found["intensity"].null_count() == found["flops_per_s"].null_count() == 0
    decode, extend = (
        found.filter(pl.col("mode") == mode)["intensity"].median() for mode in ("DECODE", "EXTEND")
    )
    assert decode < extend
