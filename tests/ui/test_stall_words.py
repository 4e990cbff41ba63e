"""The answer of a ledger, and how rows name who waited and who held them up."""

from dataclasses import replace

import pytest

from profiler.ledger.parts import PartKind
from tests.support.ledgers import EMPTY, WALL, group
from ui.stall_words import culprit_shares, names_words, part_of, stalls_answer


def test_the_answer_says_the_cause_the_culprit_and_the_longest_wait() -> None:
    assert stalls_answer(WALL).text == (
        "9.59 of 17.50 s of waiting went to others' prefill; r7 alone cost 7.00 s. Worst token: 1.50 s."
    )


def test_kinds_that_are_drawn_as_one_are_said_as_one() -> None:
    kinds = {**WALL.by_kind, PartKind.OTHERS_PREFILL: 5 * 10**9, PartKind.OTHERS_MIXED: 4 * 10**9}
    assert stalls_answer(replace(WALL, by_kind=kinds)).cause.startswith("9.00 of 17.50 s")


def test_an_only_culprit_is_not_said_to_be_alone() -> None:
    assert stalls_answer(replace(WALL, culprits=WALL.culprits[:1])).culprit == "r7 cost 7.00 s"


def test_waiting_without_a_stall_is_own_decode() -> None:
    kinds = {PartKind.OWN_DECODE: WALL.waiting_ns}
    answer = stalls_answer(replace(WALL, by_kind=kinds, culprits=()))
    assert answer.text == "All 17.50 s of waiting went to own decode. Worst token: 1.50 s."


def test_without_a_gap_there_is_nothing_to_explain() -> None:
    assert stalls_answer(EMPTY).text == (
        "No request gave two tokens: there is no wait between tokens to explain."
    )


def test_every_cause_can_be_said() -> None:
    for kind in PartKind:
        answer = stalls_answer(replace(WALL, by_kind={kind: 10**9}))
        assert "waiting went to" in answer.cause


def test_a_name_is_written_as_it_is_shown() -> None:
    assert "<r7> alone" in stalls_answer(WALL, show=lambda text: f"<{text}>").text
    odd = replace(WALL, culprits=(replace(WALL.culprits[0], name="a\nb"),))
    assert "a\\nb cost" in stalls_answer(odd).text


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["r1", "r2", "r3", "r4"], "r1–r4"),
        (["r1", "r2"], "r1, r2"),
        (["r1", "r2", "r4"], "r1, r2, r4"),
        (["r8", "r9", "r10", "x"], "r8–r10, x"),
        (["a", "b", "c", "r1", "r2", "r3", "r5"], "a, b, c and 4 more"),
        (["a", "a", "a", "r1", "r1", "r1"], "a, a, a and 3 more"),
        (["0", "1", "2"], "0–2"),
        (["x" + "9" * 5000], "x" + "9" * 46 + "…"),
        (["a007", "a008", "a009", "a010"], "a007–a009, a010"),
        ([], ""),
    ],
)
def test_names_that_follow_each_other_are_a_range(names: list[str], words: str) -> None:
    assert names_words(names) == words


def test_durations_of_a_whole_have_its_unit() -> None:
    assert part_of(300_000, 24_600_000) == "0.3 of 24.6 ms"
    assert part_of(9_590_000_000, 17_510_000_000) == "9.59 of 17.51 s"
    assert part_of(1, 999_600_000) == "0.00 of 1.00 s"


def test_culprits_have_their_share_of_the_gap() -> None:
    wall = group({PartKind.OTHERS_PREFILL: 1_000})
    assert culprit_shares(wall) == "r7 76 %, r8 21 %"
    assert culprit_shares(wall, most=1) == "r7 76 %, 1 more 21 %"
    assert culprit_shares(replace(wall, culprits=())) == ""
