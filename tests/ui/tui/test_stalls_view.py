"""The list of worst stalls: its order, its groups, what is found in it, and what stays chosen."""

from typing import cast

import pytest

from profiler.culprits import Culprit
from profiler.ledger.parts import GapDetail, Part, PartKind
from profiler.ledger.report import StallReport
from profiler.timeline.timeline import Timeline
from tests.ui.tui.stall_parts import MS, chunk, gap, group, report, text_of
from tests.ui.tui.test_text import HOSTILE
from ui.tui.stalls_layout import stalls_layout
from ui.tui.stalls_rows import Order, in_sight
from ui.tui.stalls_table import list_lines, row_text
from ui.tui.stalls_view import Panel, StallsView
from ui.tui.text import span_length
from ui.tui.view import Moment

WALL = group(
    100 * MS, 1500 * MS, ["r1", "r2", "r3"], [Culprit(7, "r7", 1200 * MS), Culprit(8, "r8", 300 * MS)]
)
LATE = group(50 * MS, 400 * MS, ["r7"], [Culprit(8, "r8", 400 * MS)])
MANY = group(900 * MS, 350 * MS, [f"x{i}" for i in range(10)], [Culprit(9, "Long", 350 * MS)])


class HandMade:
    """Gaps for rows made by hand: each is its chunks of two prompts, and a decode."""

    def gap(self, rid: int, token_index: int) -> GapDetail:
        return self.gap_at(rid, {0: 100 * MS}.get(rid, 0))

    def gap_at(self, rid: int, t_ns: int) -> GapDetail:
        row = next((row for row in (WALL, LATE, MANY) if row.start_ns == t_ns), WALL)
        parts = (
            Part(PartKind.OTHERS_PREFILL, row.late_ns - 9 * MS, 20, chunk(7, 1, 20, row.late_ns - 9 * MS)),
            Part(PartKind.OTHERS_PREFILL, 9 * MS, 21, chunk(8, 1, 21, 9 * MS)),
            Part(PartKind.OWN_DECODE, MS, row.own_forward_id),
        )
        made = gap(*parts, rid=rid, name=f"n{rid}", start_ns=row.start_ns)
        fields = {name: getattr(made, name) for name in made.__slots__}
        return GapDetail(**{**fields, "own_forward_id": row.own_forward_id})


def shown_view(told: StallReport | None = None) -> StallsView:
    view = StallsView()
    view.show(cast(Timeline, HandMade()), told or report(WALL, LATE, MANY))
    return view


def starts(view: StallsView) -> list[int]:
    return [row.start_ns // MS for row in view.rows]


def test_the_largest_come_first_by_either_column_and_the_choice_stays() -> None:
    view = shown_view()
    assert starts(view) == [100, 50, 900]
    view.move(1)
    assert view.row == LATE
    view.next_order()
    assert (view.order, starts(view)) == (Order.LOST, [100, 900, 50])
    assert view.row == LATE
    view.next_order()
    assert starts(view) == [100, 50, 900]


def test_who_lost_nothing_is_not_listed() -> None:
    assert starts(shown_view(report(group(MS, 0, ["idle"]), LATE))) == [50]


def test_ungrouped_there_is_one_row_for_each_request() -> None:
    view = shown_view()
    view.toggle_groups()
    assert [row.requests for row in view.rows] == [1] * 14
    assert sum(row.lost_ns for row in view.rows) == sum(row.lost_ns for row in (WALL, LATE, MANY))
    assert all(sum(row.by_kind.values()) == row.gap_ns for row in view.rows)
    assert view.row is not None
    assert view.row.start_ns == WALL.start_ns
    view.move(2)
    view.toggle_groups()
    assert view.row == WALL


def test_brackets_go_by_time_and_say_where_the_list_ends() -> None:
    view = shown_view()
    view.next_in_time(1)
    assert view.row == MANY
    view.next_in_time(1)
    assert (view.row, view.message) == (MANY, "no wait of the list after 0.900 s")
    view.next_in_time(-1)
    view.next_in_time(-1)
    assert view.row == LATE


def test_the_costliest_chunk_is_chosen_and_the_arrows_move_among_chunks() -> None:
    view = shown_view()
    view.next_panel()
    assert view.panel is Panel.CHUNKS
    assert view.chunk is not None
    assert view.chunk.rid == 7
    assert view.moment == Moment(0, 200 * MS, 100 * MS, 1601 * MS)
    view.move(1)
    assert view.chunk.rid == 8
    view.move(5)
    assert view.chunk.rid == 8
    view.next_panel()
    assert view.moment is not None
    assert view.moment.at_ns == 100 * MS


def test_names_of_victims_and_of_culprits_are_found_whatever_their_case() -> None:
    view = shown_view()
    view.search("LONG")
    assert view.row == MANY
    view.search("r7")
    assert (view.row, view.message) == (WALL, "2 rows match: n goes to the next")
    view.message = ""
    view.next_match()
    assert view.row == LATE
    view.search("\x1b[31mnobody")
    assert view.row == LATE
    assert view.message.startswith("no name in the 3 rows holds")
    assert "\x1b" not in view.message


def test_a_new_report_keeps_what_is_looked_at() -> None:
    view = shown_view()
    view.next_panel()
    view.move(1)
    view.show(cast(Timeline, HandMade()), report(group(2000 * MS, 9000 * MS, ["new"]), WALL))
    assert view.row == WALL
    assert view.panel is Panel.CHUNKS
    assert view.chunk is not None
    assert view.chunk.rid == 8


def test_rows_around_the_chosen_one_are_in_sight() -> None:
    assert in_sight(3, 2, 5) == range(3)
    assert in_sight(20, 0, 5) == range(5)
    assert in_sight(20, 10, 5) == range(8, 13)
    assert in_sight(20, 19, 5) == range(15, 20)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (160, 48)])
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_a_name_holds_the_columns_stay(name: str, size: tuple[int, int]) -> None:
    view = shown_view(report(group(MS, 5 * MS, [name] * 3, [Culprit(1, name, 4 * MS)])))
    place = stalls_layout(*size, 1, chunks_first=False)
    assert place is not None
    lines = list_lines(view, place)
    assert len(lines) == place.list_rows + (2 if place.wide else 1)
    assert max(span_length(line) for line in lines) <= size[0]
    told = text_of([line for line in lines if "5.00 ms" in text_of([line])])
    assert "15.0 ms" in told
    assert "\x1b" not in row_text(view.rows[0])
    assert "\n" not in row_text(view.rows[0])


@pytest.mark.parametrize("size", [(60, 20), (75, 24), (80, 24), (120, 40), (119, 60), (160, 48), (240, 80)])
@pytest.mark.parametrize("stalls", [1, 5, 500])
def test_every_row_of_the_screen_is_given_to_a_part(size: tuple[int, int], stalls: int) -> None:
    place = stalls_layout(*size, stalls, chunks_first=True)
    assert place is not None
    assert place.list_rows >= min(stalls, 3)
    assert place.panel_rows >= (20 if place.wide and size[1] >= 40 else 7)
    assert place.left_cells + place.right_cells <= size[0] - 2
    assert place.right_cells >= 34


def test_a_row_is_copied_with_its_words() -> None:
    told = row_text(WALL)
    assert told.split("\t")[:4] == ["r1–r3", "since 0.100 s", "late by 1,500 ms", "lost in all 4.50 s"]
    assert told.endswith("others' prefill\tr7 80 %, r8 20 %")
