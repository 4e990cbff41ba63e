"""What kinds of kernels reach of a device's peaks, and what devices that share layers spend between them."""

from dataclasses import dataclass
from typing import NamedTuple

from engine.peaks import Peaks
from profiler.cost_table import EFFICIENCIES, OVERHEADS

__all__ = ["Collectives", "Roof", "roof_of"]


class Roof(NamedTuple):
    """What one kind of kernel reaches."""

    flops_per_s: float
    bytes_per_s: float

    def seconds(self, flops: float, moved: float) -> float:
        """The longer of computing and of moving bytes."""
        return max(flops / self.flops_per_s, moved / self.bytes_per_s)


def roof_of(kind: str, peaks: Peaks, flops_per_s: float | None = None) -> Roof:
    """The peaks as far as a kind of `EFFICIENCIES` reaches them; a collective's bytes pass the link.

    `flops_per_s` is the peak where it is not that of `peaks`.
    """
    efficiency = EFFICIENCIES[kind]
    bytes_per_s = (peaks.link_bytes_per_s or 1.0) if kind == "COLLECTIVE" else peaks.bytes_per_s
    return Roof(
        (flops_per_s or peaks.flops_per_s) * (efficiency.compute or 1.0), bytes_per_s * efficiency.memory
    )


@dataclass(frozen=True, slots=True)
class Collectives:
    """Two ring all-reduces a layer, and the logits gathered from all devices, as in `RooflineCost`."""

    peaks: Peaks
    num_layers: int
    hidden_size: int
    vocab_size: int  # one device's part
    element_bytes: int

    def seconds(self, tokens: int, logits: int) -> float:
        """Of a forward of so many tokens and rows with logits; 0 for one device."""
        devices = self.peaks.num_devices
        if devices == 1:
            return 0.0
        roof = roof_of("COLLECTIVE", self.peaks)
        latency_s = OVERHEADS.collective_ns / 1e9
        reduced = 2 * (devices - 1) * self.hidden_size * tokens * self.element_bytes // devices
        seconds = 2 * self.num_layers * (latency_s + roof.seconds(0, reduced))
        if logits:
            gathered = (devices - 1) * self.vocab_size * logits * self.element_bytes
            seconds += latency_s + roof.seconds(0, gathered)
        return seconds
