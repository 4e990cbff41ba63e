"""`chunkscope ceilings`, and what later runs and traces know of its results."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.ceilings import ceilings_from
from profiler.ceilings_measure import MeasurePlan
from tests.support.cli import call, refused, write_model, write_workload
from traces.meta import read_meta
from traces.reader import open_trace
from traces.writer import TraceWriter
from ui.machine import cpu_name

Capture = pytest.CaptureFixture[str]

TINY = MeasurePlan((8, 32), 1 << 16)
QUICK = ("--seconds", "0.03", "--threads", "2", "--device", "cpu")
HERE = {"device": "cpu", "name": cpu_name(), "cores": 2, "threads": 2}


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of the cache; what is measured is tiny, and torch's threads are put back."""
    import torch

    threads = torch.get_num_threads()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("profiler.ceilings_measure.plan_for", lambda device: TINY)
    yield tmp_path / "cache/chunkscope/ceilings.json"
    torch.set_num_threads(threads)


def write_trace(path: Path, hardware: dict[str, Any] | None) -> Path:
    meta = {"provenance": "measured"} | ({} if hardware is None else {"hardware": hardware})
    with TraceWriter(path, meta):
        return path


def test_the_numbers_in_words(store: Path, capfd: Capture) -> None:
    code, out, _ = call(capfd, "ceilings", *QUICK)
    assert code == 0
    assert f"{cpu_name()}, 2 threads" in out
    for word in ("fp32", "bf16", "copy", "FLOP/s", "B/s", "FLOP/byte"):
        assert word in out
    assert str(store) in out


def test_one_json_document(store: Path, capfd: Capture) -> None:
    answer = call(capfd, "ceilings", *QUICK, "--json").json
    measured = ceilings_from(answer["ceilings"])
    assert measured is not None
    assert [rate.dtype for rate in measured.gemm] == ["float32", "bfloat16"]
    assert (answer["kept_in"], answer["added_to"]) == (str(store), [])
    assert list(json.loads(store.read_text())["machines"].values()) == [answer["ceilings"]]


def test_traces_of_this_machine_get_them(tmp_path: Path, capfd: Capture) -> None:
    traces = [write_trace(tmp_path / f"{name}.chunkscope", HERE) for name in "ab"]
    answer = call(capfd, "ceilings", *traces, *QUICK, "--json").json
    assert answer["added_to"] == [str(trace) for trace in traces]
    for trace in traces:
        meta = open_trace(trace).meta
        assert meta["hardware"] == {**HERE, "ceilings": answer["ceilings"]}


@pytest.mark.parametrize(
    ("hardware", "why"),
    [
        (None, "does not say what it was recorded on"),
        ({**HERE, "name": "Other\nCPU"}, r"recorded on Other\\nCPU, and this machine is"),
        ({**HERE, "device": "cuda"}, "recorded on cuda: give --device cuda"),
        ({**HERE, "threads": 7}, "other threads, 7 and not 2: give --threads 7"),
    ],
)
def test_a_trace_of_another_machine_is_refused_before_anything_is_measured(
    hardware: dict[str, Any] | None, why: str, tmp_path: Path, store: Path, capfd: Capture
) -> None:
    mine = write_trace(tmp_path / "mine.chunkscope", HERE)
    other = write_trace(tmp_path / "other.chunkscope", hardware)
    before = read_meta(mine), read_meta(other)
    line = refused(capfd, "ceilings", mine, other, *QUICK)
    assert str(other) in line
    assert why.replace(r"\\n", r"\n") in line
    assert (read_meta(mine), read_meta(other)) == before
    assert not store.exists()


def test_a_simulated_trace_is_refused(tmp_path: Path, capfd: Capture) -> None:
    with TraceWriter(tmp_path / "s.chunkscope", {"provenance": "simulated", "hardware": HERE}) as writer:
        path = writer.path
    assert "simulated, so its peaks are given" in refused(capfd, "ceilings", path, *QUICK)


def test_a_growing_trace_is_refused(tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "t.chunkscope"
    with TraceWriter(path, {"hardware": HERE}):
        assert "still being written" in refused(capfd, "ceilings", path, *QUICK)


def test_what_is_no_trace_is_refused(tmp_path: Path, capfd: Capture) -> None:
    assert "no such trace" in refused(capfd, "ceilings", tmp_path / "absent.chunkscope", *QUICK)


def test_a_cache_that_cannot_be_written_is_named_with_the_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    line = refused(capfd, "ceilings", *QUICK)
    assert str(tmp_path / "file/chunkscope/ceilings.json") in line
    assert "set XDG_CACHE_HOME" in line


def test_a_broken_cache_is_replaced_and_said_so(store: Path, capfd: Capture) -> None:
    store.parent.mkdir(parents=True)
    store.write_text("{")
    code, _, err = call(capfd, "ceilings", *QUICK)
    assert code == 0
    assert f"{store} could not be read and is replaced" in err
    assert json.loads(store.read_text())["machines"]


@pytest.mark.parametrize("seconds", ["0", "-1", "1e9", "nan", "x"])
def test_seconds_must_be_a_time(seconds: str, capfd: Capture) -> None:
    assert "--seconds" in refused(capfd, "ceilings", "--seconds", seconds)


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch, store: Path, capfd: Capture) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory\nsecond line")

    monkeypatch.setattr("profiler.ceilings_measure.measure_ceilings", fail)
    line = refused(capfd, "ceilings", *QUICK)
    assert "can't allocate memory: close other programs" in line
    assert not store.exists()


def test_no_gpu_is_said(capfd: Capture) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    assert "--device cuda: no CUDA device" in refused(capfd, "ceilings", "--device", "cuda")


def test_runs_and_sweeps_take_them_along(tmp_path: Path, capfd: Capture) -> None:
    model = write_model(tmp_path)
    workload = write_workload(tmp_path / "w.jsonl", {"rid": "a", "prompt_tokens": 5, "max_new_tokens": 2})
    run = ("run", "--model", model, "--workload", workload, "--threads", 2, "--device", "cpu")
    assert call(capfd, *run, "-o", tmp_path / "before.chunkscope").code == 0
    measured = call(capfd, "ceilings", *QUICK, "--json").json["ceilings"]
    assert call(capfd, *run, "-o", tmp_path / "after.chunkscope").code == 0
    sweep = ("sweep", "--model", model, "--tokens", "2:4", "--repeats", 1, "--threads", 2, "--device", "cpu")
    assert call(capfd, *sweep, "-o", tmp_path / "sweep.chunkscope").code == 0
    found = {
        name: read_meta(tmp_path / f"{name}.chunkscope")["hardware"].get("ceilings")
        for name in ("before", "after", "sweep")
    }
    assert found == {"before": None, "after": measured, "sweep": measured}
