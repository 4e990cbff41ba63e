"""What a trace tells of memory beside its forwards: weights, pages, the device, and how long requests are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from engine.config import EngineConfig
from profiler.forward_fit_setting import Setting
from profiler.hardware import card_of_device
from profiler.tables import TraceLike, frame

__all__ = ["MemoryFacts", "device_bytes", "memory_facts"]


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """Of one device and one run; None is unknown."""

    weight_bytes: int
    page_size: int
    max_prefill_tokens: int  # SGLang's default where unknown
    request_tokens: int | None  # median of prompt and output together
    longest_prompt_tokens: int | None
    prompt_tokens: int | None  # of all requests
    most_decode_rows: int  # in a forward


def memory_facts(trace: TraceLike, setting: Setting) -> MemoryFacts:
    """What `trace` tells; weights that meta.json does not count are those of the shape."""
    engine, model = _mapping(trace.meta, "engine"), _mapping(trace.meta, "model")
    weights = _count(model.get("weight_bytes_per_device")) or _count(model.get("weight_bytes"))
    requests = frame(trace, "requests").select(
        "prompt_tokens", tokens=pl.col("prompt_tokens") + pl.coalesce("output_tokens", "max_new_tokens")
    )
    most_rows = frame(trace, "forwards")["decode_tokens"].max()
    return MemoryFacts(
        weight_bytes=weights or setting.shape.num_params * setting.element_bytes,
        page_size=_count(engine.get("page_size")) or 1,
        max_prefill_tokens=_count(engine.get("max_prefill_tokens")) or EngineConfig().max_prefill_tokens,
        request_tokens=_whole(requests["tokens"].median()),
        longest_prompt_tokens=_whole(requests["prompt_tokens"].max()),
        prompt_tokens=_whole(requests["prompt_tokens"].sum()) or None,
        most_decode_rows=_whole(most_rows) or 0,
    )


def device_bytes(meta: Mapping[str, Any]) -> int | None:
    """The memory of a trace's device: that of its simulated peaks, or of a known card's data sheet."""
    hardware = _mapping(meta, "hardware")
    simulated = _count(_mapping(hardware, "peaks").get("memory_bytes"))
    name = hardware.get("name")
    if simulated is not None or hardware.get("device") != "cuda" or not isinstance(name, str):
        return simulated
    card = card_of_device(name)
    return None if card is None else card.memory_bytes


def _mapping(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = values.get(key)
    return found if isinstance(found, Mapping) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _whole(value: object) -> int | None:
    return round(value) if isinstance(value, (int, float)) else None
