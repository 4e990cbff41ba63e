"""Which operators a device gets."""

from functools import cache
from importlib.util import find_spec

import torch

from engine.ops.protocol import Ops
from engine.ops.torch_ops import TorchOps

__all__ = ["default_ops"]


@cache
def default_ops(device: torch.device) -> Ops:
    """Triton's on a GPU, where torch brings Triton with it; torch's anywhere else."""
    if device.type == "cuda" and find_spec("triton") is not None:
        from engine.ops.triton_ops import TritonOps

        return TritonOps()
    return TorchOps()
