"""What measured forwards ran on: one device's part of a model, its element type, and the peaks it has."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from engine.errors import ConfigError, ModelError
from engine.fields import read_size
from engine.shapes import ModelShape
from profiler.forward_fit_prior import Rates
from profiler.roofline_choice import roofs_of
from profiler.tables import TraceLike
from profiler.tensor_parallel import shard

__all__ = ["Setting", "model_shape", "setting_of", "shared_setting"]

_ELEMENT_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
_SHAPE = [field.name for field in fields(ModelShape)]
_SIZES = (
    "num_layers",
    "hidden_size",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
)
_NORMS = 2  # of a layer, where a trace does not tell
_OF_HARDWARE = ("device", "name", "threads", "devices", "peaks")


@dataclass(frozen=True, slots=True)
class Setting:
    """Traces of one setting tell of the same forwards."""

    shape: ModelShape  # one device's part of the model
    dtype: str  # as torch names it
    element_bytes: int
    provenance: str  # measured, simulated or imported
    num_devices: int  # that share the model
    hardware: str  # in words
    machine: str  # all that is known of the hardware, as JSON, to compare
    rates: Rates | None  # peaks; None if nothing is known of them

    @property
    def label(self) -> str:
        """SmolLM2-135M, float32, on AMD EPYC, 2 threads."""
        return f"{self.shape.name}, {self.dtype}, on {self.hardware}"


def shared_setting(traces: Sequence[TraceLike]) -> Setting:
    """The setting of all traces. Raises ConfigError for none, or, naming what differs, for more than one."""
    if not traces:
        raise ConfigError("no trace to fit a model of forwards to: give one")
    first, *others = [setting_of(trace.meta) for trace in traces]
    for other in others:
        if replace(other.shape, name="") != replace(first.shape, name=""):
            what = f"models: {first.shape.name} and {other.shape.name}"
        elif other.dtype != first.dtype:
            what = f"element types: {first.dtype} and {other.dtype}"
        elif (other.provenance, other.machine) != (first.provenance, first.machine):
            what = f"hardware: {_told(first)} and {_told(other)}"
        else:
            continue
        raise ConfigError(f"the traces are of different {what}: fit each alone")
    return first


def setting_of(meta: Mapping[str, Any]) -> Setting:
    """The setting of a trace. Raises ConfigError if meta.json tells no model or element type."""
    shape = model_shape(meta)
    model, hardware = meta["model"], meta.get("hardware")
    hardware = hardware if isinstance(hardware, Mapping) else {}
    dtype = model.get("dtype")
    if not isinstance(dtype, str) or dtype not in _ELEMENT_BYTES:
        raise ConfigError(f"meta.json: model.dtype {dtype!r} has no known size: record the run again")
    machine = {key: hardware.get(key) for key in _OF_HARDWARE}
    machine["cost_model"] = _without_host(meta.get("cost_model"))
    return Setting(
        shape=shape,
        dtype=dtype,
        element_bytes=_ELEMENT_BYTES[dtype],
        provenance=str(meta.get("provenance")),
        num_devices=_devices(meta),
        hardware=_label(hardware),
        machine=json.dumps(machine, sort_keys=True, default=str),
        rates=_rates(meta),
    )


def model_shape(meta: Mapping[str, Any]) -> ModelShape:
    """One device's part of a trace's model. Raises ConfigError if meta.json does not tell it."""
    model = meta.get("model")
    if not isinstance(model, Mapping) or model.get("num_layers") is None:
        raise ConfigError("meta.json tells no model: the model of a forward needs its layers and sizes")
    try:
        for name in _SIZES:
            read_size(model, name, "model")
        told = {name: model[name] for name in _SHAPE if name in model}
        told["norms_per_layer"] = read_size(model, "norms_per_layer", "model", _NORMS)
        return shard(ModelShape(**told), _devices(meta))
    except (TypeError, ModelError) as error:
        raise ConfigError(f"meta.json: model is not as recording writes it: {error}") from None


def _devices(meta: Mapping[str, Any]) -> int:
    hardware = meta.get("hardware")
    devices = hardware.get("devices") if isinstance(hardware, Mapping) else None
    return devices if isinstance(devices, int) and devices > 0 else 1


def _rates(meta: Mapping[str, Any]) -> Rates | None:
    """Peaks that a simulated run was made with; else measured ceilings; else a known card's data sheet."""
    chosen = roofs_of(meta).chosen
    if chosen is None:
        return None
    words = {"measured": "ceilings measured on", "data sheet": "data sheet of", "simulation": "peaks of"}
    source = f"{words[chosen.source]} {chosen.device}"
    return Rates(chosen.roof.flops_per_s, chosen.roof.bytes_per_s, source)


def _label(hardware: Mapping[str, Any]) -> str:
    name, threads = str(hardware.get("name", "unknown hardware")), hardware.get("threads")
    if hardware.get("device") != "cpu" or threads is None:
        return name
    return f"{name}, {threads} thread{'' if threads == 1 else 's'}"


def _told(setting: Setting) -> str:
    return f"{setting.hardware} ({setting.provenance})"


def _without_host(cost_model: object) -> object:
    """A simulated run's cost model: the host's time is no part of a forward's."""
    if not isinstance(cost_model, Mapping):
        return None
    return {key: value for key, value in cost_model.items() if key != "host_overhead_ns"}
