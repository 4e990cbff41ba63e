"""Host columns to a device without waiting for it."""

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["to_device"]


def to_device(values: NDArray[np.generic], device: torch.device) -> torch.Tensor:
    """`values` on the device, shared with the array where that is the CPU.

    Through pinned memory on a GPU: from any other the driver may wait for the stream first.
    """
    tensor = torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
