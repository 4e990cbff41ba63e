"""How much memory a forward takes, per kind of device."""

import ctypes
import os
from pathlib import Path
from typing import Protocol

import torch

__all__ = ["MemoryMeter", "memory_meter"]

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class MemoryMeter(Protocol):
    """Measures one forward at a time."""

    def start(self, *, large: bool = False) -> None:
        """Begin a new peak; `large` says that the forward takes much memory, so that exactness pays."""
        ...

    def read(self) -> tuple[int | None, int | None]:
        """Bytes held at `start`, and the most since; the difference is the forward's own. None is unknown."""
        ...


def memory_meter(device: torch.device) -> MemoryMeter:
    """The meter for `device`."""
    return _CudaMeter(device) if device.type == "cuda" else _ResidentMeter()


class _CudaMeter:
    """What torch's allocator has handed out: counted on the host, as forwards are queued.

    The nested statistics are read as they are; torch's functions for single numbers sort all of them first,
    which takes longer than queueing a small kernel.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._held = 0

    def start(self, *, large: bool = False) -> None:
        torch.cuda.reset_peak_memory_stats(self._device)
        self._held = self._allocated("current")

    def read(self) -> tuple[int | None, int | None]:
        return self._held, self._allocated("peak")

    def _allocated(self, which: str) -> int:
        return int(torch.cuda.memory_stats_as_nested_dict(self._device)["allocated_bytes"]["all"][which])


class _ResidentMeter:
    """The process's resident memory, whose peak Linux keeps; weights and everything else included.

    The C library keeps freed buffers for later forwards, which would hide what these take. So it is asked to
    give them back before a forward that computes prompts; a decode forward's buffers are too small to matter.
    """

    CLEAR_REFS = Path("/proc/self/clear_refs")
    STATM = Path("/proc/self/statm")
    STATUS = Path("/proc/self/status")
    RESET_PEAK = b"5"  # proc(5): the peak becomes the present value; no page table is walked

    def __init__(self) -> None:
        self._can_reset = True
        self._held: int | None = None
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
        self.start()

    def start(self, *, large: bool = False) -> None:
        if large and self._trim is not None:
            self._trim(0)
        self._held = self._resident()
        if self._can_reset:
            try:
                self.CLEAR_REFS.write_bytes(self.RESET_PEAK)
            except OSError:  # not Linux, or a sandbox forbids it: the peak stays unknown
                self._can_reset = False

    def read(self) -> tuple[int | None, int | None]:
        return self._held, self._peak() if self._can_reset else None

    def _resident(self) -> int | None:
        try:
            return int(self.STATM.read_bytes().split()[1]) * PAGE_BYTES
        except OSError:
            return None

    def _peak(self) -> int | None:
        try:
            _, found, rest = self.STATUS.read_bytes().partition(b"VmHWM:")
        except OSError:
            return None
        return int(rest.split(maxsplit=1)[0]) * 1024 if found else None
