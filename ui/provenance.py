"""What a trace's meta.json says of the run it holds: model, engine, machine, versions."""

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from engine.config import EngineConfig

if TYPE_CHECKING:
    from engine.models.loader import LoadedModel

__all__ = ["run_meta"]

LIBRARIES = ("chunkscope", "torch", "numpy", "pyarrow")


def run_meta(
    loaded: "LoadedModel", config: EngineConfig, *, seed: int, workload: Mapping[str, Any]
) -> dict[str, Any]:
    """Plain values for `TraceWriter`. `workload` says its kind, open or closed loop, and its source."""
    return {
        "provenance": "measured",
        "command": sys.argv,
        "model": {
            **loaded.checkpoint.describe(),
            "dtype": str(loaded.dtype).removeprefix("torch."),
            "weight_bytes": loaded.weight_bytes,
        },
        "engine": asdict(config),
        "seed": seed,
        "workload": dict(workload),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        "hardware": _hardware(loaded),
    }


def _hardware(loaded: "LoadedModel") -> dict[str, Any]:
    import torch

    from ui.machine import cpu_name

    on_gpu = loaded.device.type == "cuda"
    return {
        "device": loaded.device.type,
        "name": torch.cuda.get_device_name(loaded.device) if on_gpu else cpu_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
