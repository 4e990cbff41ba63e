"""What may be loaded where, each line held in a fresh interpreter by its `sys.modules`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PICTURES_AND_ANALYSES = {"polars", "scipy", "dash", "textual", "click", "rich"}
FILE_FORMATS = {"gguf", "safetensors", "tokenizers", "transformers"}
RUNS_AN_ENGINE = {"profiler.sweep"}  # the only part of profiler that computes forwards


def loaded(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after running `code`."""
    code += "\nimport json, sys\nprint(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def modules_of(package: str) -> list[str]:
    """Every module below a package, from its files."""
    return sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / package).rglob("*.py")
    )


def importing(*modules: str) -> set[str]:
    return loaded("\n".join(f"import {module}" for module in modules))


@pytest.mark.parametrize(
    "modules",
    [
        pytest.param(["engine.scheduler"], id="engine.scheduler"),
        pytest.param(modules_of("engine/cache"), id="engine.cache"),
        pytest.param(["engine.arithmetic"], id="engine.arithmetic"),
        pytest.param(["engine.shapes"], id="engine.shapes"),
        pytest.param(["engine.workload"], id="engine.workload"),
        pytest.param(["engine.executors.simulated", "engine.peaks"], id="engine.executors.simulated"),
        pytest.param(modules_of("traces"), id="traces"),
        pytest.param(
            [name for name in modules_of("profiler") if name not in RUNS_AN_ENGINE], id="profiler's analyses"
        ),
    ],
)
def test_loads_no_torch(modules: list[str]) -> None:
    assert "torch" not in importing(*modules)


@pytest.mark.parametrize(
    "modules",
    [
        pytest.param(modules_of("engine"), id="engine"),
        pytest.param(modules_of("traces"), id="traces"),
        pytest.param(["profiler.recorder"], id="profiler.recorder"),
    ],
)
def test_loads_no_pictures_no_analyses_and_no_file_formats(modules: list[str]) -> None:
    assert not importing(*modules) & (PICTURES_AND_ANALYSES | FILE_FORMATS)


def test_engine_loads_no_storage_and_no_kernels_unasked() -> None:
    kernels = ("triton_", "static_decode")  # loaded where a GPU is chosen
    plain = [name for name in modules_of("engine") if not name.rpartition(".")[2].startswith(kernels)]
    assert not importing(*plain) & {"pyarrow", "triton"}


@pytest.mark.parametrize("package", ["engine", "traces", "profiler", "ui"])
def test_a_package_alone_loads_next_to_nothing(package: str) -> None:
    assert not importing(package) & {"torch", "numpy", "pyarrow", "polars", "click", "rich"}


@pytest.mark.parametrize(
    "args", [["--help"], ["--version"], ["run", "--help"], ["demo", "--help"], ["web", "--help"]]
)
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    code = f"from ui.cli import chunkscope\nchunkscope.main({args!r}, standalone_mode=False)"
    assert not loaded(code) & {"pyarrow", "polars", "scipy", "torch", "dash", "textual", "transformers"}


def test_the_overview_loads_no_command() -> None:
    code = """
from ui.cli import COMMANDS, chunkscope
import sys
chunkscope.main(["--help"], standalone_mode=False)
assert not {ref.module for ref in COMMANDS.values()} & set(sys.modules)
"""
    assert "click" in loaded(code)
