"""A forward whose inputs lie on the device, about to be computed."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from engine.executors.protocol import GraphKind

__all__ = ["ReadyForward"]


@dataclass(frozen=True, slots=True)
class ReadyForward:
    """What is left to do, and what the result will say of how it was done."""

    compute: Callable[[], torch.Tensor]  # (rows,) sampled ids on the device, NO_TOKEN for rows without logits
    graph: GraphKind = GraphKind.NONE
    padded_rows: int = 0
    graph_bytes: int = 0  # what a replay computes in: kept by the graph, so that no allocator counts it

    def peak_bytes(self, held: int | None, peak: int | None) -> int | None:
        """The most held during the forward, from what a meter read; None is unknown."""
        if held is None or peak is None:
            return None
        return max(peak, held + self.graph_bytes)
