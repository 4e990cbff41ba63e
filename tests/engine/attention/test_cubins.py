"""What the attention kernels compile to for an H100, at the shapes of Llama-3.1-8B."""

import re

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

from engine.attention.geometry import Geometry
from tests.support.attention_cubins import ATTENTION_KERNELS, compile_attention

LLAMA_8B = Geometry(num_heads=32, num_kv_heads=8, head_dim=128, page_size=16)
SM_90 = 90
SHARED_BYTES = 227 << 10  # that a program may have on sm_90
PIPELINED = {"extend", "decode"}


@pytest.mark.parametrize("name", ATTENTION_KERNELS)
def test_nothing_spills_and_memory_is_read_in_wide_pieces(name: str) -> None:
    cubin = compile_attention(name, LLAMA_8B, "bf16", SM_90)
    assert cubin.local_bytes == 0
    assert cubin.shared_bytes <= SHARED_BYTES
    assert cubin.registers * 32 * cubin.num_warps <= 1 << 16
    if name == "extend":
        assert "wgmma.mma_async" in cubin.ptx
        assert "HGMMA" in cubin.sass
    if name in PIPELINED:
        # 16 bytes at a time, straight to shared memory, while the block before is computed.
        assert re.search(r"cp\.async\.cg\.shared\.global .*, 0x10", cubin.ptx)
    elif name != "merge splits":
        assert re.search(r"ld\.global\S*\.v4", cubin.ptx)
