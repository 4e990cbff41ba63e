"""Which attention a device gets, and what Triton's computes: the checks beside this, in its interpreter."""

import os
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.attention import block_shapes, choose
from engine.attention.choose import paged_attention
from engine.attention.torch_paged import TorchPagedAttention
from engine.kv_tensors import KVTensors
from tests.support.ragged import attention_shape

HERE = Path(__file__).parent


def test_a_cpu_gets_torchs() -> None:
    shape = attention_shape(4, 2, 16)
    kv = KVTensors(shape, 4, 1, torch.float32, torch.device("cpu"))
    assert isinstance(paged_attention(shape, kv), TorchPagedAttention)


@pytest.mark.parametrize(
    ("head_dim", "dtype", "name"),
    [
        (256, torch.bfloat16, "TritonPagedAttention"),
        (320, torch.bfloat16, "TorchPagedAttention"),
        (128, torch.float32, "TorchPagedAttention"),
    ],
)
def test_a_gpu_gets_tritons_for_the_heads_and_types_it_has(
    head_dim: int, dtype: torch.dtype, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    shape = attention_shape(4, 2, head_dim)
    kv = KVTensors(shape, 4, 1, dtype, torch.device("cpu"))
    monkeypatch.setattr(choose, "_runs_triton", lambda device: True)
    assert type(paged_attention(shape, kv)).__name__ == name


@pytest.mark.parametrize(
    ("capability", "found", "runs"), [((8, 0), True, True), ((7, 5), True, False), ((9, 0), False, False)]
)
def test_triton_wants_a_gpu_with_tensor_cores_for_bfloat16(
    capability: tuple[int, int], found: bool, runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "find_spec", lambda name: object() if found else None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert choose._runs_triton(torch.device("cuda")) == runs


def test_a_timed_block_shape_takes_its_place_in_the_table() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    from benchmarks.tune_attention import rewritten

    source = Path(block_shapes.__file__).read_text()
    shape = block_shapes.BlockShape(64, 16, 4, 1)
    for table in ("EXTEND", "DECODE"):
        source = rewritten(source, table, (90, 128), shape, "a card")
    tables: dict[str, Any] = {"__name__": block_shapes.__name__}
    exec(source, tables)
    for table in ("EXTEND", "DECODE"):
        expected = {**getattr(block_shapes, table), (90, 128): shape}
        assert {key: astuple(entry) for key, entry in tables[table].items()} == {
            key: astuple(entry) for key, entry in expected.items()
        }
    assert source.count("# timed on a card") == 2


def test_every_kernel_and_plan_in_tritons_interpreter() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    checks = sorted(str(path) for path in HERE.glob("check_*.py"))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *checks],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
