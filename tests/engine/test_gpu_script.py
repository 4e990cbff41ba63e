"""benchmarks/gpu.sh to its end on a CPU, with no package in reach but those that it names."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = ("torch", "triton", "numpy", "pyarrow", "pytest")
OTHERS = ("polars", "hypothesis", "dash", "textual", "isal", "click", "rich", "safetensors")
PHASES = ["machine", "correctness", "ceilings", "extend", "decode", "prefill", "batches", "recorder"]


def _with_dependencies(names: tuple[str, ...]) -> Iterator[Distribution]:
    """The named distributions and all that they require; one that is not installed is for other machines."""
    todo, seen = list(names), set()
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            if name in NAMED:
                raise
            continue
        yield found
        for requirement in found.requires or ():
            match = re.match(r"[\w.-]+", requirement)
            if match is not None and "extra ==" not in requirement:
                todo.append(match[0])


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of links to the named packages, for a Python that sees no other."""
    folder = tmp_path_factory.mktemp("packages")
    try:
        distributions = list(_with_dependencies(NAMED))
    except PackageNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    for found in distributions:
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            link = folder / top
            if not link.is_symlink():
                link.symlink_to(Path(str(found.locate_file(top))).resolve())
    return folder


def _python(packages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Without site, so that sys.path holds the standard library and the folder alone."""
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def finished(
    packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The whole script, run once."""
    out = tmp_path_factory.mktemp("out")
    run = subprocess.run(
        [ROOT / "benchmarks" / "gpu.sh", "--device", "cpu", "--quick"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHON": sys.executable,
            "PYTHON_OPTIONS": "-S",
            "PYTHONPATH": str(packages),
            "OUT": str(out),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return run, out


@pytest.fixture(scope="module")
def results(finished: tuple[subprocess.CompletedProcess[str], Path]) -> dict[str, Any]:
    run, out = finished
    log = out / "correctness.txt"
    assert run.returncode == 0, run.stdout + run.stderr + (log.read_text() if log.exists() else "")
    read: dict[str, Any] = json.loads((out / "gpu.json").read_text())
    return read


def test_no_other_package_is_in_reach(packages: Path) -> None:
    tries = "\n".join(f"assert importlib.util.find_spec({name!r}) is None, {name!r}" for name in OTHERS)
    run = _python(packages, "-c", f"import importlib.util\n{tries}")
    assert run.returncode == 0, run.stderr


def test_every_phase_ends(results: dict[str, Any]) -> None:
    assert list(results["phases"]) == PHASES
    assert [name for name, phase in results["phases"].items() if "error" in phase] == []


def test_kernels_are_checked_in_the_interpreter(results: dict[str, Any]) -> None:
    checked = results["phases"]["correctness"]["result"]
    assert checked["where"] == "in Triton's interpreter"
    assert checked["passed"] > 5
    assert checked["failed"] == []
    assert all("test_engine.py" in name for name in checked["skipped"])  # those of a real device


def test_attention_is_measured_beside_torchs(results: dict[str, Any]) -> None:
    assert results["attention"] == "torch"
    for phase, unit in (("extend", "flops_per_s"), ("decode", "bytes_per_s")):
        points = results["phases"][phase]["result"]["points"]
        assert all(point["ours"][unit] > 0 for point in points)
        for point in points:
            assert point["cudnn"][unit] is None
            assert point["cudnn"]["reason"]
            assert point.get("ragged") or point["flash"]["relative_error_of_ours"] < 1e-5


def test_the_engine_is_measured(results: dict[str, Any]) -> None:
    phases = {name: results["phases"][name]["result"]["points"] for name in ("prefill", "batches")}
    assert all(point["tokens_per_s"] > 0 for points in phases.values() for point in points)
    assert all(point["without_graphs"]["device_ns"] > 0 for point in phases["prefill"])  # all are small
    assert [point["rows"] for point in phases["batches"]] == [1, 3, 8]
    recorder = results["phases"]["recorder"]["result"]["points"]
    assert len(recorder["rounds"]) == 2
    assert set(recorder["overhead"]) == {"step_ns", "run_ns"}


def test_sizes_of_no_meaning_are_not_judged(
    results: dict[str, Any], finished: tuple[subprocess.CompletedProcess[str], Path]
) -> None:
    run, out = finished
    assert results["targets"] is None
    assert run.stdout == (out / "gpu.md").read_text()
    assert "sizes of no meaning" in run.stdout
    assert "wanted" not in run.stdout


def test_true_sizes_are_refused_on_a_cpu(packages: Path) -> None:
    run = _python(packages, "-m", "benchmarks.gpu", "--device", "cpu")
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1].endswith("add --quick")
