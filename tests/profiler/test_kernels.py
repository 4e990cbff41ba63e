"""Recorded kernels: what a run on the CPU gave, what a GPU's window says, and what neither may break."""

import gzip
import json
from itertools import groupby
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batch import ForwardMode
from engine.clock import MonotonicClock
from engine.operator_costs import OperatorWork
from engine.operators import Operator
from profiler.forward_table import forward_table
from profiler.kernel_coverage import forward_coverage, kernel_coverage
from profiler.kernel_order import operators_in_order
from profiler.kernel_profile import ProfiledKernel, profiled_kernels
from profiler.kernel_rows import kernel_columns, placed
from profiler.kernels import KernelProbe
from profiler.mixed_extra import mixed_extras
from profiler.points import prefill_points
from profiler.tables import frame
from profiler.watched import slowed, watched_ids
from tests.support.kernel_runs import EVERY, Appended, GpuWindow, outputs_of, record_kernels
from tests.support.tiny_llama import TINY_SHAPE, Forwards, load_tiny
from tests.support.traces import MemoryTrace, forward
from traces.errors import TraceError
from traces.reader import Trace

LINEAR = ("QKV", "O", "GATE_UP", "DOWN")
LAYERS = TINY_SHAPE.num_layers
NS = pl.col("end_ns") - pl.col("start_ns")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Appended]:
    return record_kernels(tmp_path_factory.mktemp("kernels") / "t.chunkscope")


@pytest.fixture(scope="module")
def kernels(run: tuple[Trace, Appended]) -> pl.DataFrame:
    names = {operator.value: operator.name for operator in Operator}
    table = frame(run[0], "kernels")
    return table.with_columns(operator=table["op"].cast(pl.Int64).replace_strict(names), ns=NS)


@pytest.fixture(scope="module")
def forwards(run: tuple[Trace, Appended]) -> pl.DataFrame:
    return frame(run[0], "forwards")


def test_every_third_forward_is_watched_from_the_runs_first_on(
    kernels: pl.DataFrame, forwards: pl.DataFrame
) -> None:
    assert kernels["forward_id"].unique().sort().to_list() == forwards["forward_id"].to_list()[::EVERY]
    watched = forwards.filter(pl.col("forward_id").is_in(kernels["forward_id"].implode()))
    assert set(watched["mode"]) == {mode.value for mode in ForwardMode}
    assert kernels["stream"].null_count() == kernels["correlation"].null_count() == len(kernels)


@pytest.mark.parametrize(
    ("column", "operators"),
    [
        ("flops_linear", LINEAR),
        ("flops_attention_extend", ("ATTENTION_EXTEND",)),
        ("flops_attention_decode", ("ATTENTION_DECODE",)),
        ("flops_head", ("HEAD",)),
    ],
)
def test_flops_of_operators_sum_to_the_forwards(
    kernels: pl.DataFrame, forwards: pl.DataFrame, column: str, operators: tuple[str, ...]
) -> None:
    sums = (
        kernels.filter(pl.col("operator").is_in(operators)).group_by("forward_id").agg(pl.col("flops").sum())
    )
    expected = forwards.select("forward_id", column).filter(pl.col(column) > 0)
    found = expected.join(sums, on="forward_id")
    assert found[column].to_list() == found["flops"].to_list()
    assert found.height >= 3


def test_bytes_of_operators_sum_to_the_forwards(kernels: pl.DataFrame, forwards: pl.DataFrame) -> None:
    sums = kernels.group_by("forward_id").agg(pl.col("bytes").sum(), pl.col("flops").sum())
    moved = ("bytes_weights", "bytes_kv_read", "bytes_kv_write", "bytes_activation")
    found = forwards.join(sums, on="forward_id").select("bytes", whole=pl.sum_horizontal(moved))
    assert found["bytes"].to_list() == found["whole"].to_list()


def test_durations_lie_within_their_forward_and_sum_to_no_more(
    kernels: pl.DataFrame, forwards: pl.DataFrame
) -> None:
    device = forwards.select("forward_id", begin="start_ns", end="end_ns", device_ns=NS)
    for _, rows in kernels.join(device, on="forward_id").group_by("forward_id"):
        rows = rows.sort("start_ns")
        assert (rows["start_ns"] >= rows["begin"]).all()
        assert (rows["end_ns"] <= rows["end"]).all()
        assert (rows["ns"] > 0).all()
        assert (rows["start_ns"][1:] >= rows["end_ns"][:-1]).all()
        assert rows["ns"].sum() <= rows["device_ns"][0]


