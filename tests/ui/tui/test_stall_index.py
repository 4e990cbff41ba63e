"""Stalls by moment and range, against looking at every one of them."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from engine.batch import ForwardMode
from ui.tui.stall_index import StallIndex

Spans = list[tuple[int, int, int]]
SPANS = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 80), st.integers(0, 3)), max_size=25)


def index(spans: Spans) -> StallIndex:
    """Start, length, request; those of request 0 are in mixed forwards alone."""
    return StallIndex.of(
        pl.DataFrame(
            {
                "rid": [rid for _, _, rid in spans],
                "start_ns": [start for start, _, _ in spans],
                "end_ns": [start + length for start, length, _ in spans],
                "gap_ns": [length for _, length, _ in spans],
                "own_mode": [(ForwardMode.DECODE if rid else ForwardMode.MIXED).value for _, _, rid in spans],
                "others_ns": [length if rid else 0 for _, length, rid in spans],
            },
            dict.fromkeys(("rid", "start_ns", "end_ns", "gap_ns", "own_mode", "others_ns"), pl.Int64),
        )
    )


@given(SPANS, st.integers(-5, 300))
def test_those_at_a_moment(spans: Spans, t_ns: int) -> None:
    found = [(row["start_ns"], row["gap_ns"], row["rid"]) for row in index(spans).at(t_ns)]
    assert sorted(found) == sorted(s for s in spans if s[0] <= t_ns < s[0] + s[1])
    assert found == sorted(found, key=lambda s: (-s[1], s[2]))


@given(SPANS, st.integers(-5, 300), st.integers(1, 100))
def test_the_longest_in_a_range(spans: Spans, start_ns: int, length: int) -> None:
    found = index(spans).longest_in(start_ns, start_ns + length)
    inside = [s for s in spans if s[0] < start_ns + length and s[0] + s[1] > start_ns]
    assert (found or {}).get("gap_ns") == max((s[1] for s in inside), default=None)


@given(SPANS, st.integers(1, 40))
def test_what_is_covered(spans: Spans, columns: int) -> None:
    for mixed in (False, True):
        covered = index(spans).covered(0, 300, columns, mixed=mixed)
        ends = [(s[0], s[0] + s[1]) for s in spans if (s[2] == 0) == mixed]
        for column, is_covered in enumerate(covered.tolist()):
            low, high = 300 * column, 300 * (column + 1)  # in columns of a nanosecond, to be exact
            assert is_covered >= any(a * columns < high and b * columns > low for a, b in ends)
            assert is_covered <= any((a - 1) * columns < high and (b + 1) * columns > low for a, b in ends)


def test_the_longest_of_each_request() -> None:
    assert index([(0, 5, 1), (9, 7, 1), (3, 2, 2)]).longest_by_rid() == {1: 7, 2: 2}
