"""What zooming, panning and moving do to a view."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ui.tui.view import SHORTEST_NS, View

S = 1_000_000_000
WHOLE = View.whole(0, 10 * S, 4 * S)


def test_zooming_keeps_the_cursor_where_it_is_on_screen() -> None:
    near = WHOLE.zoomed(0.5)
    assert near.span_ns == 5 * S
    assert near.column(4 * S, 100) == WHOLE.column(4 * S, 100)
    assert near.zoomed(2.0) == WHOLE


def test_zooming_has_ends() -> None:
    nearest = WHOLE
    for _ in range(60):
        nearest = nearest.zoomed(0.5)
    assert nearest.span_ns == SHORTEST_NS
    assert nearest.start_ns <= nearest.cursor_ns <= nearest.end_ns
    assert WHOLE.zoomed(3.0) == WHOLE


def test_panning_stops_at_the_ends() -> None:
    near = WHOLE.zoomed(0.5)
    assert near.panned(0.2).start_ns == near.start_ns + S
    assert near.panned(9).end_ns == 10 * S
    assert near.panned(-9).start_ns == 0
    assert near.panned(9).cursor_ns == 4 * S


def test_the_cursor_takes_the_range_along_only_when_out_of_sight() -> None:
    near = replace(WHOLE, start_ns=3 * S, end_ns=5 * S)
    assert near.at(4 * S + 1).start_ns == 3 * S
    moved = near.at(8 * S)
    assert moved.span_ns == near.span_ns
    assert moved.start_ns < 8 * S < moved.end_ns
    assert near.at(99 * S).cursor_ns == 10 * S


def test_an_interval_is_shown_with_what_surrounds_it() -> None:
    near = replace(WHOLE, start_ns=0, end_ns=S)
    shown = near.showing(4 * S, 5 * S)
    assert (shown.start_ns, shown.end_ns) == (3 * S, 6 * S)
    assert near.showing(0, S // 2) is near


def test_following_keeps_the_end_in_sight() -> None:
    grown = WHOLE.grown(0, 20 * S).following(5 * S)
    assert (grown.start_ns, grown.end_ns, grown.cursor_ns) == (15 * S, 20 * S, 20 * S)
    assert grown.column(20 * S, 10) == 9


def test_a_trace_without_time_has_a_view() -> None:
    view = View.whole(0, 0)
    assert view.zoomed(0.5).panned(1).at(5).fitted().span_ns == SHORTEST_NS


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("zoomed"), st.floats(0.01, 100)),
            st.tuples(st.just("panned"), st.floats(-10, 10)),
            st.tuples(st.just("at"), st.integers(-S, 20 * S)),
        ),
        max_size=12,
    )
)
def test_no_move_leaves_the_trace(moves: list[tuple[str, float]]) -> None:
    view = WHOLE
    for name, value in moves:
        view = getattr(view, name)(value)
        assert 0 <= view.start_ns < view.end_ns <= 10 * S
        assert view.first_ns <= view.cursor_ns <= view.last_ns
