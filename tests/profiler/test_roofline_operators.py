"""Points per operator: of recorded kernels, and of the cost model that a simulated trace was made with."""

from typing import Any

import polars as pl
import pytest

from engine.batch import ForwardMode
from engine.operators import Operator
from profiler.operator_model import operator_model
from profiler.roofline import Roof
from profiler.roofline_operators import operator_points, operator_summary, sample_by_operator
from profiler.roofline_report import roofline
from tests.support.cli import write_model, write_workload
from tests.support.traces import MemoryTrace, forward
from traces.reader import Trace, open_trace
from ui.cli import main

US = 1_000
ROOF = Roof("float32", 1e12, 1e11)


def kernel(op: Operator, layer: int | None, start_us: int, end_us: int, **more: Any) -> dict[str, Any]:
    times = {"start_ns": start_us * US, "end_ns": end_us * US}
    return {"forward_id": 0, "rank": 0, "op": op.value, "layer": layer, **times, **more}


def points(*kernels: dict[str, Any], roof: Roof | None = None) -> pl.DataFrame:
    forwards = [forward(0, 0, 1_000 * US, ForwardMode.EXTEND)]
    found = operator_points(MemoryTrace({"forwards": forwards, "kernels": kernels}), roof)
    assert found.source == "kernels"
    return found.points


def test_an_operator_is_all_its_kernels_of_all_layers() -> None:
    [point] = points(
        kernel(Operator.QKV, 0, 0, 10, tokens=5, flops=4_000, bytes=100),
        kernel(Operator.QKV, 0, 10, 12, tokens=5),  # of the same call, which has its work in the row above
        kernel(Operator.QKV, 1, 20, 28, tokens=5, flops=4_000, bytes=100),
        roof=ROOF,
    ).to_dicts()
    assert (point["forward_id"], point["mode"], point["operator"], point["tokens"]) == (0, "EXTEND", "QKV", 5)
    assert (point["flops"], point["bytes"], point["time_ns"]) == (8_000, 200, 20 * US)
    assert point["flops_per_s"] == pytest.approx(8_000 / 20e-6)
    assert point["roof_share"] == pytest.approx(4e8 / 1e12)
    assert point["error_ns"] == 3 * US


def test_a_call_without_known_work_leaves_its_operator_without_a_place() -> None:
    found = points(
        kernel(Operator.QKV, 0, 0, 10, flops=4_000, bytes=100),
        kernel(Operator.QKV, 1, 20, 28),
        kernel(Operator.HEAD, None, 30, 40, flops=50, bytes=10),
    )
    assert found["operator"].to_list() == ["HEAD", "QKV"]
    assert found["flops"].to_list() == [50, None]
    assert found["time_ns"].to_list() == [10 * US, 18 * US]
    assert found["intensity"].to_list() == [5.0, None]


def test_the_summary_has_the_longest_operator_first_and_shares_of_the_time() -> None:
    found = operator_summary(
        points(
            kernel(Operator.NORM, 0, 0, 10, flops=0, bytes=10),
            kernel(Operator.DOWN, 0, 10, 40, flops=6 * 10**9, bytes=10, tokens=1),
            roof=ROOF,
        )
    )
    assert found["operator"].to_list() == ["DOWN", "NORM"]
    assert found["time_share"].to_list() == [0.75, 0.25]
    assert found["placed"].to_list() == [1, 0]
    assert found["above_roof"].to_list() == [1, None]


def test_of_many_points_each_operator_keeps_its_share() -> None:
    many = [
        kernel(op, None, 10 * i, 10 * i + 5, flops=1000 + i, bytes=10, forward_id=i)
        for op in (Operator.QKV, Operator.HEAD)
        for i in range(30)
    ]
    drawn = sample_by_operator(points(*many), 7)
    assert drawn["operator"].to_list() == ["QKV"] * 7 + ["HEAD"] * 7
    assert {0, 29} <= set(drawn["forward_id"])


def test_a_trace_without_kernels_or_cost_model_has_no_operators() -> None:
    found = operator_points(MemoryTrace({"forwards": [forward(0, 0, 5)]}))
    assert (found.points.height, found.source, found.forwards) == (0, None, 0)
    assert operator_summary(found.points).is_empty()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("simulated")
    model = write_model(folder)
    workload = write_workload(
        folder / "w.jsonl",
        *({"rid": f"d{i}", "prompt_tokens": 20, "max_new_tokens": 9} for i in range(3)),
        {"rid": "long", "arrival_s": 0.0003, "prompt_tokens": 300, "max_new_tokens": 2},
    )
    options = ("--chunked-prefill-size", 128, "--enable-mixed-chunk", "--tp", 2, "--max-total-tokens", 900)
    args = ("run", "--executor", "simulated", "--gpu", "h200", "--model", model, "--workload", workload)
    with pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in (*args, *options, "-o", folder / "t.chunkscope")])
    assert ended.value.code == 0
    return open_trace(folder / "t.chunkscope")


def test_a_simulated_trace_s_operators_are_the_cost_model_s(simulated: Trace) -> None:
    model = operator_model(simulated.meta)
    assert model is not None
    report = roofline(simulated)
    assert report.operators.source == "cost model"
    assert report.operators.forwards == report.forwards.height
    found = report.operators.points
    assert set(found["operator"]) >= {"QKV", "O", "GATE_UP", "DOWN", "HEAD", "ATTENTION_EXTEND"}
    flops = found.group_by("forward_id").agg(pl.col("flops").sum()).sort("forward_id")
    assert flops["flops"].to_list() == report.forwards["flops"].to_list()
    time = found.group_by("forward_id").agg(pl.col("time_ns").sum()).sort("forward_id")
    assert (time["time_ns"] < report.forwards["time_ns"]).all()  # the rest has no FLOPs
    assert report.operators_above.is_empty()
    assert report.forwards_above.is_empty()


@pytest.mark.parametrize(
    "change",
    [
        {"provenance": "measured"},
        {"cost_model": None},
        {"cost_model": {"kind": "roofline", "gemm_profile": {"path": "x"}}},
        {"cost_model": {"kind": "fitted"}},
        {"hardware": {"peaks": {"dtype": "bfloat16"}}},
        {"hardware": {"peaks": {"dtype": "bfloat16", "flops_per_s": "fast", "bytes_per_s": 1e12}}},
        {"hardware": {"peaks": {"dtype": "bfloat16", "flops_per_s": 1e15, "bytes_per_s": 1e12}}},
        {"model": {"num_layers": 2}},
    ],
)
def test_a_cost_model_that_is_not_told_whole_is_not_guessed(simulated: Trace, change: dict[str, Any]) -> None:
    assert operator_model({**simulated.meta, **change}) is None


def test_times_of_another_cost_model_are_no_operators(simulated: Trace) -> None:
    forwards = simulated.table("forwards").to_pylist()
    forwards[0]["end_ns"] += 1
    found = operator_points(MemoryTrace({"forwards": forwards}, simulated.meta))
    assert (found.source, found.points.height) == (None, 0)
