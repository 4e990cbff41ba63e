"""What simulated kernels reach of a device's peaks, and what a launch costs: each number with its reason."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["EFFICIENCIES", "OVERHEADS", "Efficiency", "Overheads", "cost_table"]


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Shares of the peak FLOP/s and of the peak bytes/s that a kind of kernel reaches; None: never asked."""

    compute: float | None
    memory: float
    why: str


@dataclass(frozen=True, slots=True)
class Overheads:
    """Time that no roofline holds, in nanoseconds."""

    layer_ns: int = 20_000
    forward_ns: int = 50_000
    collective_ns: int = 10_000
    why: str = (
        "assumed: about ten kernels a layer, 2 us apart in a captured graph; embedding, sampling and copies "
        "once a forward; a small all-reduce 10 us, as aiconfigurator takes it"
    )


EFFICIENCIES: Mapping[str, Efficiency] = {
    "GEMM": Efficiency(
        0.70,
        0.80,
        "Vidur's profiles, tp 1: median share of the roof 0.69 on H100, 0.71 on A100 and 0.76 on A40 from "
        "1,024 to 4,096 tokens, 0.77 to 0.84 up to 16 tokens. Between, with both limits near, 0.56 to 0.68",
    ),
    "ATTENTION_PREFIX": Efficiency(
        0.60,
        0.80,
        "FlashAttention-3 without a mask on H100, head size 128: 614 to 621 TFLOP/s from 8K tokens "
        "(pytorch/benchmark ff65cb67)",
    ),
    "ATTENTION_CAUSAL": Efficiency(
        0.55,
        0.80,
        "FlashAttention-3 with a causal mask, only the triangle counted: 521 to 616 TFLOP/s from 2K tokens "
        "on H100; blocks on the diagonal are computed whole",
    ),
    "ATTENTION_DECODE": Efficiency(
        0.25,
        0.70,
        "assumed: pages lie scattered and partial results are merged; a tile of 16 queries holds 4 where 4 "
        "heads share KV",
    ),
    "ELEMENTWISE": Efficiency(
        None,
        0.50,
        "Vidur's norm, rotary, activation and add kernels from 2,048 tokens: 0.45 to 0.50 on A100 and H100",
    ),
    "COLLECTIVE": Efficiency(
        None,
        0.80,
        "all-reduce of large messages on 4 H100: 366 of 450 GB/s (waynehacking8.github.io/blog/"
        "nccl-nvlink-bandwidth)",
    ),
}
"""By kind of kernel. A collective's memory is the link between devices."""

OVERHEADS = Overheads()


def cost_table() -> dict[str, Any]:
    """All of the above as plain values for meta.json."""
    return {
        "efficiencies": {kind: asdict(efficiency) for kind, efficiency in EFFICIENCIES.items()},
        "overheads": asdict(OVERHEADS),
    }
