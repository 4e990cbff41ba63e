"""Why a token was late, and which option would change that: sentences chosen from the ledger of its gap."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.batch import ForwardMode
from profiler.ledger.parts import GapDetail, PartKind
from profiler.wording import count, duration

__all__ = ["NO_KV", "PROMPTS", "RIDING", "Mend", "main_cause", "mend", "mend_gap", "why_late"]

OWN = (PartKind.OWN_DECODE, PartKind.OWN_OTHER)  # what the token needed
NO_KV = (PartKind.SIT_OUT, PartKind.RETRACTED, PartKind.RECOMPUTE)
PROMPTS = (PartKind.OTHERS_PREFILL, PartKind.OTHERS_MIXED)
RIDING = (PartKind.MIXED_EXTRA, PartKind.MIXED_UNKNOWN)
HOST = (PartKind.PLAN, PartKind.LAUNCH, PartKind.RESULT)


@dataclass(frozen=True, slots=True)
class Mend:
    """What would make such gaps shorter."""

    sentence: str
    option: tuple[str, ...] | None  # a name alone where its value is to be found


def main_cause(gap: GapDetail) -> PartKind | None:
    """The largest part of a gap but for its own decode forwards, the first of equals; None without one."""
    sums = {kind: gap.sum_ns([kind]) for kind in PartKind if kind not in OWN}
    kind = max(sums, key=lambda each: (sums[each], -each))
    return kind if sums[kind] else None


def why_late(gap: GapDetail) -> str:
    """What kept the request from its next token."""
    cause = main_cause(gap)
    lost = duration(gap.sum_ns([cause] if cause is not None else []) / 1e9)
    if cause in PROMPTS:
        return _prefill_first(gap)
    if cause in RIDING:
        return "It decoded in this forward: the prompts that rode along made the forward longer."
    if cause is PartKind.SIT_OUT:
        return f"No KV page was left for its next token, so it sat out {lost} of forwards."
    if cause in (PartKind.RETRACTED, PartKind.RECOMPUTE):
        return "It had given its KV back for lack of pages, and its prompt had to be computed anew."
    if cause is PartKind.PREEMPTED:
        return "It had given way to a more urgent request, and its prompt had to be computed anew."
    if cause is PartKind.DEFERRED:
        return f"The prefill-decode interval put its own chunk off: {lost} of decodes came first."
    if cause is PartKind.OTHERS_DECODE:
        return "Decode forwards ran that it had no row in."
    if cause is PartKind.WAIT:
        return f"A forward was launched and not processed, and neither device nor host was busy, for {lost}."
    if cause in HOST:
        return "The device was free and the host was not: it planned, launched or processed results."
    if cause is PartKind.IDLE:
        return f"Nothing was planned, launched, run or processed for {lost}."
    if cause is PartKind.UNTOLD:
        return "The trace lacks the times that would tell."
    return "Nothing but its own decode forwards lies in it."


def mend_gap(gap: GapDetail, meta: Mapping[str, Any]) -> Mend | None:
    """What would have shortened a gap under the engine options of its trace; None where no option does."""
    return mend(main_cause(gap), meta, rounds=len(_prefills(gap)))


def mend(cause: PartKind | None, meta: Mapping[str, Any], *, rounds: int | None = None) -> Mend | None:
    """What shortens gaps of this cause under the engine options of a trace; None where no option does.

    `rounds` are others' prefill forwards in the gap, if that is known: riding along in one shortens nothing.
    """
    told = meta.get("engine")
    engine = told if isinstance(told, Mapping) else {}
    if cause in PROMPTS:
        return _mend_prefill(engine, rounds)
    if cause in RIDING:
        return Mend(
            "A smaller --chunked-prefill-size makes each mixed forward shorter; prompts take more of them.",
            ("--chunked-prefill-size",),
        )
    if cause in NO_KV:
        return Mend(
            "A larger --schedule-conservativeness admits fewer requests at once, so that their KV fits.",
            ("--schedule-conservativeness",),
        )
    if cause is PartKind.PREEMPTED:
        return Mend(
            "A larger --priority-scheduling-preemption-threshold lets more of the less urgent go on.",
            ("--priority-scheduling-preemption-threshold",),
        )
    if cause is PartKind.DEFERRED:
        return Mend(
            "A smaller --prefill-decode-interval lets chunks in sooner.", ("--prefill-decode-interval",)
        )
    if cause in HOST and engine.get("disable_overlap_schedule"):
        return Mend("Without --disable-overlap-schedule the host plans while the device runs.", None)
    return None


def _prefills(gap: GapDetail) -> set[int]:
    """Others' forwards with prompts in a gap."""
    return {
        forward.forward_id
        for forward in gap.forwards
        if forward.mode != ForwardMode.DECODE.name and forward.forward_id != gap.own_forward_id
    }


def _prefill_first(gap: GapDetail) -> str:
    """How often prefill went first, and whose prompt that mostly was."""
    prefills = _prefills(gap)
    rounds = len(prefills)
    if not rounds:
        return "Others' chunks ran beside its own."
    often = "A prefill batch could be formed, and prefill goes first."
    if rounds > 1:
        often = f"A prefill batch could be formed {count(rounds)} rounds in a row, and prefill goes first."
    if not gap.culprits:
        return often
    first = gap.culprits[0]
    chunks = len({chunk.forward_id for chunk in gap.chunks if chunk.rid == first.rid} & prefills)
    if chunks < 2:
        return often
    return f"{often} {count(chunks)} of them held chunks of {first.name}."


def _mend_prefill(engine: Mapping[str, Any], rounds: int | None) -> Mend:
    size = engine.get("chunked_prefill_size")
    if isinstance(size, int) and size <= 0:
        return Mend(
            "With --enable-mixed-chunk and a --chunked-prefill-size decodes ride along in each chunk, so the "
            "longest silence is one forward.",
            ("--enable-mixed-chunk", "--chunked-prefill-size"),
        )
    if not engine.get("enable_mixed_chunk") and rounds == 1:
        return Mend(
            "A smaller --chunked-prefill-size makes a forward of prompts shorter; with --enable-mixed-chunk "
            "decodes wait for one such forward at a time.",
            ("--enable-mixed-chunk", "--chunked-prefill-size"),
        )
    if not engine.get("enable_mixed_chunk"):
        return Mend(
            "With --enable-mixed-chunk decodes ride along in prefill forwards, so the longest silence is one "
            "forward. The sum of waiting changes much less.",
            ("--enable-mixed-chunk",),
        )
    return Mend(
        "A smaller --chunked-prefill-size makes each prefill forward shorter.", ("--chunked-prefill-size",)
    )
