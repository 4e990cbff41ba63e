"""Why a token was late and what would change that, sentence by sentence of hand-made gaps."""

from dataclasses import replace

import pytest

from profiler.culprits import Culprit
from profiler.ledger.parts import Chunk, GapDetail, GapForward, Part, PartKind
from profiler.ledger.why import main_cause, mend, mend_gap, why_late

MS = 1_000_000


def chunk(number: int, forward_id: int, name: str = "long") -> Chunk:
    start_ns = forward_id * 10 * MS
    prefix_len = (number - 1) * 100
    return Chunk(
        7, name, number, 3, prefix_len, prefix_len + 100, forward_id, start_ns, start_ns + 9 * MS, 9 * MS
    )


def prefill(forward_id: int) -> GapForward:
    start_ns = forward_id * 10 * MS
    return GapForward(forward_id, "EXTEND", start_ns, start_ns + 9 * MS, 9 * MS, 100, 0)


OWN = GapForward(9, "DECODE", 90 * MS, 91 * MS, MS, 0, 1)
CHUNKS = (chunk(1, 1), chunk(2, 2))
GAP = GapDetail(
    rid=1,
    name="r1",
    token_index=4,
    start_ns=10 * MS,
    end_ns=30 * MS,
    median_gap_ns=2.0 * MS,
    own_forward_id=9,
    own_mode="DECODE",
    own_start_ns=90 * MS,
    forwards=(prefill(1), prefill(2), OWN),
    culprits=(Culprit(7, "long", 18 * MS),),
    chunks=CHUNKS,
    costliest=CHUNKS[0],
    mixed_extra_ns=None,
    mixed_extra_estimator=None,
    parts=(
        *(Part(PartKind.OTHERS_PREFILL, each.in_gap_ns, each.forward_id, each) for each in CHUNKS),
        Part(PartKind.OWN_DECODE, MS, 9),
        Part(PartKind.WAIT, MS),
    ),
)


def of(*parts: tuple[PartKind, int]) -> GapDetail:
    """The same gap with other parts, and nobody to blame."""
    made = tuple(Part(kind, ns, 9 if kind <= PartKind.DEFERRED else None) for kind, ns in parts)
    return replace(GAP, parts=made, chunks=(), culprits=(), costliest=None, forwards=(OWN,))


def test_the_main_cause_is_the_largest_part_that_is_not_its_own_decode() -> None:
    assert main_cause(GAP) is PartKind.OTHERS_PREFILL
    assert (
        main_cause(of((PartKind.OWN_DECODE, 9), (PartKind.OWN_OTHER, 8), (PartKind.IDLE, 1))) is PartKind.IDLE
    )
    assert main_cause(of((PartKind.WAIT, 3), (PartKind.PLAN, 3))) is PartKind.PLAN
    assert main_cause(of((PartKind.OWN_DECODE, 9))) is None


def test_prefill_that_goes_first_is_counted_in_rounds() -> None:
    often, whose = why_late(GAP).split(". ")
    assert often == "A prefill batch could be formed 2 rounds in a row, and prefill goes first"
    assert whose == "2 of them held chunks of long."
    once = replace(GAP, forwards=(prefill(1), OWN), chunks=CHUNKS[:1], parts=GAP.parts[:1])
    assert why_late(once) == "A prefill batch could be formed, and prefill goes first."


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (PartKind.MIXED_EXTRA, "It decoded in this forward"),
        (PartKind.MIXED_UNKNOWN, "It decoded in this forward"),
        (PartKind.SIT_OUT, "sat out 2.0 ms of forwards"),
        (PartKind.RETRACTED, "given its KV back"),
        (PartKind.RECOMPUTE, "given its KV back"),
        (PartKind.PREEMPTED, "given way to a more urgent request"),
        (PartKind.DEFERRED, "put its own chunk off: 2.0 ms"),
        (PartKind.OTHERS_DECODE, "Decode forwards ran"),
        (PartKind.LAUNCH, "the host was not"),
        (PartKind.WAIT, "neither device nor host was busy, for 2.0 ms"),
        (PartKind.IDLE, "Nothing was planned, launched, run or processed for 2.0 ms"),
        (PartKind.UNTOLD, "lacks the times"),
    ],
)
def test_every_cause_has_its_sentence(kind: PartKind, words: str) -> None:
    assert words in why_late(of((kind, 2 * MS), (PartKind.OWN_DECODE, MS)))


def test_a_gap_of_nothing_but_its_own_forward_says_so() -> None:
    assert why_late(of((PartKind.OWN_DECODE, MS))) == "Nothing but its own decode forwards lies in it."


@pytest.mark.parametrize(
    ("cause", "engine", "option"),
    [
        (PartKind.OTHERS_PREFILL, {}, ("--enable-mixed-chunk",)),
        (PartKind.OTHERS_PREFILL, {"chunked_prefill_size": 2048}, ("--enable-mixed-chunk",)),
        (
            PartKind.OTHERS_PREFILL,
            {"chunked_prefill_size": -1},
            ("--enable-mixed-chunk", "--chunked-prefill-size"),
        ),
        (PartKind.OTHERS_MIXED, {"enable_mixed_chunk": True}, ("--chunked-prefill-size",)),
        (PartKind.MIXED_EXTRA, {}, ("--chunked-prefill-size",)),
        (PartKind.SIT_OUT, {}, ("--schedule-conservativeness",)),
        (PartKind.RETRACTED, {}, ("--schedule-conservativeness",)),
        (PartKind.PREEMPTED, {}, ("--priority-scheduling-preemption-threshold",)),
        (PartKind.DEFERRED, {}, ("--prefill-decode-interval",)),
        (PartKind.PLAN, {"disable_overlap_schedule": True}, None),
    ],
)
def test_a_mend_names_the_option_that_has_to_do_with_the_cause(
    cause: PartKind, engine: dict[str, object], option: tuple[str, ...] | None
) -> None:
    found = mend(cause, {"engine": engine})
    assert found is not None
    assert found.option == option
    assert "--" in found.sentence


@pytest.mark.parametrize(
    "cause", [PartKind.PLAN, PartKind.IDLE, PartKind.UNTOLD, PartKind.OTHERS_DECODE, None]
)
def test_where_no_option_helps_none_is_named(cause: PartKind | None) -> None:
    assert mend(cause, {"engine": {}}) is None


def test_riding_along_is_no_mend_for_one_forward_or_where_it_is_on() -> None:
    engine: dict[str, object] = {"chunked_prefill_size": 2048}
    many = mend_gap(GAP, {"engine": engine})
    once = mend_gap(replace(GAP, forwards=(prefill(1), OWN)), {"engine": engine})
    mixed = mend_gap(GAP, {"engine": engine | {"enable_mixed_chunk": True}})
    assert [found and found.option for found in (many, once, mixed)] == [
        ("--enable-mixed-chunk",),
        ("--enable-mixed-chunk", "--chunked-prefill-size"),
        ("--chunked-prefill-size",),
    ]


def test_a_trace_without_options_is_no_obstacle() -> None:
    assert mend(PartKind.OTHERS_PREFILL, {"engine": "?"}) == mend(PartKind.OTHERS_PREFILL, {})
