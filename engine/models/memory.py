"""Whether a model's weights fit in the memory that is free."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.shapes import ModelShape

if TYPE_CHECKING:
    import torch

__all__ = ["free_bytes", "require_memory"]

MEMINFO = Path("/proc/meminfo")


def require_memory(shape: ModelShape, dtype: "torch.dtype", device: "torch.device") -> None:
    """Raise ModelError if the weights in `dtype` are larger than what is free on `device`."""
    needed = shape.num_params * dtype.itemsize
    free = free_bytes(device)
    kind = str(dtype).removeprefix("torch.")
    if needed > free:
        raise ModelError(
            f"{shape.name}: the weights take {needed / 1e9:.1f} GB in {kind} and "
            f"{free / 1e9:.1f} GB are free on {device}: give a smaller model or --dtype bfloat16"
        )


def free_bytes(device: "torch.device") -> int:
    """Memory to be had on `device` now; a CPU's whole memory where the system does not say more."""
    if device.type == "cuda":
        import torch

        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = MEMINFO.read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
