"""Parts of waiting as all views show them: their words, and the causes that pictures draw them as."""

from collections.abc import Mapping
from dataclasses import dataclass

from profiler.ledger.parts import PartKind
from profiler.ledger.words import PART_WORDS

__all__ = ["CAUSES", "PART_WORDS", "CauseGroup", "cause_of", "causes_ns"]


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Kinds of parts that pictures draw as one, and how they look.

    `colour` is a fill of `ui.palette.FILLS` or a field of its `Theme`; `swatch` is the browser's class of a
    swatch or bar, `glyph` the terminal's character, of one cell.
    """

    key: str
    words: str
    kinds: tuple[PartKind, ...]
    colour: str
    swatch: str
    glyph: str


CAUSES = (
    CauseGroup(
        "own_decode", "own decode", (PartKind.OWN_DECODE, PartKind.OWN_OTHER), "decode", "decode", "█"
    ),
    CauseGroup(
        "others_prefill",
        "others' prefill",
        (PartKind.OTHERS_PREFILL, PartKind.OTHERS_MIXED),
        "stall_prefill",
        "stall",
        "╱",
    ),
    CauseGroup(
        "mixed_extra",
        "mixed extra",
        (PartKind.MIXED_EXTRA, PartKind.MIXED_UNKNOWN),
        "stall_mixed",
        "mixed",
        "░",
    ),
    CauseGroup(
        "no_kv",
        "no KV",
        (PartKind.SIT_OUT, PartKind.RETRACTED, PartKind.RECOMPUTE),
        "kv_private",
        "held",
        "▓",
    ),
    CauseGroup("preempted", "preemption", (PartKind.PREEMPTED,), "text", "preempted", "╲"),
    CauseGroup("deferred", "interval deferral", (PartKind.DEFERRED,), "text", "deferred", "╌"),
    CauseGroup(
        "others_decodes", "others' decodes", (PartKind.OTHERS_DECODE,), "decode", "others-decodes", "│"
    ),
    CauseGroup(
        "host",
        "host and launch",
        (PartKind.PLAN, PartKind.LAUNCH, PartKind.RESULT, PartKind.WAIT),
        "host",
        "host",
        "▒",
    ),
    CauseGroup("idle", "idle", (PartKind.IDLE,), "line", "idle", "·"),
    CauseGroup("not_told", "not told", (PartKind.UNTOLD,), "muted", "untold", "?"),
)
"""In the order in which pictures stack them; every kind is in exactly one."""

_OF_KIND = {kind: cause for cause in CAUSES for kind in cause.kinds}


def cause_of(kind: PartKind) -> CauseGroup:
    """What a part of this kind is drawn as."""
    return _OF_KIND[kind]


def causes_ns(by_kind: Mapping[PartKind, int]) -> dict[CauseGroup, int]:
    """Nanoseconds of every cause, in order; they sum to what `by_kind` sums to."""
    return {cause: sum(by_kind.get(kind, 0) for kind in cause.kinds) for cause in CAUSES}