def test_every_layer_has_its_operators(kernels: pl.DataFrame, forwards: pl.DataFrame) -> None:
    attention = {
        ForwardMode.EXTEND: {"ATTENTION_EXTEND"},
        ForwardMode.DECODE: {"ATTENTION_DECODE"},
        ForwardMode.MIXED: {"ATTENTION_EXTEND", "ATTENTION_DECODE"},
    }
    modes = dict(forwards.select("forward_id", "mode").iter_rows())
    for (forward_id, layer), rows in kernels.group_by("forward_id", "layer"):
        found = set(rows["operator"])
        if layer is None:
            assert found - {"NORM", "HEAD"} == {"OTHER"}
        else:
            assert layer in range(LAYERS)
            assert found == {*LINEAR, "NORM", "COPY"} | attention[ForwardMode(modes[forward_id])]


def test_what_is_not_covered_is_told(run: tuple[Trace, Appended], kernels: pl.DataFrame) -> None:
    each = forward_coverage(run[0])
    assert each["forward_id"].to_list() == watched_ids(run[0]).to_list()
    sums = kernels.group_by("forward_id").agg(pl.col("ns").sum()).sort("forward_id")
    assert each["covered_ns"].to_list() == sums["ns"].to_list()
    whole = kernel_coverage(run[0])
    assert whole is not None
    assert whole.forwards == each.height
    assert whole.covered_ns == sum(whole.operator_ns.values()) == kernels["ns"].sum()
    assert whole.uncovered_share == 1 - whole.covered_ns / each["device_ns"].sum()
    assert 0 < whole.uncovered_share < 1


def test_kernels_are_written_before_their_forward(run: tuple[Trace, Appended]) -> None:
    log = run[1].log
    written: set[int] = set()
    for table, ids in log:
        if table == "kernels":
            assert not written & set(ids)
        else:
            written |= set(ids)
    assert {table for table, _ in log} == {"kernels", "forwards"}


def test_the_trace_says_which_columns_are_known(run: tuple[Trace, Appended]) -> None:
    states = run[0].meta["columns"]["kernels"]
    assert {name for name, state in states.items() if state == "derived"} == {"tokens", "flops", "bytes"}
    assert {name for name, state in states.items() if state == "missing"} == {"stream", "correlation"}


def test_the_profilers_own_files_are_kept(run: tuple[Trace, Appended], kernels: pl.DataFrame) -> None:
    folder = run[0].path / "rank-0" / "profiles"
    files = sorted(folder.iterdir())
    ids = kernels["forward_id"].unique().sort().to_list()
    assert [file.name for file in files] == [f"forward-{i:08d}.pt.trace.json.gz" for i in ids]
    for file in files:
        names = {event["name"] for event in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]}
        assert {"chunkscope anchor", "chunkscope:QKV:0", "aten::embedding"} <= names


def test_watching_changes_no_output() -> None:
    clock = MonotonicClock()
    probe = KernelProbe(clock, every=1)
    probe.arm()
    assert outputs_of(probe, clock) == outputs_of(None, clock)
    assert probe.take(0) is not None
    assert probe.take(0) is None


def test_a_forward_that_fails_is_not_kept_and_the_next_is_watched() -> None:
    probe = KernelProbe(MonotonicClock(), every=1)
    batch = Forwards(load_tiny()).batch([])
    probe.arm()
    with pytest.raises(MemoryError), probe.window(batch):
        raise MemoryError
    assert probe.take(batch.forward_id) is None
    with probe.window(batch):
        pass
    assert probe.take(batch.forward_id) is not None


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(TraceError, match="rank-0/profiles: cannot be written: No space left"):
        record_kernels(tmp_path / "t.chunkscope")


def test_watched_forwards_stand_apart_unless_there_are_no_others(run: tuple[Trace, Appended]) -> None:
    trace = run[0]
    forwards = frame(trace, "forwards")
    assert slowed(trace, forwards).to_list() == [i % EVERY == 0 for i in forwards["forward_id"]]
    watched = forwards.filter(pl.col("forward_id") % EVERY == 0)
    assert not slowed(trace, watched).any()


