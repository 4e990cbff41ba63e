"""How much memory a forward takes, per kind of device."""

from pathlib import Path
from typing import Protocol

import torch

__all__ = ["MemoryMeter", "memory_meter"]


class MemoryMeter(Protocol):
    """Measures one forward at a time."""

    def start(self) -> None:
        """Begin a new peak."""
        ...

    def read(self) -> tuple[int | None, int | None]:
        """Bytes held now, and the most since `start`; None is unknown."""
        ...


def memory_meter(device: torch.device) -> MemoryMeter:
    """The meter for `device`."""
    return _CudaMeter(device) if device.type == "cuda" else _ResidentMeter()


class _CudaMeter:
    """What torch's allocator has handed out."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def start(self) -> None:
        torch.cuda.reset_peak_memory_stats(self._device)

    def read(self) -> tuple[int | None, int | None]:
        return torch.cuda.memory_allocated(self._device), torch.cuda.max_memory_allocated(self._device)


class _ResidentMeter:
    """The process's resident memory, whose peak Linux keeps; weights and everything else included."""

    CLEAR_REFS = Path("/proc/self/clear_refs")
    STATUS = Path("/proc/self/status")
    RESET_PEAK = b"5"  # proc(5): the peak becomes the present value; no page table is walked

    def __init__(self) -> None:
        self._can_reset = True
        self.start()

    def start(self) -> None:
        if self._can_reset:
            try:
                self.CLEAR_REFS.write_bytes(self.RESET_PEAK)
            except OSError:  # not Linux, or a sandbox forbids it: the peak stays unknown
                self._can_reset = False

    def read(self) -> tuple[int | None, int | None]:
        try:
            status = self.STATUS.read_bytes()
        except OSError:
            return None, None
        return _kilobytes(status, b"VmRSS:"), _kilobytes(status, b"VmHWM:") if self._can_reset else None


def _kilobytes(status: bytes, field: bytes) -> int | None:
    _, found, rest = status.partition(field)
    return int(rest.split(maxsplit=1)[0]) * 1024 if found else None
