"""Options of CUDA graphs on `chunkscope run`: what they ask for, what is told and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from engine.executors.device import DeviceExecutor
from engine.executors.graph_sizes import DEFAULT_GRAPHS, NO_GRAPHS, GraphLimits
from engine.executors.protocol import GraphKind
from tests.support.cli import call, refused, write_model, write_workload
from tests.support.recorded_graph import RecordedGraphs
from traces.reader import open_trace
from ui.graph_options import GraphOptions

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def args(tmp_path: Path) -> list[object]:
    workload = write_workload(
        tmp_path / "w.jsonl",
        *({"rid": f"r{i}", "prompt_tokens": 20 + i, "max_new_tokens": 3} for i in range(3)),
    )
    trace = tmp_path / "t.chunkscope"
    return [
        "run",
        "--model",
        write_model(tmp_path),
        "--workload",
        workload,
        "-o",
        trace,
        "--max-total-tokens",
        512,
    ]


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        (GraphOptions(), DEFAULT_GRAPHS),
        (GraphOptions(cuda_graph_max_bs=8), GraphLimits(8, 512)),
        (GraphOptions(piecewise_cuda_graph_max_tokens=1024), GraphLimits(256, 1024)),
        (GraphOptions(cuda_graph_max_bs=1, disable_piecewise_cuda_graph=True), GraphLimits(1, 0)),
        (GraphOptions(disable_cuda_graph=True), NO_GRAPHS),
        (GraphOptions(disable_cuda_graph=True, disable_piecewise_cuda_graph=True), NO_GRAPHS),
    ],
)
def test_options_ask_for_limits(options: GraphOptions, limits: GraphLimits) -> None:
    assert options.limits() == limits


def test_on_a_cpu_nothing_is_replayed_and_options_say_so(args: list[object], capfd: Capture) -> None:
    code, _, err = call(capfd, *args, "--cuda-graph-max-bs", 8, "--piecewise-cuda-graph-max-tokens", 64)
    assert code == 0
    assert "--cuda-graph-max-bs 8 changes nothing here: decode forwards are replayed only on a GPU" in err
    assert "--piecewise-cuda-graph-max-tokens 64 changes nothing here" in err
    assert open_trace(Path(str(args[6]))).meta["cuda_graphs"] == {"max_bs": 0, "max_tokens": 0}


def test_a_limit_reaches_the_executor_and_the_trace(
    args: list[object], capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Recorded(DeviceExecutor):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options, capture=RecordedGraphs())

    monkeypatch.setattr("engine.executors.device.DeviceExecutor", Recorded)
    code, _, err = call(capfd, *args, "--piecewise-cuda-graph-max-tokens", 32, "--chunked-prefill-size", 40)
    assert code == 0
    assert "changes nothing" not in err
    trace = open_trace(Path(str(args[6])))
    assert trace.meta["cuda_graphs"] == {"max_bs": 0, "max_tokens": 32}
    told = trace.table("forwards").select(["extend_tokens", "graph", "padded_rows"]).to_pylist()
    prefills = [
        (row["extend_tokens"], row["graph"], row["padded_rows"]) for row in told if row["extend_tokens"]
    ]
    assert prefills == [(40, GraphKind.NONE, 0), (23, GraphKind.PIECEWISE, 9)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ["--disable-cuda-graph", "--cuda-graph-max-bs", 8],
            "leaves nothing for --cuda-graph-max-bs to limit",
        ),
        (
            ["--disable-cuda-graph", "--piecewise-cuda-graph-max-tokens", 8],
            "--disable-cuda-graph leaves nothing for --piecewise-cuda-graph-max-tokens to limit: give one",
        ),
        (
            ["--disable-piecewise-cuda-graph", "--piecewise-cuda-graph-max-tokens", 8],
            "--disable-piecewise-cuda-graph leaves nothing for --piecewise-cuda-graph-max-tokens",
        ),
        (["--cuda-graph-max-bs", 0], "'--cuda-graph-max-bs': 0 is not in the range 1<=x<=16384"),
        (
            ["--piecewise-cuda-graph-max-tokens", -1],
            "'--piecewise-cuda-graph-max-tokens': -1 is not in the range",
        ),
        (["--piecewise-cuda-graph-max-tokens", "many"], "'many' is not a valid integer"),
        (
            ["--executor", "simulated", "--gpu", "h200", "--cuda-graph-max-bs", 8],
            "--cuda-graph-max-bs 8 is not for simulated runs: leave it out",
        ),
        (
            ["--executor", "simulated", "--gpu", "h200", "--disable-piecewise-cuda-graph"],
            "--disable-piecewise-cuda-graph is not for simulated runs: leave it out",
        ),
    ],
)
def test_a_wrong_option(args: list[object], options: list[object], text: str, capfd: Capture) -> None:
    assert text in refused(capfd, *args, *options)
    assert not Path(str(args[6])).exists()
