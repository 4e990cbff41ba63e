"""Accelerators by name, and their peaks: data sheet numbers with their sources, from hardware.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from engine.errors import ConfigError
from engine.peaks import Peaks

__all__ = ["DTYPES", "Card", "Overrides", "all_cards", "card_of_device", "find_card", "peaks_of"]

DTYPES = {
    "bfloat16": "bf16_dense_tflops",
    "float16": "bf16_dense_tflops",  # tensor cores take both at the same rate
    "float32": "fp32_tflops",
}
"""Element types that a peak is known of, and the key that holds it."""

GIB = 2**30
MOST_NEAR_NAMES = 4


@dataclass(frozen=True, slots=True)
class Card:
    """One entry of hardware.toml; a number that is not in `values` is unknown."""

    name: str
    values: Mapping[str, Any]

    @property
    def memory_bytes(self) -> int:
        """Size of its memory."""
        return round(float(self.values["memory_gib"]) * GIB)

    def provenance(self) -> dict[str, Any]:
        """Sources, doubts and notes, as meta.json keeps them."""
        keys = ("source", "link_source", "unverified", "note")
        return {key: self.values[key] for key in keys if key in self.values}


@dataclass(frozen=True, slots=True)
class Overrides:
    """Peaks that the user gives instead of the card's; None keeps the card's."""

    tflops: float | None = None
    bandwidth_tb_s: float | None = None
    link_gb_s: float | None = None


@cache
def all_cards() -> tuple[Card, ...]:
    """Every card of hardware.toml, in its order."""
    text = files("profiler").joinpath("hardware.toml").read_text(encoding="utf-8")
    return tuple(Card(values["name"], values) for values in tomllib.loads(text)["gpu"])


def find_card(wanted: str) -> tuple[Card, str | None]:
    """The card whose name begins with `wanted`, in whatever case.

    Names in which it is a whole first word go before others: L4 is not L40S. Of several cards the SXM one
    with the largest memory is taken, and the second value says so. Raises ConfigError, naming cards that
    come near, when there is none.
    """
    text = wanted.strip().lower()
    names = {card.name.lower(): card for card in all_cards()}
    if text in names:
        return names[text], None
    found = [card for name, card in names.items() if text and name.startswith(f"{text} ")]
    found = found or [card for name, card in names.items() if text and name.startswith(text)]
    if not found:
        raise ConfigError(f"--gpu {wanted!r} is not known: give {_near_names(text)}")
    card = max(found, key=lambda card: ("SXM" in card.name, card.memory_bytes))
    if len(found) == 1:
        return card, None
    others = ", ".join(other.name for other in found if other is not card)
    return card, f"--gpu {wanted}: taken as {card.name}; other cards of that name: {others}"


def card_of_device(device_name: str) -> Card | None:
    """The card that a device of this name is, as torch.cuda.get_device_name gives it.

    None for a name that no card lists: "NVIDIA H200 NVL" is no H200 SXM, and a MIG slice is no whole card.
    Older drivers leave the maker out: "A100-SXM4-40GB" is "NVIDIA A100-SXM4-40GB".
    """
    names = {device_name, f"NVIDIA {device_name}"}
    return next((card for card in all_cards() if names & set(card.values.get("device_names", ()))), None)


def peaks_of(card: Card, dtype: str, num_devices: int = 1, given: Overrides | None = None) -> Peaks:
    """The card's peaks for one dtype, where `given` goes before the card's own numbers.

    Raises ConfigError, naming the option that mends it, for a number that neither knows.
    """
    given = given or Overrides()
    tflops = _known(card, DTYPES.get(dtype), given.tflops, f"its {dtype} peak", "--peak-tflops")
    bandwidth = _known(card, "bandwidth_tb_s", given.bandwidth_tb_s, "its memory bandwidth", "--bandwidth")
    link = given.link_gb_s or card.values.get("link_gb_s")
    if num_devices > 1:
        link = _known(card, "link_gb_s", given.link_gb_s, "its link to other devices", "--link-bandwidth")
    return Peaks(
        name=card.name,
        dtype=dtype,
        flops_per_s=tflops * 1e12,
        bytes_per_s=bandwidth * 1e12,
        memory_bytes=card.memory_bytes,
        num_devices=num_devices,
        link_bytes_per_s=None if link is None else link * 1e9,
    )


def _known(card: Card, key: str | None, given: float | None, what: str, option: str) -> float:
    value = card.values.get(key or "") if given is None else given
    if value is None:
        raise ConfigError(f"--gpu {card.name}: {what} is not known: give {option}")
    return float(value)


def _near_names(text: str) -> str:
    """Names that hold the text, else those spelled like it, else all."""
    names = [card.name for card in all_cards()]
    near = [name for name in names if text and text in name.lower()]
    if not near:
        by_lower = {name.lower(): name for name in names}
        first_words = {name.split()[0]: name for name in by_lower}
        close = get_close_matches(text, [*by_lower, *first_words], MOST_NEAR_NAMES)
        near = list(dict.fromkeys(by_lower[first_words.get(word, word)] for word in close))
    return " or ".join(near[:MOST_NEAR_NAMES]) if near else f"one of {', '.join(names)}"