def test_watched_forwards_take_no_part_in_estimates() -> None:
    """Decodes of 10 ns, one of 50 that was watched; prompts of as many tokens, one of them watched."""
    decodes = [
        forward(i, 100 * i, 100 * i + (50 if i == 2 else 10), decode_tokens=1, kv_tokens=8) for i in range(4)
    ]
    mixed = {"decode_tokens": 1, "pairs_decode": 8}
    one = {"num_extend_seqs": 1, "prefix_tokens": 0, "extend_tokens": 9}
    trace = MemoryTrace(
        {
            "forwards": [
                *decodes,
                *(forward(i, 100 * i, 100 * i + 30, ForwardMode.MIXED, **mixed) for i in (4, 5)),
                *(forward(i, 100 * i, 100 * i + 30, ForwardMode.EXTEND, **one) for i in (6, 7)),
            ],
            "kernels": [{"forward_id": i} for i in (2, 4, 6)],
        }
    )
    assert mixed_extras(forward_table(trace)).tolist() == [-1, -1, -1, -1, -1, 20, -1, -1]
    assert prefill_points(trace).points["forward_id"].to_list() == [7]


# A GPU's window, by hand.


def places(window: GpuWindow) -> list[tuple[str, str, int | None]]:
    found = profiled_kernels(window.events, LAYERS, on_gpu=True)
    assert all(kernel.stream == GpuWindow.STREAM for kernel in found)
    return [(kernel.name, kernel.operator.name, kernel.layer) for kernel in found]


def test_kernels_belong_to_the_mark_around_their_launch() -> None:
    window = GpuWindow()
    window.launch(1, ("Memcpy HtoD", 2, 3), by="cudaMemcpyAsync", kind="gpu_memcpy")
    window.mark("QKV:0", 10, 20)
    window.mark("ATTENTION_DECODE:0", 20, 30)
    window.mark("HEAD:", 30, 40)
    window.launch(31, ("nvjet", 70, 90))
    window.launch(12, ("gemm", 50, 60))
    window.launch(21, ("decode_kernel", 60, 65), by="cuLaunchKernelEx", category="cuda_driver")
    window.launch(22, ("strange", 65, 70), thread=99)
    window.launch(45, ("after", 90, 91))
    assert places(window) == [
        ("Memcpy HtoD", "COPY", None),
        ("gemm", "QKV", 0),
        ("decode_kernel", "ATTENTION_DECODE", 0),
        ("strange", "OTHER", None),
        ("nvjet", "HEAD", None),
        ("after", "OTHER", None),
    ]


def test_times_are_told_from_the_anchor_to_the_nanosecond() -> None:
    window = GpuWindow()
    window.mark("DOWN:1", 10, 20)
    window.launch(12, ("gemm", 50.125, 60.5))
    [kernel] = profiled_kernels(window.events, LAYERS, on_gpu=True)
    assert kernel == ProfiledKernel("gemm", Operator.DOWN, 1, 7, 101, 50_125, 60_500)
    assert profiled_kernels(window.events[2:], LAYERS, on_gpu=True) == []


def test_on_a_cpu_outermost_operators_count() -> None:
    window = GpuWindow()
    window.mark("O:2", 10, 20)
    window.operator("aten::linear", 11, 15)
    window.operator("aten::addmm", 12, 14)
    window.operator("aten::add_", 15, 16)
    window.operator("aten::outside", 30, 31)
    window.operator("aten::elsewhere", 12, 13, thread=99)
    found = profiled_kernels(window.events, LAYERS, on_gpu=False)
    assert [(k.name, k.operator.name, k.layer, k.stream) for k in found] == [
        ("aten::linear", "O", 2, None),
        ("aten::add_", "O", 2, None),
    ]


GRAPH_LAYER = [
    ("rms_norm_kernel", "NORM", 0),
    ("nvjet_tst_64x8_qkv", "QKV", 0),
    ("splitKreduce_kernel", "QKV", 0),
    ("store_kernel", "COPY", 0),
    ("decode_kernel", "ATTENTION_DECODE", 0),
    ("merge_splits_kernel", "ATTENTION_DECODE", 0),
    ("nvjet_tst_64x8_o", "O", 0),
    ("rms_norm_kernel", "NORM", 0),
    ("cutlass_gemm", "GATE_UP", 0),
    ("silu_and_mul_kernel", "GATE_UP", 0),
    ("cutlass_gemm", "DOWN", 0),
]
GRAPH = [
    ("indexSelectLargeIndex", "OTHER", None),
    *((name, operator, layer) for layer in range(LAYERS) for name, operator, _ in GRAPH_LAYER),
    ("rms_norm_kernel", "NORM", None),
    ("gemv_head", "HEAD", None),
    ("argmax", "OTHER", None),
]


