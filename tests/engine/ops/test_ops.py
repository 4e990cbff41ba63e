"""Which operators a device gets, and what they compute: check_ops.py, in Triton's interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine.ops.choose import default_ops
from engine.ops.torch_ops import TorchOps

CHECKS = Path(__file__).with_name("check_ops.py")


def test_a_cpu_gets_torchs() -> None:
    assert isinstance(default_ops(torch.device("cpu")), TorchOps)


def test_a_gpu_without_triton_gets_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.ops.choose.find_spec", lambda _: None)
    assert isinstance(default_ops.__wrapped__(torch.device("cuda")), TorchOps)


def test_a_gpu_gets_tritons() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    assert type(default_ops.__wrapped__(torch.device("cuda"))).__name__ == "TritonOps"


def test_every_operator_in_tritons_interpreter() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CHECKS)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
