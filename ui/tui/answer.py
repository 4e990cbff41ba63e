"""What happens at the cursor in one sentence: who is silent since when, and because of whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.batch import ForwardMode
from profiler.ledger.parts import Chunk, GapDetail
from profiler.scheduler_state import SchedulerState
from ui import words
from ui.tui.text import instant, shown

__all__ = ["Answer", "alike", "answer", "open_answer", "reason"]

Stall = Mapping[str, Any]  # a row of `profiler.stalls.stalls`

NAME_CELLS = 24
HELD_BACK = ("retractions", "preemptions", "sit_outs", "deferrals")


@dataclass(frozen=True, slots=True)
class Answer:
    """The effect, its cause in full and in brief, and what comes next; empty where nothing is to be said."""

    effect: str
    cause: str = ""
    brief: str = ""
    then: str = ""


def answer(
    state: SchedulerState, silent: Sequence[Stall], gap: GapDetail | None, next_stall: Stall | None
) -> Answer:
    """From the state at the cursor, listed stalls there of one cause, and the gap of the first of these.

    `next_stall` is the first one after the cursor.
    """
    if silent:
        return _stalled(state, silent, gap)
    then = (
        f"Next stall at {instant(next_stall['start_ns'])} s" if next_stall else "No listed stall after this"
    )
    return Answer(f"{_activity(state)}, no listed stall here.", then=then)


def open_answer(state: SchedulerState) -> Answer | None:
    """At the end of a growing trace: who waits for a token that the trace does not hold yet.

    A gap becomes a stall only when its later token has come. None when nobody waits.
    """
    waiting = [request for request in state.running if not request.in_forward]
    if not waiting or state.forward is None:
        return None
    who = shown(waiting[0].name, NAME_CELLS) if len(waiting) == 1 else f"{len(waiting):,} decodes"
    effect = f"{who} without a row in the last forward"
    half_done = state.half_done
    if half_done is None:
        return Answer(f"{effect}.", then="Their next tokens are not recorded yet")
    name = shown(half_done.name, NAME_CELLS)
    cause = f"{name} holds the half-done slot, chunk {half_done.number}"
    return Answer(
        f"{effect}: ", f"{cause}.", f"{name} chunk {half_done.number}", "Next tokens not recorded yet"
    )


def alike(silent: Sequence[Stall]) -> Sequence[Stall]:
    """The most of these stalls that have one cause; those that come first where as many have another."""
    causes = [reason(stall) for stall in silent]
    most = max(causes, key=causes.count, default=None)
    return [stall for stall, cause in zip(silent, causes, strict=True) if cause == most]


def reason(stall: Stall) -> str:
    """Why a stall is one, in a few words."""
    if stall["retractions"]:
        return "retracted, it gave back its KV"
    if stall["preemptions"]:
        return "preempted, it gave back its KV to a more urgent request"
    if stall["sit_outs"]:
        return "no KV for its next token"
    if stall["deferrals"]:
        return "deferred by the prefill-decode interval"
    if stall["others_ns"]:
        return "prefill goes first"
    return "prefill rides in its forward"


def _stalled(state: SchedulerState, silent: Sequence[Stall], gap: GapDetail | None) -> Answer:
    since = instant(min(stall["start_ns"] for stall in silent))
    who = shown(silent[0]["name"], NAME_CELLS) if len(silent) == 1 else f"{len(silent):,} decodes"
    cause, brief = _cause(state, silent[0], gap)
    then = f"Next token at {instant(min(stall['end_ns'] for stall in silent))} s"
    return Answer(f"{who} silent since {since} s: ", f"{cause}.", brief, then)


def _cause(state: SchedulerState, stall: Stall, gap: GapDetail | None) -> tuple[str, str]:
    """The cause in full and in brief."""
    if any(stall[name] for name in HELD_BACK):
        return reason(stall), reason(stall)
    chunk = None if gap is None else _running(gap, state.t_ns)
    if chunk is not None:
        return _of_chunk(state, chunk)
    if gap is not None and gap.culprits:
        first = gap.culprits[0]
        name = shown(first.name, NAME_CELLS)
        return f"{name} held the device for {words.seconds(first.device_ns / 1e9)} of it", f"{name} first"
    return reason(stall), reason(stall)


def _running(gap: GapDetail, t_ns: int) -> Chunk | None:
    """The culprit's chunk on the device at a moment, the largest of several."""
    here = [chunk for chunk in gap.chunks if chunk.start_ns <= t_ns < chunk.end_ns]
    return max(here, key=lambda chunk: chunk.extend_end - chunk.prefix_len, default=None)


def _of_chunk(state: SchedulerState, chunk: Chunk) -> tuple[str, str]:
    name, k, n = shown(chunk.name, NAME_CELLS), chunk.number, chunk.of
    tokens = words.count(chunk.extend_end - chunk.prefix_len)
    place, brief = (f"chunk {k}", f"chunk {k}") if n is None else (f"chunk {k} of {n}", f"chunk {k}/{n}")
    if state.on_device is not None and state.on_device.mode == ForwardMode.MIXED.name:
        part = f"the prompt of {name}, {tokens} tokens," if n == 1 else f"{name}, {place},"
        return f"{part} shares their forward", f"{name} shares their forward"
    if n == 1:
        return f"the whole prompt of {name}, {tokens} tokens, goes first", f"{name} {tokens} tokens first"
    if k == n:
        return f"{name} computes its last chunk, {k} of {n}", f"{name} {brief} is its last"
    if state.half_done is not None and state.half_done.rid == chunk.rid:
        return f"{name} holds the half-done slot, {place}", f"{name} {brief} holds the slot"
    return f"{name} computes {place}", f"{name} {brief} first"


def _activity(state: SchedulerState) -> str:
    forward = state.on_device
    decodes = words.plural(len(state.running), "decode")
    if forward is None:
        return _between_forwards(state, decodes)
    if forward.mode == ForwardMode.DECODE.name:
        return f"{words.plural(forward.decode_tokens or 0, 'decode')} running"
    prompt = f"{words.count(forward.extend_tokens)} prompt tokens"
    if forward.mode == ForwardMode.MIXED.name:
        return f"{prompt} and {words.plural(forward.decode_tokens or 0, 'decode')} in one forward"
    return f"{prompt} in prefill, {decodes} in progress"


def _between_forwards(state: SchedulerState, decodes: str) -> str:
    planned = state.forward
    if planned is None:
        return "Before the first forward"
    place = "After" if planned.end_ns <= state.t_ns else "Before"
    return f"{place} forward {planned.forward_id}, {decodes} in progress"
