"""Forwards on the CPU that are recorded once and replayed, as graphs are on a GPU."""

import random
from dataclasses import replace
from typing import Any

from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.executors.device import DeviceExecutor
from engine.executors.graph_sizes import GraphLimits
from engine.kv_tensors import KVTensors
from engine.shapes import ModelShape
from tests.support.recorded_graph import RecordedGraphs
from tests.support.static_attention import StaticTorchAttention
from tests.support.tiny_llama import TINY_SHAPE, Forwards, load_tiny

__all__ = ["POOL", "SHAPE", "Graphed", "graphed_config", "prompts"]

POOL = 256
SHAPE: ModelShape = replace(TINY_SHAPE, max_position_embeddings=64)


class Graphed(Forwards):
    """Forwards within `limits` are replayed."""

    def __init__(
        self,
        limits: GraphLimits,
        page_size: int = 1,
        *,
        shape: ModelShape = SHAPE,
        clock: MonotonicClock | None = None,
        probe: Any = None,
        **config: Any,
    ) -> None:
        loaded = load_tiny(shape, pack=False)
        super().__init__(loaded, page_size, pool=POOL)
        self.kv = KVTensors(shape, POOL // page_size, page_size, loaded.dtype, loaded.device)
        self.recorded = RecordedGraphs()
        self.executor = DeviceExecutor(
            loaded,
            graphed_config(page_size, **config),
            clock or MonotonicClock(),
            attention=StaticTorchAttention(shape, self.kv),
            graphs=limits,
            capture=self.recorded,
            probe=probe,
        )


def graphed_config(page_size: int = 1, **options: Any) -> EngineConfig:
    """Resolved, for the pool of `Graphed`."""
    return EngineConfig(page_size=page_size, **options).resolve(max_total_tokens=POOL, context_length=64)


def prompts(lengths: list[int]) -> list[list[int]]:
    """Random ones of these lengths, the same each time."""
    rng = random.Random(3)
    return [[rng.randrange(SHAPE.vocab_size) for _ in range(length)] for length in lengths]
