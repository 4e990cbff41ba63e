"""The attention kernels as they are compiled for models, at the table's block shapes."""

from typing import Any

from engine.attention.block_shapes import attention_blocks
from engine.attention.geometry import Geometry
from engine.attention.triton_decode import decode_kernel, merge_splits_kernel
from engine.attention.triton_extend import extend_kernel
from engine.attention.triton_merge import STATES_PER_PROGRAM, merge_states_kernel
from engine.attention.triton_store import HEADS_PER_PROGRAM, store_kernel
from tests.support.cubins import Cubin, compile_cubin

__all__ = ["ATTENTION_KERNELS", "compile_attention"]

ATTENTION_KERNELS = ("extend", "decode", "merge splits", "merge states", "store")
TYPES = {
    "scale": "fp32",
    "max_splits": "i32",
    "num_states": "i32",
    "tokens": "i32",
    "rotations": "*fp32",
    "split_out": "*fp32",
    "split_lse": "*fp32",
    "lse": "*fp32",
    "lse_a": "*fp32",
    "lse_b": "*fp32",
}
OF_ELEMENTS = {"qkv", "pool", "out", "out_a", "out_b"}


def compile_attention(name: str, geometry: Geometry, dtype: str, capability: int) -> Cubin:
    """One of ATTENTION_KERNELS for elements of `dtype` ("bf16"), as its launch on the engine's way has it."""
    blocks = attention_blocks(capability, geometry.head_dim)
    pages = {"PAGE_SIZE": geometry.page_size, "WINDOW": geometry.window or 0}
    if name == "extend":
        shape = blocks.extend
        cut = {"BLOCK_M": shape.block_m, "BLOCK_N": shape.block_n, "WITH_LSE": False}
        return _compile(
            extend_kernel, geometry, dtype, capability, pages | cut, shape.num_warps, shape.num_stages
        )
    if name == "decode":
        shape = blocks.decode
        cut = {"BLOCK_H": shape.block_m, "BLOCK_N": shape.block_n}
        return _compile(
            decode_kernel, geometry, dtype, capability, pages | cut, shape.num_warps, shape.num_stages
        )
    if name == "merge splits":
        return _compile(merge_splits_kernel, geometry, dtype, capability, pages, num_warps=1)
    if name == "merge states":
        return _compile(
            merge_states_kernel, geometry, dtype, capability, {"BLOCK_S": STATES_PER_PROGRAM}, num_warps=4
        )
    return _compile(store_kernel, geometry, dtype, capability, {"BLOCK_H": HEADS_PER_PROGRAM}, num_warps=4)


def _compile(
    kernel: Any,
    geometry: Geometry,
    dtype: str,
    capability: int,
    constants: dict[str, Any],
    num_warps: int,
    num_stages: int = 3,
) -> Cubin:
    sizes = {
        "NUM_HEADS": geometry.num_heads,
        "NUM_KV_HEADS": geometry.num_kv_heads,
        "HEAD_DIM": geometry.head_dim,
        "BLOCK_D": geometry.block_d,
    }
    names = kernel.arg_names
    constants = {name: value for name, value in (sizes | constants).items() if name in names}
    signature = {
        name: f"*{dtype}" if name in OF_ELEMENTS else TYPES.get(name, "*i32")
        for name in names
        if name not in constants
    }
    return compile_cubin(
        kernel, signature, constants, capability=capability, num_warps=num_warps, num_stages=num_stages
    )
