"""`chunkscope run --record kernels`: what the trace then holds, and what is refused."""

from pathlib import Path

import polars as pl
import pytest

from tests.support.cli import call, refused, write_model, write_workload
from traces.reader import open_trace

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run_args(tmp_path: Path) -> list[object]:
    """A run of 12 forwards: one of a prompt, and the other tokens of its output."""
    lines = [{"rid": "a", "arrival_s": 0, "prompt_tokens": 30, "max_new_tokens": 12, "ignore_eos": True}]
    workload = write_workload(tmp_path / "w.jsonl", *lines)
    return ["run", "--model", write_model(tmp_path), "--workload", workload, "--threads", 1]


@pytest.mark.parametrize(("record", "watched"), [("kernels:every=5", [0, 5, 10]), ("kernels", [0])])
def test_kernels_of_every_nth_forward_are_in_the_trace(
    run_args: list[object], tmp_path: Path, capfd: Capture, record: str, watched: list[int]
) -> None:
    output = tmp_path / "t.chunkscope"
    done = call(capfd, *run_args, "--record", record, "-o", output)
    assert done.code == 0, done.err
    assert "USDT" not in done.err
    trace = open_trace(output)
    kernels = pl.from_arrow(trace.table("kernels"))
    assert isinstance(kernels, pl.DataFrame)
    assert kernels["forward_id"].unique().sort().to_list() == watched
    assert trace.table("forwards").num_rows == 12
    assert trace.meta["kernels"] == {"every": 5 if "5" in record else 50, "source": "CPU operators"}
    assert len(list((output / "rank-0" / "profiles").iterdir())) == len(watched)
    assert call(capfd, "check", output).code == 0
    assert call(capfd, "stats", output).code == 0


def test_without_the_option_nothing_is_watched(
    run_args: list[object], tmp_path: Path, capfd: Capture
) -> None:
    output = tmp_path / "t.chunkscope"
    assert call(capfd, *run_args, "-o", output).code == 0
    trace = open_trace(output)
    assert trace.table("kernels").num_rows == 0
    assert "kernels" not in trace.meta
    assert not (output / "rank-0" / "profiles").exists()


@pytest.mark.parametrize("record", ["kernel", "kernels:every=0", "kernels:every=-1", "kernels:20", ""])
def test_another_word_is_refused_in_one_line(
    run_args: list[object], tmp_path: Path, capfd: Capture, record: str
) -> None:
    line = refused(capfd, *run_args, "--record", record, "-o", tmp_path / "t.chunkscope")
    assert "give kernels, or kernels:every=20" in line
    assert not (tmp_path / "t.chunkscope").exists()


def test_a_simulated_run_has_no_kernels(run_args: list[object], tmp_path: Path, capfd: Capture) -> None:
    simulated = [*run_args[:-2], "--executor", "simulated", "--gpu", "H200"]
    line = refused(capfd, *simulated, "--record", "kernels", "-o", tmp_path / "t.chunkscope")
    assert "--record kernels:every=50 is not for simulated runs: leave it out" in line
