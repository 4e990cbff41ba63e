"""Recorded kernels of a run: on a GPU those that CUPTI saw, in graphs and out of them; else CPU operators."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.device import DeviceExecutor
from engine.executors.graph_sizes import GraphLimits
from engine.executors.protocol import GraphKind
from engine.models.llama import LlamaModel
from engine.models.loader import LoadedModel
from engine.operators import Operator
from engine.request import Request, SamplingParams
from profiler.kernels import KernelProbe, KernelRecorder
from profiler.recorder import Recorder
from tests.support.tiny_llama import TINY_SHAPE, TinyCheckpoint
from traces.reader import open_trace
from traces.writer import TraceWriter

LINEAR = (Operator.QKV, Operator.O, Operator.GATE_UP, Operator.DOWN)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def tables(device: torch.device, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """Rows of `forwards` and `kernels` of a run of which every second forward was watched."""
    path = tmp_path_factory.mktemp("kernels") / "t.chunkscope"
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    checkpoint = TinyCheckpoint(Path("tiny"), TINY_SHAPE, frozenset({0}))
    loaded = LoadedModel(LlamaModel(TINY_SHAPE, checkpoint.tensors(dtype, device)), checkpoint)
    config = EngineConfig(page_size=16, chunked_prefill_size=48, max_running_requests=8)
    config = config.resolve(max_total_tokens=512, context_length=128)
    clock = MonotonicClock()
    probe = KernelProbe(clock, every=2, on_gpu=device.type == "cuda")
    graphs = GraphLimits(max_tokens=40)  # less than the first forward has
    executor = DeviceExecutor(loaded, config, clock, probe=probe, graphs=graphs)
    Engine(config, executor, clock=clock).run(_requests())  # compiled and captured
    recorder = Recorder(
        TraceWriter(path, {"provenance": "measured"}), TINY_SHAPE, clock=clock, element_bytes=dtype.itemsize
    )
    observer = KernelRecorder(
        recorder, probe, path / "rank-0" / "profiles", TINY_SHAPE, element_bytes=dtype.itemsize
    )
    Engine(config, executor, clock=clock, observer=observer).run(_requests())
    recorder.close()
    trace = open_trace(path)
    return {name: trace.table(name).to_pylist() for name in ("forwards", "kernels")}


def _requests() -> list[Request]:
    sampling = SamplingParams(max_new_tokens=12, ignore_eos=True)
    return [Request(i, f"r{i}", [7 + i + j for j in range(30 + 10 * i)], sampling) for i in range(3)]


def _watched(tables: dict[str, list[Row]]) -> list[tuple[Row, list[Row]]]:
    kernels = defaultdict(list)
    for row in tables["kernels"]:
        kernels[row["forward_id"]].append(row)
    return [(row, kernels[row["forward_id"]]) for row in tables["forwards"] if row["forward_id"] in kernels]


def _flops(kernels: list[Row], *operators: Operator) -> int:
    return sum(row["flops"] or 0 for row in kernels if row["op"] in operators)


def test_every_second_forward_has_kernels(tables: dict[str, list[Row]], device: torch.device) -> None:
    watched = _watched(tables)
    assert [row["forward_id"] for row, _ in watched] == [row["forward_id"] for row in tables["forwards"]][::2]
    if device.type == "cuda":
        assert {row["graph"] for row, _ in watched} == set(GraphKind)
        assert all(kernel["stream"] is not None for kernel in tables["kernels"])


def test_kernels_lie_in_their_forward_and_take_no_more_than_it(tables: dict[str, list[Row]]) -> None:
    for forward, kernels in _watched(tables):
        edges = [forward["start_ns"]]
        for kernel in sorted(kernels, key=lambda row: row["start_ns"]):
            edges += [kernel["start_ns"], kernel["end_ns"]]
        edges.append(forward["end_ns"])
        assert edges == sorted(edges)


def test_flops_of_operators_are_the_forwards(tables: dict[str, list[Row]]) -> None:
    """In graphs matrix products are told apart by their order, which libraries may change."""
    for forward, kernels in _watched(tables):
        assert _flops(kernels, Operator.ATTENTION_DECODE) == forward["flops_attention_decode"]
        assert _flops(kernels, Operator.ATTENTION_EXTEND) == forward["flops_attention_extend"]
        linear, head = _flops(kernels, *LINEAR), _flops(kernels, Operator.HEAD)
        assert (linear, head) in [(forward["flops_linear"], forward["flops_head"]), (0, 0)]
        assert linear > 0 or forward["graph"] != GraphKind.NONE
