"""`Peaks`: what one device can do at best, for one element type."""

from dataclasses import dataclass

__all__ = ["Peaks"]


@dataclass(frozen=True, slots=True)
class Peaks:
    """Peak rates of one of `num_devices` equal devices; a multiply and an add are two FLOPs."""

    name: str
    dtype: str  # as torch names it: float32, bfloat16
    flops_per_s: float  # dense matrix multiplication of `dtype`
    bytes_per_s: float  # device memory, read or written
    memory_bytes: int
    num_devices: int = 1
    link_bytes_per_s: float | None = None  # to the other devices, in one direction; None is unknown

    @property
    def ridge(self) -> float:
        """FLOP/byte above which computing takes longer than reading."""
        return self.flops_per_s / self.bytes_per_s
