"""What a trace's meta.json says of the run it holds: model, engine, machine, versions."""

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from engine.config import EngineConfig
from engine.executors.graph_sizes import GraphLimits
from profiler.ceilings import machine_of
from profiler.ceilings_store import kept_ceilings

if TYPE_CHECKING:
    import torch

    from engine.models.loader import LoadedModel
    from ui.simulating import SimulatedDevice

__all__ = ["hardware_of", "run_meta", "simulated_meta"]

LIBRARIES = ("chunkscope", "torch", "numpy", "pyarrow")


def run_meta(
    loaded: "LoadedModel",
    config: EngineConfig,
    graphs: GraphLimits,
    *,
    seed: int,
    workload: Mapping[str, Any],
) -> dict[str, Any]:
    """Plain values for `TraceWriter`. `workload` says its kind, open or closed loop, and its source.

    `graphs` is what the executor replays.
    """
    model = {
        **loaded.checkpoint.describe(),
        "dtype": str(loaded.dtype).removeprefix("torch."),
        "weight_bytes": loaded.weight_bytes,
    }
    return {
        "provenance": "measured",
        **_about_run(config, seed, workload),
        "cuda_graphs": asdict(graphs),
        "model": model,
        "hardware": _hardware(loaded),
    }


def simulated_meta(
    device: "SimulatedDevice", config: EngineConfig, *, seed: int, workload: Mapping[str, Any]
) -> dict[str, Any]:
    """The same for a simulated run, whose `hardware` and `cost_model` hold all that is assumed.

    FLOPs and bytes of its forwards are those of one of the devices, as are the peaks.
    """
    shape = device.checkpoint.shape
    model = {
        **device.checkpoint.describe(),
        "load_format": "none",
        "weights": None,
        "dtype": device.peaks.dtype,
        "weight_bytes": shape.num_params * device.element_bytes,
        "weight_bytes_per_device": device.shard.num_params * device.element_bytes,
    }
    model.pop("weights_seed", None)
    hardware = {
        "device": "simulated",
        "name": device.label,
        "devices": device.peaks.num_devices,
        "peaks": asdict(device.peaks),
        "given": {name: value for name, value in asdict(device.given).items() if value is not None},
        **device.card.provenance(),
    }
    cost_model = {**device.cost_model().describe(), "host_overhead_ns": device.host_overhead_ns}
    return {
        "provenance": "simulated",
        **_about_run(config, seed, workload),
        "model": model,
        "hardware": hardware,
        "cost_model": cost_model,
    }


def hardware_of(device: "torch.device") -> dict[str, object]:
    """What meta.json says of the hardware: device, its name, the CPU's cores, and torch's threads."""
    import torch

    from ui.machine import cpu_name

    on_gpu = device.type == "cuda"
    return {
        "device": device.type,
        "name": torch.cuda.get_device_name(device) if on_gpu else cpu_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _about_run(config: EngineConfig, seed: int, workload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "command": sys.argv,
        "engine": asdict(config),
        "seed": seed,
        "workload": dict(workload),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


def _hardware(loaded: "LoadedModel") -> dict[str, Any]:
    """The hardware, with its ceilings where `chunkscope ceilings` has measured them."""
    hardware = hardware_of(loaded.device)
    machine = machine_of(hardware)
    ceilings = kept_ceilings(machine) if machine else None
    return {**hardware, "ceilings": ceilings.as_json()} if ceilings else hardware
