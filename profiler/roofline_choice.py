"""Which roof a trace is drawn under, and what the roof rests on.

Measured ceilings go before a data sheet: they hold for the software, too. The peaks that a simulated trace
was made with go before both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from profiler.ceilings import Ceilings, Machine, machine_of
from profiler.ceilings_store import ceilings_of_trace
from profiler.hardware import DTYPES, Card, card_of_device
from profiler.roofline import Roof, roof_for, simulated_roof

__all__ = ["RoofSource", "Roofs", "SourcedRoof", "data_sheet_roof", "measured_roof", "roofs_of"]

RoofSource = Literal["measured", "data sheet", "simulation"]


@dataclass(frozen=True, slots=True)
class SourcedRoof:
    """A roof and where its two ceilings come from."""

    roof: Roof
    source: RoofSource
    device: str  # what it holds for: "AMD EPYC, 2 threads", "H200 SXM"
    date: str | None = None  # of the measurement, ISO 8601 in UTC
    origin: str | None = None  # where a data sheet's numbers were read
    unverified: tuple[str, ...] = ()  # those of its two numbers that no stored page confirms
    busy: bool = False  # other programs ran while it was measured
    cache_bytes: int | None = None  # the device's last-level cache; None is unknown

    @property
    def words(self) -> str:
        """What it rests on, for a caption: measured on AMD EPYC, 2 threads, 2026-11-30."""
        if self.source == "measured":
            busy = ", while other programs ran: may be too low" if self.busy else ""
            return f"measured on {self.device}, {(self.date or '')[:10]}{busy}"
        if self.source == "simulation":
            return f"peaks of the simulated {self.device}"
        doubt = ", not confirmed" if self.unverified else ""
        return f"data sheet of {self.device}{doubt}: {self.origin or 'its source is not known'}"


@dataclass(frozen=True, slots=True)
class Roofs:
    """The roofs that are known of a trace's machine and dtype, best first."""

    chosen: SourcedRoof | None
    others: tuple[SourcedRoof, ...] = ()
    lacking: str | None = None  # why there is none, a sentence
    machine: Machine | None = None  # that a measured trace names
    ceilings: Ceilings | None = None  # of that machine, whether they know the dtype or not

    @property
    def roof(self) -> Roof | None:
        """The chosen one's ceilings."""
        return self.chosen.roof if self.chosen else None


def roofs_of(meta: Mapping[str, Any]) -> Roofs:
    """The roofs of a trace by its meta.json, and by the ceilings kept for the machine that it names."""
    hardware, model = _mapping(meta, "hardware"), _mapping(meta, "model")
    if meta.get("provenance") == "simulated":
        given = _of_simulation(meta, hardware)
        return Roofs(
            given, lacking=None if given else "The trace does not say what peaks it was simulated under."
        )
    machine, ceilings = machine_of(hardware), ceilings_of_trace(meta)
    dtype, name = model.get("dtype"), hardware.get("name")
    card = card_of_device(name) if isinstance(name, str) else None
    known = (measured_roof(ceilings, dtype, card), data_sheet_roof(card, dtype))
    found = [roof for roof in known if roof is not None]
    if found:
        return Roofs(found[0], tuple(found[1:]), None, machine, ceilings)
    return Roofs(None, (), _lacking(name, dtype, ceilings), machine, ceilings)


def measured_roof(ceilings: Ceilings | None, dtype: object, card: Card | None = None) -> SourcedRoof | None:
    """The roof that was measured; None without ceilings of that dtype. `card` knows the cache, if given."""
    roof = roof_for(ceilings, dtype)
    if roof is None or ceilings is None:
        return None
    return SourcedRoof(
        roof,
        "measured",
        ceilings.machine.label,
        date=ceilings.date,
        busy=ceilings.busy,
        cache_bytes=_cache_bytes(card),
    )


def data_sheet_roof(card: Card | None, dtype: object) -> SourcedRoof | None:
    """The roof by the card's data sheet; None if it lacks the dtype's peak or the bandwidth."""
    key = DTYPES.get(dtype) if isinstance(dtype, str) else None
    if card is None or key is None or not isinstance(dtype, str):
        return None
    tflops, tb_s = card.values.get(key), card.values.get("bandwidth_tb_s")
    if tflops is None or tb_s is None:
        return None
    doubted = [name for name in card.values.get("unverified", ()) if name in (key, "bandwidth_tb_s")]
    return SourcedRoof(
        Roof(dtype, tflops * 1e12, tb_s * 1e12, "memory"),
        "data sheet",
        card.name,
        origin=card.values.get("source"),
        unverified=tuple(doubted),
        cache_bytes=_cache_bytes(card),
    )


def _of_simulation(meta: Mapping[str, Any], hardware: Mapping[str, Any]) -> SourcedRoof | None:
    roof = simulated_roof(meta)
    if roof is None:
        return None
    origin = hardware.get("source")
    name = str(hardware.get("name") or "device")
    return SourcedRoof(roof, "simulation", name, origin=origin if isinstance(origin, str) else None)


def _lacking(name: object, dtype: object, ceilings: Ceilings | None) -> str:
    if not isinstance(dtype, str):
        return "The trace does not say its dtype, so no roof is drawn."
    if not isinstance(name, str):
        return "The trace does not say what machine it is from, so no roof is drawn."
    if ceilings is None:
        return f"No ceilings were measured for {name}, and no data sheet is known of it."
    measured = ", ".join(rate.dtype for rate in ceilings.gemm)
    return (
        f"The ceilings of {ceilings.machine.label} are of {measured}, not of {dtype}; no data sheet is known."
    )


def _cache_bytes(card: Card | None) -> int | None:
    size = card.values.get("l2_mib") if card else None
    return None if size is None else round(float(size) * 2**20)


def _mapping(meta: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = meta.get(key)
    return value if isinstance(value, Mapping) else {}
