"""The doctor's line about ceilings: those kept for the machine, else its card's data sheet."""

from pathlib import Path

import pytest

from profiler.ceilings import Ceilings, GemmRate, Machine
from profiler.ceilings_store import keep_ceilings
from ui.machine_roof import present_roofs, roof_lines

CPU = Machine("cpu", "AMD EPYC", 2)


@pytest.fixture(autouse=True)
def no_kept_ceilings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_measured_dtypes_share_a_line() -> None:
    gemm = (GemmRate("float32", 98.1e9, 2048), GemmRate("bfloat16", 738e9, 1024))
    keep_ceilings(Ceilings(CPU, "2026-11-30T10:00:00", "2.13", gemm, 15.2e9, 2**28, 0.1))
    assert roof_lines(present_roofs(CPU)) == (
        "fp32 98.1 GFLOP/s, bf16 738 GFLOP/s, copy 15.2 GB/s, measured on AMD EPYC, 2 threads, 2026-11-30"
    )


def test_a_gpu_that_was_not_measured_has_its_data_sheet() -> None:
    told = roof_lines(present_roofs(Machine("cuda", "NVIDIA H200", None)))
    assert told.startswith("fp32 66.9 TFLOP/s, bf16 989 TFLOP/s, memory 4.80 TB/s, data sheet of H200 SXM: ")


def test_an_unknown_machine_has_none() -> None:
    assert present_roofs(CPU) == []
