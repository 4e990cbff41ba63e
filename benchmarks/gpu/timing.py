"""Times of single calls on a device, taken as METHOD.md says."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch

__all__ = ["Timed", "beyond_cache", "l2_bytes", "time_calls"]

Call = Callable[[], object]

WARM_UP = 3
LEAD_CYCLES = 400_000  # of an idle kernel, for each call: about what a host needs to queue one
CACHES_COVERED = 4  # times that the buffers in turn are larger than the L2 cache
MOST_BUFFERS = 64


@dataclass(frozen=True, slots=True)
class Timed:
    """Nanoseconds of one call over several; `repeats` tells how many."""

    median_ns: float
    least_ns: float
    most_ns: float
    repeats: int

    def rate(self, amount: float) -> float:
        """`amount` a second, by the median."""
        return amount / self.median_ns * 1e9


def time_calls(calls: Sequence[Call], device: torch.device, repeats: int) -> Timed:
    """Time `repeats` calls, taking `calls` in turns: each of them works on buffers of its own."""
    order = [calls[i % len(calls)] for i in range(repeats)]
    for call in [*calls, *order[: WARM_UP - len(calls)]]:
        call()
    times = _events(order) if device.type == "cuda" else _clock(order)
    return Timed(median(times), min(times), max(times), repeats)


def l2_bytes(device: torch.device) -> int:
    """The last cache before device memory; on a CPU what a small one has, since it decides nothing there."""
    return torch.cuda.get_device_properties(device).L2_cache_size if device.type == "cuda" else 1 << 16


def beyond_cache(call_bytes: int, device: torch.device) -> int:
    """Buffers of `call_bytes` to take turns, so that each comes from memory again; at least two."""
    return max(2, min(MOST_BUFFERS, -(-CACHES_COVERED * l2_bytes(device) // call_bytes)))


def _events(order: Sequence[Call]) -> list[float]:
    """By events around each call, all queued while the device is kept busy: none waits for the host."""
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in order]  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    torch.cuda._sleep(LEAD_CYCLES * len(order))  # type: ignore[no-untyped-call]
    for call, (start, end) in zip(order, events, strict=True):
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) * 1e6 for start, end in events]


def _clock(order: Sequence[Call]) -> list[float]:
    times = []
    for call in order:
        start_ns = time.perf_counter_ns()
        call()
        times.append(float(time.perf_counter_ns() - start_ns))
    return times
