"""`PaperDevice`: devices that share a model on paper, and all that is assumed of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from engine.errors import ConfigError
from engine.peaks import Peaks
from profiler.cost_profile import GemmProfile, load_gemm_profile
from profiler.hardware import Card, Overrides, all_cards, find_card, peaks_of
from profiler.paper.cost import PaperCost
from profiler.paper.elements import ElementBytes, element_bytes
from profiler.paper.model import PaperModel

__all__ = ["PaperDevice", "known_cards", "paper_device"]

CARDS_NAMED = 3


@dataclass(frozen=True, slots=True)
class PaperDevice:
    """`part` is what one of the devices holds of the model."""

    part: PaperModel
    card: Card
    peaks: Peaks  # of one, for 16 bits
    gemm_flops_per_s: float  # peak of the layers' matrices
    given: Overrides  # peaks that are the user's and not the card's
    size: ElementBytes
    profile: GemmProfile | None
    notes: tuple[str, ...]  # choices that were not the user's own

    @property
    def tp(self) -> int:
        """How many devices share each layer."""
        return self.peaks.num_devices

    @property
    def label(self) -> str:
        """The card's name, with the number of devices if there are several."""
        return self.peaks.name if self.tp == 1 else f"{self.tp} × {self.peaks.name}"

    def cost_model(self) -> PaperCost:
        """What says how long a forward takes."""
        return PaperCost(
            self.part, self.peaks, self.size, gemm_flops_per_s=self.gemm_flops_per_s, profile=self.profile
        )


def paper_device(
    model: PaperModel,
    gpu: str,
    *,
    tp: int = 1,
    dtype: str = "auto",
    kv_dtype: str = "bf16",
    given: Overrides | None = None,
    profile: Path | None = None,
    profile_gpu: str | None = None,
) -> PaperDevice:
    """What the options of `chunkscope plan` describe; `dtype` and `kv_dtype` are those of `element_bytes`.

    Raises ConfigError or ModelError, naming the option, for what is not known or cannot be shared. For a
    number that no data sheet gives it names cards like it that have it.
    """
    card, note = find_card(gpu)
    given = given or Overrides()
    size = element_bytes(dtype, kv_dtype, model.quant_method, model.name)
    part = model.split(tp)
    try:
        peaks, gemm_flops_per_s = _peaks(card, tp, size, given)
    except ConfigError as error:
        near = known_cards(lambda other: _has_peaks(other, tp, size), card)
        raise ConfigError(f"{error}, or a GPU that has it: {' or '.join(near)}") from None
    measured = None
    if profile is not None:
        measured_on = card if profile_gpu is None else find_card(profile_gpu)[0]
        measured = load_gemm_profile(profile, measured_on, round(part.token_params()))
    return PaperDevice(part, card, peaks, gemm_flops_per_s, given, size, measured, (note,) if note else ())


def known_cards(fits: Callable[[Card], bool], instead_of: Card) -> list[str]:
    """Names of the cards that fit, as many as a line holds.

    Those that most likely stand in the same machines come first: of the same maker, on the same kind of
    board, then nearest in memory.
    """

    def distance(card: Card) -> tuple[bool, bool, int]:
        return (
            card.values["vendor"] != instead_of.values["vendor"],
            ("SXM" in card.name) != ("SXM" in instead_of.name),
            abs(card.memory_bytes - instead_of.memory_bytes),
        )

    return [card.name for card in sorted(filter(fits, all_cards()), key=distance)[:CARDS_NAMED]]


def _peaks(card: Card, tp: int, size: ElementBytes, given: Overrides) -> tuple[Peaks, float]:
    """Peaks for 16 bits, and the FLOP/s of the layers' matrices, which `given` is about."""
    if size.dtype != "fp8":
        peaks = peaks_of(card, "bfloat16", tp, given)
        return peaks, peaks.flops_per_s
    tflops = given.tflops or card.values.get("fp8_dense_tflops")
    if tflops is None:
        raise ConfigError(f"--gpu {card.name}: its fp8 peak is not known: give --peak-tflops, --dtype bf16")
    if "bf16_dense_tflops" not in card.values:
        raise ConfigError(
            f"--gpu {card.name}: its bfloat16 peak, for attention, is not known: give --dtype bf16"
        )
    return peaks_of(card, "bfloat16", tp, replace(given, tflops=None)), float(tflops) * 1e12


def _has_peaks(card: Card, tp: int, size: ElementBytes) -> bool:
    try:
        _peaks(card, tp, size, Overrides())
    except ConfigError:
        return False
    return True
