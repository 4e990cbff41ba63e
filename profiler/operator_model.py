"""The cost model that a simulated trace was made with, built anew from its meta.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import ConfigError
from engine.peaks import Peaks
from engine.shapes import ModelShape
from profiler.cost import RooflineCost
from profiler.forward_fit_setting import setting_of
from profiler.roofline import simulated_roof

__all__ = ["OperatorModel", "operator_model"]


@dataclass(frozen=True, slots=True)
class OperatorModel:
    """A cost model and the part of the model that it is of."""

    cost: RooflineCost
    shape: ModelShape  # one device's part


def operator_model(meta: Mapping[str, Any]) -> OperatorModel | None:
    """None for a trace that is not simulated, and for one whose cost model its meta.json does not tell whole.

    A measured profile of GEMMs (`--profile`) stays in its file, so such a trace has none either.
    """
    told = meta.get("cost_model")
    if simulated_roof(meta) is None or not isinstance(told, Mapping):
        return None
    peaks = meta["hardware"]["peaks"]
    whole = peaks.keys() == Peaks.__dataclass_fields__.keys()
    if not whole or told.get("kind") != "roofline" or told.get("gemm_profile") is not None:
        return None
    try:
        setting = setting_of(meta)
    except ConfigError:
        return None
    return OperatorModel(RooflineCost(setting.shape, Peaks(**peaks), setting.element_bytes), setting.shape)
