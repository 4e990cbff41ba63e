"""What a machine does at best: matrix multiplications a second by dtype, and bytes copied a second.

The roof of a roofline plot. Measured, never taken from a data sheet; docs/metrics.md says how.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Ceilings", "GemmRate", "Machine", "ceilings_from", "machine_of"]

_QUIET_LOAD = 0.5
_BEYOND = 1e300  # no rate, and JSON may hold integers that are no float


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
    load: float | None  # processes that wanted a CPU in the minute before, on average; None if not known

    @property
    def busy(self) -> bool:
        """Whether other programs ran, so that the ceilings may be too low."""
        return self.load is not None and self.load > _QUIET_LOAD

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
    device, name, threads = hardware.get("device"), hardware.get("name"), _size(hardware.get("threads"))
    if not isinstance(device, str) or not isinstance(name, str) or (device == "cpu" and threads is None):
        return None
    return Machine(device, name, threads if device == "cpu" else None)


def ceilings_from(values: object) -> Ceilings | None:
    """Ceilings from what `as_json` gave and JSON kept; None for anything else."""
    machine = machine_of(values)
    if machine is None or not isinstance(values, Mapping):
        return None
    date, torch, gemm = values.get("date"), values.get("torch"), values.get("gemm")
    speed, size = _rate(values.get("copy_bytes_per_s")), _size(values.get("copy_buffer_bytes"))
    if not isinstance(date, str) or not isinstance(torch, str) or not isinstance(gemm, list):
        return None
    rates = [rate for rate in map(_gemm_rate, gemm) if rate is not None]
    if len(rates) < len(gemm) or speed is None or size is None:
        return None
    load = 0.0 if values.get("load") == 0 else _rate(values.get("load"))
    return Ceilings(machine, date, torch, tuple(rates), speed, size, load)


def _gemm_rate(value: object) -> GemmRate | None:
    if not isinstance(value, Mapping):
        return None
    dtype, rate, size = value.get("dtype"), _rate(value.get("flops_per_s")), _size(value.get("size"))
    if not isinstance(dtype, str) or rate is None or size is None:
        return None
    return GemmRate(dtype, rate, size)


def _rate(value: object) -> float | None:
    """A positive number of JSON that a float holds, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _BEYOND:
        return None
    return float(value)


def _size(value: object) -> int | None:
    """A positive whole number of JSON, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
