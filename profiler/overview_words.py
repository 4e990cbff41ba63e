"""The first sentence of the Overview page: the longest wait between two tokens, and its cause."""

from collections.abc import Mapping
from types import MappingProxyType

from engine.batch import ForwardMode
from profiler.ledger.parts import GapDetail, PartKind
from profiler.ledger.report import StallGroup
from profiler.wording import duration

__all__ = ["effect"]

_HELD_UP = 0.5  # of a gap: less than that is late where nothing holds it up
_NO_KV = "the KV pool has no page left"
_HOST = "the host is busy while the device is free"
_CAUSES: Mapping[PartKind, str] = MappingProxyType(
    {
        PartKind.OTHERS_MIXED: "mixed forwards of others come first",
        PartKind.OTHERS_DECODE: "forwards of other decodes come first",
        PartKind.MIXED_EXTRA: "prompts ride along in decode forwards",
        PartKind.MIXED_UNKNOWN: "prompts ride along in decode forwards",
        PartKind.SIT_OUT: _NO_KV,
        PartKind.RETRACTED: _NO_KV,
        PartKind.RECOMPUTE: "KV that was given back is computed anew",
        PartKind.PREEMPTED: "more urgent requests take its place",
        PartKind.DEFERRED: "the prefill-decode interval puts chunks off",
        PartKind.PLAN: _HOST,
        PartKind.LAUNCH: _HOST,
        PartKind.RESULT: _HOST,
        PartKind.WAIT: "host and device wait for each other",
        PartKind.IDLE: "nothing runs in between",
        PartKind.UNTOLD: "of what the trace does not tell",
    }
)
_RIDING = (PartKind.MIXED_EXTRA, PartKind.MIXED_UNKNOWN)


def effect(longest: StallGroup, gap: GapDetail | None) -> str:
    """How long decodes wait for a token at most, and why; `gap` is the one that stands for the group."""
    length = duration(longest.gap_ns / 1e9)
    if longest.late_ns < _HELD_UP * longest.gap_ns:
        return f"No decode is held up for long: the longest wait for a token is {length}."
    one = longest.requests == 1
    if longest.cause in _RIDING:
        said = f"{'A decode waits' if one else 'Decodes wait'} up to {length} for a token"
    else:
        said = f"{'A decode stops' if one else 'Decodes stop'} for up to {length}"
    cause = _prefill(gap) if longest.cause is PartKind.OTHERS_PREFILL else _CAUSES[longest.cause]
    return f"{said}, because {cause}."


def _prefill(gap: GapDetail | None) -> str:
    """Whether one forward of a whole prompt lies in the gap, or prefill went first round after round."""
    if gap is None:
        return "prefill goes first"
    prefills = {
        forward.forward_id
        for forward in gap.forwards
        if forward.mode == ForwardMode.EXTEND.name and forward.forward_id != gap.own_forward_id
    }
    if len(prefills) != 1:
        return "prefill always goes first"
    if len(gap.chunks) == 1 and gap.chunks[0].of == 1:
        return "a whole prompt is one forward"
    return "a prefill forward goes first"
