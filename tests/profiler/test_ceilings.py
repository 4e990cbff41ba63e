"""Ceilings: measured, written to JSON and back, kept for each machine."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from profiler.ceilings import Ceilings, GemmRate, Machine, ceilings_from, machine_of
from profiler.ceilings_measure import DTYPES, MeasurePlan, measure_ceilings, plan_for
from profiler.ceilings_store import ceilings_of_trace, keep_ceilings, kept_ceilings, store_path

CPU = Machine("cpu", "AMD EPYC", 2)
GPU = Machine("cuda", "NVIDIA H200", None)
TINY = MeasurePlan((8, 32), 1 << 16)


def ceilings(machine: Machine = CPU, copy_bytes_per_s: float = 2e10, load: float | None = 0.0) -> Ceilings:
    gemm = (GemmRate("float32", 1e11, 1024), GemmRate("bfloat16", 4e10, 512))
    return Ceilings(machine, "2026-11-30T09:00:00+00:00", "2.13.0", gemm, copy_bytes_per_s, 1 << 28, load)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_measurement_says_what_was_measured() -> None:
    found = measure_ceilings(CPU, 0.03, TINY)
    assert [rate.dtype for rate in found.gemm] == list(DTYPES)
    assert all(rate.size in TINY.sizes and 0 < rate.flops_per_s < 1e16 for rate in found.gemm)
    assert 0 < found.copy_bytes_per_s < 1e16
    assert (found.machine, found.copy_buffer_bytes) == (CPU, 1 << 16)
    assert found.load is not None
    assert datetime.fromisoformat(found.date).tzinfo is not None


def test_the_smallest_size_is_measured_however_little_time_there_is() -> None:
    found = measure_ceilings(CPU, 1e-9, TINY)
    assert [rate.size for rate in found.gemm] == [8, 8]


def test_buffers_are_larger_than_caches_and_sizes_ascend() -> None:
    for device in ("cpu", "cuda"):
        plan = plan_for(device)
        assert plan.copy_buffer_bytes >= 1 << 28
        assert list(plan.sizes) == sorted(plan.sizes)


@pytest.mark.parametrize("load", [None, 0.0, 0.3, 7.25])
@pytest.mark.parametrize("machine", [CPU, GPU])
def test_json_and_back(machine: Machine, load: float | None) -> None:
    known = ceilings(machine, load=load)
    assert known.busy is (load == 7.25)
    assert ceilings_from(json.loads(json.dumps(known.as_json()))) == known
    assert known.as_json()["threads"] == machine.threads


@pytest.mark.parametrize(
    "change",
    [
        {"gemm": None},
        {"gemm": [{"dtype": "float32", "flops_per_s": -1.0, "size": 8}]},
        {"gemm": [{"dtype": 3, "flops_per_s": 1.0, "size": 8}]},
        {"gemm": [7]},
        {"copy_bytes_per_s": 0},
        {"copy_bytes_per_s": float("inf")},
        {"copy_bytes_per_s": True},
        {"copy_bytes_per_s": 10**400},
        {"copy_buffer_bytes": "256 MiB"},
        {"date": None},
        {"name": None},
        {"threads": 0},
        {"threads": 1.5},
    ],
)
def test_anything_else_is_no_ceilings(change: dict[str, Any]) -> None:
    assert ceilings_from({**ceilings().as_json(), **change}) is None


@pytest.mark.parametrize("value", [None, [], "text", {}, 3])
def test_no_object_is_no_ceilings_and_no_machine(value: object) -> None:
    assert ceilings_from(value) is None
    assert machine_of(value) is None
    assert ceilings_of_trace({"hardware": value}) is None


def test_threads_tell_cpus_apart_and_not_gpus() -> None:
    hardware = {"name": "x", "cores": 8, "threads": 4}
    assert machine_of({**hardware, "device": "cpu"}) == Machine("cpu", "x", 4)
    assert machine_of({**hardware, "device": "cuda"}) == Machine("cuda", "x", None)
    labels = {Machine("cpu", "x", threads).label for threads in (1, 2, None)}
    assert labels == {"x, 1 thread", "x, 2 threads", "x"}


def test_each_machine_keeps_its_last_ceilings(cache: Path) -> None:
    assert kept_ceilings(CPU) is None
    assert keep_ceilings(ceilings())
    assert keep_ceilings(ceilings(GPU))
    assert keep_ceilings(ceilings(copy_bytes_per_s=3e10))
    found = kept_ceilings(CPU)
    assert found is not None
    assert found.copy_bytes_per_s == 3e10
    assert kept_ceilings(GPU) == ceilings(GPU)
    assert kept_ceilings(replace(CPU, threads=1)) is None
    assert [path.name for path in (cache / "chunkscope").iterdir()] == ["ceilings.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b'{"format": 2, "machines": {}}', b'{"format": 1, "machines": {"a": 1}}'],
)
def test_a_file_that_cannot_be_read_is_replaced(content: bytes) -> None:
    keep_ceilings(ceilings(GPU))
    store_path().write_bytes(content)
    assert kept_ceilings(CPU) is None
    assert not keep_ceilings(ceilings())
    assert kept_ceilings(CPU) == ceilings()
    assert keep_ceilings(ceilings())


@pytest.mark.parametrize("given", ["", "relative/folder"])
def test_the_cache_is_in_the_home_folder_unless_an_absolute_one_is_given(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store_path() == tmp_path / ".cache/chunkscope/ceilings.json"


def test_a_trace_brings_its_own_ceilings_or_finds_those_kept() -> None:
    hardware = {"device": "cpu", "name": CPU.name, "threads": 2}
    own = ceilings(copy_bytes_per_s=5e9)
    assert ceilings_of_trace({"hardware": hardware}) is None
    keep_ceilings(ceilings())
    assert ceilings_of_trace({"hardware": hardware}) == ceilings()
    assert ceilings_of_trace({"hardware": {**hardware, "threads": 3}}) is None
    assert ceilings_of_trace({"hardware": {**hardware, "ceilings": own.as_json()}}) == own
    assert ceilings_of_trace({"hardware": {**hardware, "ceilings": "broken"}}) == ceilings()
