"""Which attention a pool's device gets."""

from importlib.util import find_spec

import torch

from engine.attention.protocol import AttentionBackend
from engine.attention.torch_paged import TorchPagedAttention
from engine.kv_tensors import KVTensors
from engine.shapes import ModelShape

__all__ = ["paged_attention"]

LEAST_CAPABILITY = (8, 0)  # of a card whose tensor cores multiply bfloat16
MAX_HEAD_DIM = 256
DTYPES = (torch.float16, torch.bfloat16)


def paged_attention(shape: ModelShape, kv: KVTensors) -> AttentionBackend:
    """Triton's kernels on a GPU that runs them, where torch brings Triton with it; torch anywhere else.

    Torch for float32 too, which tensor cores multiply only rounded.
    """
    if kv.dtype in DTYPES and shape.head_dim <= MAX_HEAD_DIM and _runs_triton(kv.device):
        from engine.attention.triton_paged import TritonPagedAttention

        return TritonPagedAttention(shape, kv)
    return TorchPagedAttention(shape, kv)


def _runs_triton(device: torch.device) -> bool:
    return (
        device.type == "cuda"
        and find_spec("triton") is not None
        and torch.cuda.get_device_capability(device) >= LEAST_CAPABILITY
    )
