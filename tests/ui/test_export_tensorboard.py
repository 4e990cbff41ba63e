"""`chunkscope export tensorboard`: the log directory, and what torch-tb-profiler's own loader sees in it."""

import logging
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.support.cli import call, refused
from tests.support.kernel_runs import GPU_KERNELS, record_kernels, write_gpu_trace
from traces.reader import open_trace
from traces.writer import TraceWriter

Capture = pytest.CaptureFixture[str]
needs_plugin = pytest.mark.skipif(
    find_spec("torch_tb_profiler") is None or find_spec("tensorboard") is None,
    reason="the extra is not installed: pip install tensorboard torch-tb-profiler==0.4.3",
)


@pytest.fixture(scope="module")
def cpu_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cpu") / "cpu.chunkscope"
    record_kernels(path)
    return path


@pytest.fixture(scope="module")
def gpu_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gpu") / "gpu.chunkscope"
    write_gpu_trace(path)
    return path


@pytest.fixture
def exported(tmp_path: Path, capfd: Capture) -> Callable[[Path], Path]:
    """Exports a trace; returns the run's folder."""

    def export(trace: Path) -> Path:
        done = call(capfd, "export", "tensorboard", trace, "-o", tmp_path / "logs")
        assert (done.code, done.out) == (0, ""), done.err
        folder = tmp_path / "logs" / trace.stem
        assert str(folder) in done.err
        assert f"tensorboard --logdir {tmp_path / 'logs'}" in done.err
        return folder

    return export


