"""Every kind of part has words and one cause that it is drawn as."""

from collections import Counter
from dataclasses import fields

from rich.cells import cell_len

from profiler.ledger.parts import PartKind
from ui.palette import FILLS, Theme
from ui.part_words import CAUSES, PART_WORDS, cause_of, causes_ns


def test_every_kind_has_words_of_its_own() -> None:
    assert set(PART_WORDS) == set(PartKind)
    assert len(set(PART_WORDS.values())) == len(PartKind)


def test_every_kind_is_in_exactly_one_cause() -> None:
    times = Counter(kind for cause in CAUSES for kind in cause.kinds)
    assert times == dict.fromkeys(PartKind, 1)
    assert all(kind in cause_of(kind).kinds for kind in PartKind)


def test_causes_can_be_told_apart() -> None:
    for looks in ("key", "words", "swatch", "glyph"):
        assert len({getattr(cause, looks) for cause in CAUSES}) == len(CAUSES)


def test_a_cause_has_a_colour_of_the_palette_and_a_glyph_of_one_cell() -> None:
    known = FILLS.keys() | {field.name for field in fields(Theme)}
    for cause in CAUSES:
        assert cause.colour in known
        assert cell_len(cause.glyph) == 1


def test_causes_sum_to_what_their_kinds_sum_to() -> None:
    by_kind = {kind: 10**kind for kind in PartKind}
    sums = {cause.key: ns for cause, ns in causes_ns(by_kind).items()}
    assert sum(sums.values()) == sum(by_kind.values())
    assert (
        sums["no_kv"] == by_kind[PartKind.SIT_OUT] + by_kind[PartKind.RETRACTED] + by_kind[PartKind.RECOMPUTE]
    )
    assert sums["others_prefill"] == 10**PartKind.OTHERS_PREFILL + 10**PartKind.OTHERS_MIXED


def test_a_kind_that_nothing_went_to_counts_as_nothing() -> None:
    assert sum(causes_ns({PartKind.IDLE: 5}).values()) == 5
