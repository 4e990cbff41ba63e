"""What the device does at best with torch's own kernels: products of matrices, and copies."""

import platform
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from benchmarks.gpu.setting import Setting
from benchmarks.gpu.timing import beyond_cache, l2_bytes, time_calls

__all__ = ["measure_ceilings", "tell_machine"]


def tell_machine(setting: Setting) -> dict[str, Any]:
    """The device, and the versions of everything that takes part."""
    told: dict[str, Any] = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "device": setting.device,
        "threads": torch.get_num_threads(),
    }
    if setting.on_gpu:
        properties = torch.cuda.get_device_properties(0)
        told |= {
            "name": properties.name,
            "capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": properties.multi_processor_count,
            "memory_bytes": properties.total_memory,
            "l2_bytes": l2_bytes(torch.device("cuda")),
            "cuda": torch.version.cuda,
        }
    return told


@torch.inference_mode()
def measure_ceilings(setting: Setting) -> dict[str, Any]:
    """The best median rate over square products, and the median rate of a copy, bytes read plus written."""
    device, dtype = torch.device(setting.device), getattr(torch, setting.dtype)
    gemms = [_gemm(size, device, dtype, setting.repeats) for size in setting.gemm_sizes]
    sources = [torch.randn(setting.copy_bytes // 4, device=device) for _ in range(2)]
    target = torch.empty_like(sources[0])
    copied = time_calls([lambda s=s: target.copy_(s) for s in sources], device, setting.repeats)  # type: ignore[misc]
    return {
        "dtype": setting.dtype,
        "gemm": gemms,
        "gemm_flops_per_s": max(gemm["flops_per_s"] for gemm in gemms),
        "copy_bytes": setting.copy_bytes,
        "copy_bytes_per_s": copied.rate(2 * setting.copy_bytes),
    }


def _gemm(size: int, device: torch.device, dtype: torch.dtype, repeats: int) -> dict[str, float]:
    count = beyond_cache(2 * size * size * dtype.itemsize, device)
    pairs = [[torch.randn(size, size, dtype=dtype, device=device) for _ in range(2)] for _ in range(count)]
    out = torch.empty_like(pairs[0][0])
    timed = time_calls([lambda a=a, b=b: torch.mm(a, b, out=out) for a, b in pairs], device, repeats)  # type: ignore[misc]
    return {"size": size, "flops_per_s": timed.rate(2 * size**3), "median_ns": timed.median_ns}
