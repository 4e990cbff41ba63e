"""The cost model that a simulated trace was made with, built anew from its meta.json."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from engine.errors import EngineError
from engine.peaks import Peaks
from engine.shapes import ModelShape
from profiler.cost import RooflineCost
from profiler.tensor_parallel import shard

__all__ = ["OperatorModel", "operator_model"]

_ELEMENT_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


@dataclass(frozen=True, slots=True)
class OperatorModel:
    """A cost model and the part of the model that it is of."""

    cost: RooflineCost
    shape: ModelShape  # one device's part


def operator_model(meta: Mapping[str, Any]) -> OperatorModel | None:
    """None for a trace that is not simulated, and for one whose cost model its meta.json does not tell whole.

    A measured profile of GEMMs (`--profile`) stays in its file, so such a trace has none either.
    """
    cost, hardware = meta.get("cost_model"), meta.get("hardware")
    if meta.get("provenance") != "simulated" or not isinstance(cost, Mapping):
        return None
    if cost.get("kind") != "roofline" or cost.get("gemm_profile") is not None:
        return None
    try:
        peaks = Peaks(**hardware["peaks"])  # type: ignore[index]
        told = {field.name: meta["model"][field.name] for field in fields(ModelShape)}
        shape = shard(ModelShape(**told), peaks.num_devices)
        size = _ELEMENT_BYTES[peaks.dtype]
    except (KeyError, TypeError, ValueError, EngineError):
        return None
    return OperatorModel(RooflineCost(shape, peaks, size), shape)
