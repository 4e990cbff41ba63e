"""What a machine does at best: matrix multiplications a second by dtype, and bytes copied a second.

The roof of a roofline plot. Measured, never taken from a data sheet; docs/metrics.md says how.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Ceilings", "GemmRate", "Machine", "ceilings_from", "machine_of"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What ceilings hold for: a device, its name, and on a CPU the number of threads."""

    device: str  # "cpu" or "cuda"
    name: str
    threads: int | None  # None on a GPU, where the CPU's threads do not matter

    @property
    def label(self) -> str:
        """The machine as one reads it, and as the cache is keyed: AMD EPYC, 2 threads."""
        if self.threads is None:
            return self.name
        return f"{self.name}, {self.threads} thread{'' if self.threads == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class GemmRate:
    """The best rate of square matrix multiplications of one dtype."""

    dtype: str  # as torch names it: float32, bfloat16
    flops_per_s: float  # a multiply and an add are two
    size: int  # rows and columns of the matrices that gave it


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Measured ceilings of one machine."""

    machine: Machine
    date: str  # ISO 8601, UTC
    torch: str  # version
    gemm: tuple[GemmRate, ...]
    copy_bytes_per_s: float  # a byte copied is one read and one written
    copy_buffer_bytes: int

    def flops_per_s(self, dtype: str) -> float | None:
        """The multiplication ceiling of a dtype; None if it was not measured."""
        return next((rate.flops_per_s for rate in self.gemm if rate.dtype == dtype), None)

    def as_json(self) -> dict[str, Any]:
        """Plain values, as meta.json holds them under hardware.ceilings; `ceilings_from` reads them back."""
        values = asdict(self)
        return {**values.pop("machine"), **values, "gemm": [asdict(rate) for rate in self.gemm]}


def machine_of(hardware: object) -> Machine | None:
    """The machine that a trace's meta["hardware"] names; None if it does not say enough."""
    if not isinstance(hardware, Mapping):
        return None
    device, name, threads = (hardware.get(key) for key in ("device", "name", "threads"))
    if not isinstance(device, str) or not isinstance(name, str):
        return None
    if device != "cpu":
        return Machine(device, name, None)
    return Machine(device, name, threads) if _is_positive(threads, int) else None


def ceilings_from(values: object) -> Ceilings | None:
    """Ceilings from what `as_json` gave and JSON kept; None for anything else."""
    machine = machine_of(values)
    if machine is None or not isinstance(values, Mapping):
        return None
    gemm = values.get("gemm")
    date, torch = values.get("date"), values.get("torch")
    speed, size = values.get("copy_bytes_per_s"), values.get("copy_buffer_bytes")
    if not isinstance(gemm, list) or not isinstance(date, str) or not isinstance(torch, str):
        return None
    rates = [_gemm_rate(rate) for rate in gemm]
    if None in rates or not _is_positive(speed, float) or not _is_positive(size, int):
        return None
    return Ceilings(machine, date, torch, tuple(r for r in rates if r is not None), float(speed), size)


def _gemm_rate(value: object) -> GemmRate | None:
    if not isinstance(value, Mapping):
        return None
    dtype, rate, size = (value.get(key) for key in ("dtype", "flops_per_s", "size"))
    if not isinstance(dtype, str) or not _is_positive(rate, float) or not _is_positive(size, int):
        return None
    return GemmRate(dtype, float(rate), size)


def _is_positive(value: Any, kind: type) -> bool:
    """Whether a JSON value is a positive finite number; an integer counts as a float too."""
    if isinstance(value, bool) or not isinstance(value, (int, kind)):
        return False
    return value > 0 and (isinstance(value, int) or math.isfinite(value))