@pytest.fixture
def loaded(exported: Callable[[Path], Path], caplog: pytest.LogCaptureFixture) -> Callable[..., Any]:
    """What the plugin's loader makes of one worker of an exported trace; it must have nothing to warn of."""

    def load(trace: Path, worker: str) -> Any:
        from torch_tb_profiler.profiler.data import RunProfileData
        from torch_tb_profiler.profiler.run_generator import RunGenerator

        path = exported(trace) / f"{worker}.pt.trace.json.gz"
        with caplog.at_level(logging.WARNING, logger="pytorch_profiler"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the plugin is older than the pandas that it finds
            data = RunProfileData.parse(worker, None, str(path), str(path.parent))
            profile = RunGenerator(worker, None, data).generate_run_profile()
        assert not [line for line in caplog.messages if "New Tensor Cores eligible operator" not in line]
        return profile

    return load


def tables(trace: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A trace's forwards and kernels, with microseconds."""
    opened = open_trace(trace)
    us = (pl.col("end_ns") - pl.col("start_ns")) / 1e3
    forwards, kernels = (pl.from_arrow(opened.table(name)) for name in ("forwards", "kernels"))
    assert isinstance(forwards, pl.DataFrame)
    assert isinstance(kernels, pl.DataFrame)
    return forwards.with_columns(us=us), kernels.with_columns(us=us)


def steps_of(profile: Any) -> dict[str, float]:
    """Microseconds of each step: the sum of its parts."""
    columns = profile.overview["steps"]["columns"]
    numbers = [at for at, column in enumerate(columns) if column["type"] == "number"]
    return {row[0]: sum(row[at] for at in numbers) for row in profile.overview["steps"]["rows"]}


def kernel_table(profile: Any) -> dict[tuple[str, str], tuple[int, float]]:
    """Calls and microseconds by kernel and operator."""
    names = [column["name"] for column in profile.kernel_op_table["data"]["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in profile.kernel_op_table["data"]["rows"]]
    return {(row["Name"], row["Operator"]): (row["Calls"], row["Total Duration (us)"]) for row in rows}


def device_of(profile: Any) -> Any:
    return next(row["value"] for row in profile.gpu_summary if row["title"] == "Name")


@needs_plugin
@pytest.mark.parametrize("name", ["cpu_run", "gpu_run"])
def test_the_plugin_sees_every_forward_as_a_step(
    name: str, request: pytest.FixtureRequest, loaded: Callable[..., Any]
) -> None:
    trace = request.getfixturevalue(name)
    profile = loaded(trace, "rank-0_forwards")
    forwards, _ = tables(trace)
    steps = steps_of(profile)
    assert list(steps) == [str(i) for i in forwards["forward_id"]]
    assert list(steps.values()) == pytest.approx(forwards["us"].to_list(), abs=0.002)
    [average] = profile.overview["performance"]
    assert average["value"] == pytest.approx(forwards["us"].mean(), abs=1)
    modes = {name: calls for (name, _), (calls, _) in kernel_table(profile).items()}
    assert sum(modes.values()) == len(forwards)


@needs_plugin
def test_the_plugin_sees_cpu_operators_as_kernels_of_a_named_device(
    cpu_run: Path, loaded: Callable[..., Any]
) -> None:
    profile = loaded(cpu_run, "rank-0_kernels")
    forwards, kernels = tables(cpu_run)
    watched = forwards.filter(pl.col("forward_id").is_in(kernels["forward_id"].implode()))
    steps = steps_of(profile)
    assert list(steps) == [str(i) for i in watched["forward_id"]]
    assert list(steps.values()) == pytest.approx(watched["us"].to_list(), abs=0.002)
    assert device_of(profile) == "CPU (operator times)"
    table = kernel_table(profile)
    assert sum(calls for calls, _ in table.values()) == len(kernels)
    for (kernel, operator), (calls, us) in table.items():
        code = ["QKV", "ATTENTION_EXTEND", "ATTENTION_DECODE", "O", "GATE_UP", "DOWN", "HEAD", "NORM"].index
        mine = kernels.filter(pl.col("name") == kernel)
        if operator not in ("COPY", "OTHER"):
            mine = mine.filter(pl.col("op") == code(operator))
            assert (calls, us) == (len(mine), pytest.approx(mine["us"].sum(), abs=0.01))
    host = {row["name"]: row["host_total_duration"] for row in profile.operation_table_by_name["data"]}
    assert host["GATE_UP"] >= sum(us for (_, operator), (_, us) in table.items() if operator == "GATE_UP") - 1


@needs_plugin
def test_the_plugin_sees_a_gpus_kernels_with_their_operators(
    gpu_run: Path, loaded: Callable[..., Any]
) -> None:
    profile = loaded(gpu_run, "rank-0_kernels")
    assert list(steps_of(profile)) == ["0", "2", "4"]
    assert device_of(profile) == "NVIDIA H200"
    assert kernel_table(profile) == {
        (name, operator): (3, pytest.approx(3 * us, abs=0.01)) for name, operator, _, us in GPU_KERNELS
    }
    busy = next(row["value"] for row in profile.gpu_summary if row["title"] == "GPU Utilization")
    assert busy == f"{round(100 * sum(us for *_, us in GPU_KERNELS) / 300, 2)} %"
    assert [view.display_name for view in profile.views] == ["Overview", "Operator", "Kernel", "Trace"]


def test_raw_windows_stay_outside_the_log_directory(cpu_run: Path, exported: Callable[[Path], Path]) -> None:
    folder = exported(cpu_run)
    files = sorted(file.name for file in folder.parent.rglob("*") if file.is_file())
    assert files == ["rank-0_forwards.pt.trace.json.gz", "rank-0_kernels.pt.trace.json.gz"]
    assert list((cpu_run / "rank-0" / "profiles").iterdir())


def test_without_kernels_there_are_the_forwards(tmp_path: Path, exported: Callable[[Path], Path]) -> None:
    trace = tmp_path / "plain.chunkscope"
    with TraceWriter(trace, {}) as writer:
        writer.append("forwards", {"forward_id": [4, 5], "start_ns": [5, None], "end_ns": [9, None]}, 2)
        writer.append("forwards", {"forward_id": 6, "rank": 3, "start_ns": 5, "end_ns": 9}, 1)
    assert sorted(file.name for file in exported(trace).iterdir()) == [
        "rank-0_forwards.pt.trace.json.gz",
        "rank-3_forwards.pt.trace.json.gz",
    ]


def test_what_is_missing_to_look_at_it_is_said(
    gpu_run: Path, tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.tensorboard.find_spec", lambda name: None)
    done = call(capfd, "export", "tensorboard", gpu_run, "-o", tmp_path / "logs")
    assert "pip install tensorboard torch-tb-profiler==0.4.3, then tensorboard" in done.err
    monkeypatch.setattr("ui.tensorboard.find_spec", lambda name: object())
    done = call(capfd, "export", "tensorboard", gpu_run, "-o", tmp_path / "more")
    assert "pip install" not in done.err


def test_bad_input_is_refused_in_one_line(gpu_run: Path, tmp_path: Path, capfd: Capture) -> None:
    with TraceWriter(tmp_path / "empty.chunkscope", {}):
        pass
    (tmp_path / "file").write_text("mine")
    (tmp_path / "logs" / "gpu").mkdir(parents=True)
    cases = [
        ([tmp_path / "no.chunkscope", "-o", tmp_path / "a"], "no such trace"),
        ([tmp_path / "empty.chunkscope", "-o", tmp_path / "a"], "holds no forward"),
        ([gpu_run], "-o"),
        ([gpu_run, "-o", tmp_path / "logs"], "logs/gpu: already exists"),
        ([gpu_run, "-o", tmp_path / "file"], "cannot be made"),
    ]
    for args, words in cases:
        assert words in refused(capfd, "export", "tensorboard", *args)
    assert not list((tmp_path / "logs" / "gpu").iterdir())
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "a").exists()


def test_a_failure_leaves_no_run(
    gpu_run: Path, tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("traces.tensorboard.write_tensorboard", interrupted)
    done = call(capfd, "export", "tensorboard", gpu_run, "-o", tmp_path / "logs")
    assert done.code == 130
    assert not list((tmp_path / "logs").iterdir())
