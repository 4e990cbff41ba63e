"""Host columns to a device without waiting for it."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["columns_to_device", "to_device"]


def to_device(values: NDArray[np.generic], device: torch.device) -> torch.Tensor:
    """`values` on the device, shared with the array where that is the CPU.

    Through pinned memory on a GPU: from any other the driver may wait for the stream first.
    """
    tensor = torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def columns_to_device(
    columns: Sequence[NDArray[np.integer]], device: torch.device
) -> tuple[torch.Tensor, ...]:
    """A copy of each column on the device, as int64; to a GPU all at once, since each transfer costs time."""
    if device.type == "cpu":
        return tuple(torch.from_numpy(column.astype(np.int64)) for column in columns)
    together = to_device(np.concatenate(columns, dtype=np.int64), device)
    return torch.split(together, [len(column) for column in columns])