def test_kernels_of_a_graph_are_told_apart_by_name_and_order() -> None:
    window = GpuWindow()
    window.mark("OTHER:", 0, 10)
    kernels = [(name, 20.0 + at, 20.5 + at) for at, (name, _, _) in enumerate(GRAPH)]
    window.launch(5, *kernels, by="cudaGraphLaunch")
    window.launch(7, ("sampled", 500, 501))
    assert places(window) == [*GRAPH, ("sampled", "OTHER", None)]


LAUNCHED = ("store_kernel", "decode_kernel", "merge_splits_kernel")


def test_kernels_of_pieces_are_told_apart_by_their_order_in_the_forward() -> None:
    """Pieces go from one attention to the next and end with a copy; the head is launched behind them."""
    *layers, norm, head, argmax = GRAPH
    copy = [(at, layer) for at, (name, _, layer) in enumerate(layers) if name == "splitKreduce_kernel"]
    for at, layer in reversed(copy):
        layers.insert(at + 1, ("Memcpy DtoD", "COPY", layer))
    groups = [list(group) for _, group in groupby(layers, key=lambda kernel: kernel[0] in LAUNCHED)]
    window = GpuWindow()
    now = 1000.0
    for at, group in enumerate([*groups, [norm], [head], [argmax]]):
        kernels = [(name, now + i, now + i + 0.5) for i, (name, _, _) in enumerate(group)]
        now += len(group)
        if group in groups[::2]:
            window.launch(10 * at, *kernels, by="cudaGraphLaunch")
            continue
        for i, ((_, operator, layer), kernel) in enumerate(zip(group, kernels, strict=True)):
            window.mark(f"{operator}:{'' if layer is None else layer}", 10 * at + i, 10 * at + i + 0.9)
            window.launch(10 * at + i + 0.5, kernel)
    assert places(window) == [*layers, norm, head, argmax]


def test_without_the_expected_matrix_products_a_graphs_order_says_nothing() -> None:
    names = [name for name, _, _ in GRAPH][5:]
    found = dict(zip(names, operators_in_order(names, LAYERS), strict=True))
    assert found["cutlass_gemm"] == (Operator.OTHER, None)
    assert found["rms_norm_kernel"] == (Operator.NORM, None)
    assert found["decode_kernel"] == (Operator.ATTENTION_DECODE, None)


def kernel(start_ns: int, end_ns: int, operator: Operator = Operator.OTHER) -> ProfiledKernel:
    return ProfiledKernel("k", operator, None, 7, None, start_ns, end_ns)


@given(
    st.lists(st.tuples(st.integers(-50, 300), st.integers(0, 80)), max_size=8),
    st.integers(-100, 100),
    st.integers(0, 400),
)
def test_placed_kernels_fit_into_the_forward(spans: list[tuple[int, int]], anchor: int, length: int) -> None:
    given_ = sorted((kernel(start, start + ns) for start, ns in spans), key=lambda k: k.start_ns)
    found = placed(given_, anchor, 1000, 1000 + length)
    edges = [1000, *(edge for k in found for edge in (k.start_ns, k.end_ns)), 1000 + length]
    assert edges == sorted(edges)
    assert all(k.start_ns < k.end_ns for k in found)
    assert sum(k.end_ns - k.start_ns for k in found) <= min(length, sum(ns for _, ns in spans))


def test_kernels_that_fit_stay_where_they_are_and_others_move_together() -> None:
    seen = [kernel(5, 9), kernel(12, 20)]
    assert [(k.start_ns, k.end_ns) for k in placed(seen, 100, 100, 130)] == [(105, 109), (112, 120)]
    assert [(k.start_ns, k.end_ns) for k in placed(seen, 100, 108, 130)] == [(108, 112), (115, 123)]
    assert [(k.start_ns, k.end_ns) for k in placed(seen, 100, 90, 118)] == [(103, 107), (110, 118)]
    assert [(k.start_ns, k.end_ns) for k in placed(seen, 100, 107, 114)] == [(107, 111)]


def test_an_operators_work_stands_in_its_longest_kernel() -> None:
    work = {(Operator.HEAD, None): OperatorWork(2, 600, 70)}
    seen = [kernel(0, 3, Operator.HEAD), kernel(3, 9, Operator.HEAD), kernel(9, 10)]
    columns = kernel_columns(4, seen, work)
    assert columns["flops"] == [None, 600, None]
    assert columns["bytes"] == [None, 70, None]
    assert columns["tokens"] == [2, 2, None]
    assert kernel_columns(4, seen, None)["flops"] is None
