"""Measures the ceilings of the device that torch computes on. Torch loads when a measurement starts."""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from profiler.ceilings import Ceilings, GemmRate, Machine

if TYPE_CHECKING:
    import torch

__all__ = ["DTYPES", "MeasurePlan", "measure_ceilings", "plan_for"]

DTYPES = ("float32", "bfloat16")

_BATCH_S = (
    0.005  # calls are timed together until they last this long, so that the clock's step does not count
)


@dataclass(frozen=True, slots=True)
class MeasurePlan:
    """What is multiplied and copied."""

    sizes: tuple[int, ...]  # of square matrices, ascending
    copy_buffer_bytes: int  # far larger than any cache


_PLANS = {
    "cpu": MeasurePlan((256, 512, 1024, 2048), 256 * 2**20),
    "cuda": MeasurePlan((1024, 2048, 4096, 8192), 2**30),
}


def plan_for(device: str) -> MeasurePlan:
    """What is measured on `"cpu"` and on `"cuda"`."""
    return _PLANS[device]


def measure_ceilings(machine: Machine, seconds: float, plan: MeasurePlan | None = None) -> Ceilings:
    """Measure for about `seconds`, a third for each dtype and for the copy, with torch's present threads.

    Each rate is the best of at least one timing after a warm-up. A size that would take longer than what is
    left of its dtype's time is left out; the smallest is always measured.
    """
    import torch

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    plan = plan or plan_for(machine.device)
    device = torch.device(machine.device)
    share_s = seconds / (len(DTYPES) + 1)
    with torch.inference_mode():
        gemm = tuple(_best_gemm(device, dtype, plan.sizes, share_s) for dtype in DTYPES)
        copy_bytes_per_s = _copy_rate(device, plan.copy_buffer_bytes, share_s)
    return Ceilings(
        machine,
        datetime.now(UTC).isoformat(timespec="seconds"),
        torch.__version__,
        gemm,
        copy_bytes_per_s,
        plan.copy_buffer_bytes,
        load,
    )


def _best_gemm(device: "torch.device", dtype: str, sizes: Sequence[int], seconds: float) -> GemmRate:
    deadline_s = time.perf_counter() + seconds
    best = GemmRate(dtype, 0.0, 0)
    for left, size in zip(range(len(sizes), 0, -1), sizes, strict=True):
        flops = 2 * size**3
        share_s = (deadline_s - time.perf_counter()) / left
        if best.size and 2 * flops / best.flops_per_s > share_s * left:  # a warm-up and one timing
            break
        rate = flops / _fastest(_gemm_call(device, dtype, size), _wait_for(device), share_s)
        if rate > best.flops_per_s:
            best = GemmRate(dtype, rate, size)
    return best


def _gemm_call(device: "torch.device", dtype: str, size: int) -> Callable[[], object]:
    import torch

    generator = torch.Generator(device).manual_seed(0)
    a, b = (
        torch.rand(size, size, generator=generator, device=device).to(getattr(torch, dtype)) for _ in range(2)
    )
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def _copy_rate(device: "torch.device", buffer_bytes: int, seconds: float) -> float:
    """Bytes read and written a second while one buffer is copied to another."""
    import torch

    source = torch.ones(buffer_bytes, dtype=torch.uint8, device=device)
    target = torch.zeros_like(source)
    return 2 * buffer_bytes / _fastest(lambda: target.copy_(source), _wait_for(device), seconds)


def _fastest(call: Callable[[], object], wait: Callable[[], None], seconds: float) -> float:
    """Shortest seconds of one call, over timings made until `seconds` have passed, after a warm-up call."""
    deadline_s = time.perf_counter() + seconds
    call()
    wait()
    best_s = _timed(call, wait, 1)
    calls = max(1, math.ceil(_BATCH_S / best_s))
    while time.perf_counter() + calls * best_s < deadline_s:
        best_s = min(best_s, _timed(call, wait, calls))
    return best_s


def _timed(call: Callable[[], object], wait: Callable[[], None], calls: int) -> float:
    start_s = time.perf_counter()
    for _ in range(calls):
        call()
    wait()
    return max(time.perf_counter() - start_s, 1e-9) / calls


def _wait_for(device: "torch.device") -> Callable[[], None]:
    import torch

    return torch.cuda.synchronize if device.type == "cuda" else lambda: None
