"""What the kernels compile to for an H100: nothing spills, and rows are read 16 bytes at a time."""

from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

from engine.ops.triton_choice import best_of_pieces_kernel, best_of_row_kernel
from engine.ops.triton_norms import norm_warps, rms_norm_heads_kernel, rms_norm_kernel
from engine.ops.triton_ops import HEAD_TILE, PIECE, SILU_BLOCK
from engine.ops.triton_silu import silu_and_mul_kernel
from tests.support.cubins import Cubin, compile_cubin

# Sizes are those of Llama-3.1-8B; strides are given as constants, as a launch knows them to be even.
HIDDEN, FFN, VOCABULARY, HEAD_DIM = 4096, 14336, 128256, 128
MOST_REGISTERS = 64  # so that 1,024 threads are resident, half of what a multiprocessor holds


def compiled(
    kernel: Any, pointers: Mapping[str, str | None], constants: Mapping[str, Any], num_warps: int = 4
) -> Cubin:
    """`pointers` gives element types; None stands for a pointer that is not passed."""
    signature = {name: f"*{kind}" for name, kind in pointers.items() if kind is not None}
    if "eps" in kernel.arg_names:
        signature["eps"] = "fp32"
    absent = {name: None for name, kind in pointers.items() if kind is None}
    return compile_cubin(kernel, signature, {**absent, **constants}, num_warps=num_warps)


def rms_norm(add: bool) -> Cubin:
    pointers = {"out_ptr": "bf16", "hidden_ptr": "bf16", "weight_ptr": "bf16"}
    return compiled(
        rms_norm_kernel,
        pointers | {"residual_ptr": "bf16" if add else None},
        {"hidden_stride": HIDDEN, "residual_stride": HIDDEN, "ADD": add, "SIZE": HIDDEN, "BLOCK": HIDDEN},
        norm_warps(HIDDEN),
    )


def rms_norm_heads() -> Cubin:
    constants = {"token_stride": 6144, "num_heads": 40, "HEAD_DIM": HEAD_DIM, "BLOCK_DIM": HEAD_DIM}
    return compiled(
        rms_norm_heads_kernel,
        {"heads_ptr": "bf16", "weight_ptr": "bf16"},
        constants | {"BLOCK_HEADS": HEAD_TILE // HEAD_DIM},
    )


def silu_and_mul() -> Cubin:
    constants = {"row_stride": 2 * FFN, "SIZE": FFN, "BLOCK": SILU_BLOCK}
    return compiled(silu_and_mul_kernel, {"out_ptr": "bf16", "gate_up_ptr": "bf16"}, constants)


def best_of_pieces(noisy: bool) -> Cubin:
    pointers = {"tops_ptr": "fp32", "rows_ptr": "i64", "temperatures_ptr": "fp32", "noise_ptr": "fp32"}
    return compiled(
        best_of_pieces_kernel,
        {"scores_ptr": "fp32", "places_ptr": "i32", "logits_ptr": "bf16"}
        | (pointers if noisy else dict.fromkeys(pointers)),
        {"vocab_size": VOCABULARY, "logits_stride": VOCABULARY, "noise_stride": VOCABULARY}
        | {"NOISY": noisy, "BLOCK": PIECE},
        num_warps=8,
    )


def best_of_row(noisy: bool) -> Cubin:
    pointers = {"tops_ptr": "fp32", "temperatures_ptr": "fp32"}
    return compiled(
        best_of_row_kernel,
        {"out_ptr": "i64", "scores_ptr": "fp32", "places_ptr": "i32"}
        | (pointers if noisy else dict.fromkeys(pointers)),
        {"num_pieces": 32, "NOISY": noisy, "BLOCK": 32},
        num_warps=1,
    )


KERNELS = {
    "rms-norm": lambda: rms_norm(False),
    "add-rms-norm": lambda: rms_norm(True),
    "rms-norm-heads": rms_norm_heads,
    "silu-and-mul": silu_and_mul,
    "argmax-of-pieces": lambda: best_of_pieces(False),
    "noisy-argmax-of-pieces": lambda: best_of_pieces(True),
    "argmax-of-row": lambda: best_of_row(False),
    "noisy-argmax-of-row": lambda: best_of_row(True),
}


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_spills_and_rows_are_read_in_wide_loads(name: str) -> None:
    cubin = KERNELS[name]()
    assert cubin.local_bytes == 0
    assert cubin.registers <= MOST_REGISTERS
    assert cubin.shared_bytes <= 48 << 10  # what every GPU gives without being asked
    if "row" not in name:
        assert ".v4" in cubin.ptx
