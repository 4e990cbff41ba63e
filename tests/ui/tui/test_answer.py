"""The answer line, from states and stalls made by hand."""

from typing import Any

import pytest

from profiler.culprits import Culprit
from profiler.ledger.parts import Chunk, GapDetail
from profiler.scheduler_state import ForwardState, HalfDone, RequestState, SchedulerState
from ui.tui.answer import alike, answer, open_answer, reason

MS = 1_000_000


def forward(
    mode: str = "EXTEND", *, extend: int = 2048, decode: int = 0, forward_id: int = 48, at_ms: int = 100
) -> ForwardState:
    return ForwardState(forward_id, mode, at_ms * MS, (at_ms + 90) * MS, extend, decode, 1, 6, None, 0, 0)


BEFORE, AFTER = forward(forward_id=47, at_ms=20), forward(forward_id=49, at_ms=190)


def state(
    at: ForwardState | None,
    half_done: HalfDone | None = None,
    running: int = 6,
    planned: ForwardState | None = None,
) -> SchedulerState:
    """At 120 ms, with the forward `at` there; `planned` is another one that the scheduler planned last."""
    runs = tuple(RequestState(rid, f"r{rid}", 20, 5, None, False) for rid in range(running))
    on_device = at if at is not None and at.start_ns <= 120 * MS < at.end_ns else None
    planned = planned or at
    return SchedulerState(
        120 * MS, planned, runs, (), half_done, (), None, None, None, 1, running, 0, 0, on_device=on_device
    )


def stall(rid: int = 1, **more: Any) -> dict[str, Any]:
    cause = {"others_ns": 90 * MS, "sit_outs": 0, "retractions": 0, "preemptions": 0, "deferrals": 0}
    return {"rid": rid, "name": f"r{rid}", "start_ns": 60 * MS, "end_ns": 300 * MS, **cause, **more}


def gap(*chunks: Chunk) -> GapDetail:
    shares = (Culprit(7, "r7", 150 * MS),)
    return GapDetail(
        1, "r1", 3, 60 * MS, 300 * MS, 5e6, 60, "DECODE", 295 * MS, (), shares, chunks, None, None, None
    )


def chunk(number: int, of: int | None) -> Chunk:
    return Chunk(7, "r7", number, of, 0, 2048, 48, 100 * MS, 190 * MS, 90 * MS)


HALF_DONE = HalfDone(7, "r7", 26_624, 28_672, 32_768, 14, 16, 1)


def sentence(*args: Any) -> str:
    said = answer(*args)
    return f"{said.effect}{said.cause} {said.then}"


def test_who_is_silent_since_when_and_because_of_whom() -> None:
    silent = [stall(rid) for rid in range(6)]
    said = sentence(state(forward(), HALF_DONE), silent, gap(chunk(14, 16)), None)
    assert said == (
        "6 decodes silent since 0.060 s: r7 holds the half-done slot, chunk 14 of 16. Next token at 0.300 s"
    )
    brief = answer(state(forward(), HALF_DONE), silent, gap(chunk(14, 16)), None).brief
    assert brief == "r7 chunk 14/16 holds the slot"


@pytest.mark.parametrize(
    ("at", "here", "cause"),
    [
        (forward(), chunk(14, None), "r7 computes chunk 14."),
        (forward(), chunk(16, 16), "r7 computes its last chunk, 16 of 16."),
        (forward(), chunk(1, 1), "the whole prompt of r7, 2,048 tokens, goes first."),
        (forward("MIXED", decode=6), chunk(3, 17), "r7, chunk 3 of 17, shares their forward."),
        (BEFORE, None, "r7 held the device for 150 ms of it."),
    ],
)
def test_the_cause_is_what_runs_now(at: ForwardState, here: Chunk | None, cause: str) -> None:
    found = gap(here) if here else gap()
    assert answer(state(at), [stall()], found, None).cause == cause


def test_one_is_named() -> None:
    assert answer(state(forward()), [stall()], gap(), None).effect == "r1 silent since 0.060 s: "


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"retractions": 1}, "retracted, it gave back its KV"),
        ({"preemptions": 1}, "preempted, it gave back its KV to a more urgent request"),
        ({"sit_outs": 2}, "no KV for its next token"),
        ({"deferrals": 1}, "deferred by the prefill-decode interval"),
        ({"others_ns": 0}, "prefill rides in its forward"),
        ({"others_ns": None}, "prefill rides in its forward"),
        ({}, "prefill goes first"),
    ],
)
def test_reasons(more: dict[str, Any], why: str) -> None:
    assert reason(stall(**more)) == why


def test_stalls_of_several_causes_are_answered_by_the_commonest() -> None:
    silent = [stall(0, retractions=1), stall(1), stall(2)]
    assert [one["rid"] for one in alike(silent)] == [1, 2]
    assert [one["rid"] for one in alike(silent[:2])] == [0]
    assert alike([]) == []


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (None, "Before the first forward, no listed stall here."),
        (forward("DECODE", extend=0, decode=6), "6 decodes running, no listed stall here."),
        (forward("DECODE", extend=0, decode=1), "1 decode running, no listed stall here."),
        (forward(), "2,048 prompt tokens in prefill, 6 decodes in progress, no listed stall here."),
        (
            forward("MIXED", decode=6),
            "2,048 prompt tokens and 6 decodes in one forward, no listed stall here.",
        ),
        (BEFORE, "After forward 47, 6 decodes in progress, no listed stall here."),
        (AFTER, "Before forward 49, 6 decodes in progress, no listed stall here."),
    ],
)
def test_without_a_stall_it_says_what_runs(at: ForwardState | None, said: str) -> None:
    found = answer(state(at), [], None, stall())
    assert found.effect == said
    assert found.then == "Next stall at 0.060 s"
    assert answer(state(at), [], None, None).then == "No listed stall after this"


def test_while_the_next_forward_is_planned_it_speaks_of_the_one_that_runs() -> None:
    mixed, decodes = forward("MIXED", decode=6), forward("DECODE", extend=0, decode=6)
    said = answer(state(decodes, planned=AFTER), [], None, None).effect
    assert said == "6 decodes running, no listed stall here."
    said = answer(state(mixed, planned=AFTER), [stall()], gap(chunk(3, 17)), None).cause
    assert said == "r7, chunk 3 of 17, shares their forward."
    said = answer(state(forward(), planned=mixed), [stall()], gap(chunk(3, 17)), None).cause
    assert said == "r7 computes chunk 3 of 17."


def test_at_the_end_of_a_growing_trace_it_says_who_waits() -> None:
    said = open_answer(state(forward(), HALF_DONE))
    assert said is not None
    assert said.effect + said.cause == (
        "6 decodes without a row in the last forward: r7 holds the half-done slot, chunk 14."
    )
    alone = open_answer(state(forward(), running=1))
    assert alone is not None
    assert alone.effect == "r0 without a row in the last forward."
    assert open_answer(state(forward(), running=0)) is None
    assert open_answer(state(None)) is None
