"""Lanes and bars as cells, from tiles made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batch import ForwardMode
from profiler.timeline.tiles import UNKNOWN, Lane, LaneKind, Strip
from ui.tui.bars import held_values, level_cells, strip_cells
from ui.tui.cells import Cells, lane_cells
from ui.tui.glyphs import PLAIN
from ui.tui.ink import CURSOR, Ink

Item = tuple[LaneKind, int, int] | tuple[LaneKind, int, int, int, int]


def lane(*items: Item) -> Lane:
    """Kind, start, end; of a chunk also k and n."""
    rows = [(*item, 0, UNKNOWN)[:5] for item in sorted(items, key=lambda item: item[1])]
    kind, start, end, number, of = (list(column) for column in zip(*rows, strict=True)) if rows else [[]] * 5
    ones = np.ones(len(rows), dtype=np.int64)
    starts, ends = np.array(start, dtype=np.int64), np.array(end, dtype=np.int64)
    return Lane(
        rid=0,
        kind=np.array(kind, dtype=np.uint8),
        start_ns=starts,
        end_ns=ends,
        forward_id=ones,
        number=np.array(number, dtype=np.int64),
        of=np.array(of, dtype=np.int64),
        tokens=ones,
        count=ones,
        busy_ns=ends - starts,
    )


def text(cells: Cells) -> str:
    return "".join(cells.glyph)


def test_each_kind_has_its_glyph_and_ink() -> None:
    cells = lane_cells(
        lane(
            (LaneKind.QUEUED, 0, 20),
            (LaneKind.CHUNK, 20, 50, 1, 9),
            (LaneKind.TOKEN, 55, 55),
            (LaneKind.STALL_PREFILL, 60, 70),
            (LaneKind.STALL_MIXED, 70, 80),
            (LaneKind.STALL_HELD, 80, 90),
            (LaneKind.STALL_DEFERRED, 90, 100),
        ),
        0,
        100,
        10,
    )
    assert text(cells) == "┄┄1  │╱░▓╌"
    assert list(cells.ink[[0, 2, 5, 6, 7, 8, 9]]) == [
        Ink.QUEUED, Ink.CHUNK, Ink.DECODE, Ink.STALL, Ink.MIXED, Ink.HELD, Ink.DEFERRED
    ]  # fmt: skip


def test_an_empty_lane_is_blank() -> None:
    assert text(lane_cells(lane(), 0, 100, 5)) == "     "


@pytest.mark.parametrize(
    ("items", "glyph"),
    [
        ([(LaneKind.STALL_PREFILL, 0, 30), (LaneKind.TOKEN, 50, 50)], "╱"),  # 0.30 * 2.5 > 0.70
        ([(LaneKind.STALL_PREFILL, 0, 25), (LaneKind.TOKEN, 50, 50)], "│"),  # 0.25 * 2.5 < 0.75
        ([(LaneKind.CHUNK, 0, 40, 2, 4), (LaneKind.STALL_PREFILL, 40, 100)], "╱"),
        ([(LaneKind.CHUNK, 0, 50, 2, 4), (LaneKind.STALL_PREFILL, 50, 100)], " "),
        ([(LaneKind.QUEUED, 0, 70), (LaneKind.STALL_PREFILL, 70, 100)], "╱"),
        ([(LaneKind.STALL_PREFILL, 99, 100)], "╱"),
    ],
)
def test_a_cell_shows_what_weighs_most_in_it(items: list[Item], glyph: str) -> None:
    assert text(lane_cells(lane(*items), 0, 100, 1)) == glyph


def test_chunks_are_shaded_in_turn_and_numbered_where_there_is_room() -> None:
    chunks = [(LaneKind.CHUNK, 20 * k, 20 * k + 20, k + 1, 12) for k in range(3)]
    cells = lane_cells(lane(*chunks), 0, 60, 12)
    assert text(cells) == "1   2   3   "
    assert list(cells.ink[::4]) == [Ink.CHUNK, Ink.CHUNK_ALTERNATE, Ink.CHUNK]
    assert text(lane_cells(lane(*chunks), 0, 60, 18)) == "1/12  2/12  3/12  "
    assert text(lane_cells(lane(*chunks), 0, 60, 3)) == "   "
    assert text(lane_cells(lane(*chunks), 0, 60, 3, PLAIN)) == "###"
    assert text(lane_cells(lane((LaneKind.CHUNK, 0, 60, 1, 1)), 0, 60, 6)) == "      "


def test_a_window_cuts_items_at_its_edges() -> None:
    cells = lane_cells(lane((LaneKind.STALL_PREFILL, -50, 20), (LaneKind.TOKEN, 99, 99)), 0, 100, 10)
    assert text(cells) == "╱╱       │"


def test_the_cursor_crosses_a_row_on_the_same_ground() -> None:
    cells = lane_cells(lane((LaneKind.STALL_PREFILL, 0, 100)), 0, 100, 4)
    assert cells.spans(1) == [("╱", Ink.STALL), ("│", Ink.STALL | CURSOR), ("╱╱", Ink.STALL)]
    assert cells.spans() == [("╱╱╱╱", Ink.STALL)]
    cells.write(0, "pill", Ink.PILL)
    assert cells.spans(1) == [("pill", Ink.PILL)]


def test_the_cursor_leaves_a_chunks_number_legible() -> None:
    cells = lane_cells(lane((LaneKind.CHUNK, 0, 100, 7, 9)), 0, 100, 3)
    assert cells.spans(0) == [("7", Ink.NUMBER_AT_CURSOR), ("  ", Ink.CHUNK)]


@given(
    st.lists(st.tuples(st.sampled_from(LaneKind), st.integers(-50, 150), st.integers(0, 40)), max_size=20),
    st.integers(1, 40),
)
def test_any_lane_fills_its_cells(items: list[tuple[LaneKind, int, int]], columns: int) -> None:
    cells = lane_cells(lane(*((kind, t, t + length) for kind, t, length in items)), 0, 100, columns)
    assert len(cells.glyph) == len(cells.ink) == columns
    assert all(len(glyph) == 1 for glyph in cells.glyph)


def strip(*forwards: tuple[int, int, ForwardMode, int, int]) -> Strip:
    """Start, end, mode, tokens of prefill and of decode."""
    start, end, mode, extend, decode = (
        np.array([forward[i] for forward in forwards], dtype=np.int64) for i in range(5)
    )
    ids = np.arange(len(forwards))
    return Strip(start, end, ids, mode.astype(np.uint8), extend, decode, ids, np.ones_like(ids), end - start)


def test_bars_stack_prefill_on_decode() -> None:
    rows = strip_cells(
        strip(
            (0, 10, ForwardMode.DECODE, 0, 6),
            (10, 20, ForwardMode.EXTEND, 2048, 0),
            (20, 30, ForwardMode.EXTEND, 1024, 0),
            (30, 40, ForwardMode.MIXED, 2042, 6),
        ),
        0,
        40,
        4,
        2,
        2048,
    )
    assert [text(row) for row in rows] == [" █ █", "▁██▁"]
    assert list(rows[1].ink) == [
        Ink.DECODE, Ink.BAR_CHUNK_ALTERNATE, Ink.BAR_CHUNK, Ink.DECODE_ON_ALTERNATE
    ]  # fmt: skip


def test_a_forward_above_the_scale_is_torn() -> None:
    rows = strip_cells(strip((0, 10, ForwardMode.EXTEND, 5000, 0)), 0, 10, 2, 3, 2048)
    assert [text(row) for row in rows] == ["▲▲", "██", "██"]


def test_a_forward_of_unknown_tokens_is_a_dot_not_a_zero() -> None:
    rows = strip_cells(strip((0, 5, ForwardMode.EXTEND, UNKNOWN, UNKNOWN)), 0, 10, 2, 2, 2048)
    assert [text(row) for row in rows] == ["  ", "· "]


def test_no_forward_no_bar() -> None:
    assert [text(row) for row in strip_cells(strip(), 0, 10, 3, 2, 2048)] == ["   ", "   "]


def test_a_short_prefill_among_decodes_stays_visible() -> None:
    rows = strip_cells(
        strip((0, 60, ForwardMode.DECODE, 0, 6), (60, 90, ForwardMode.EXTEND, 2048, 0)), 0, 100, 1, 1, 2048
    )
    assert text(rows[0]) == "█"


def test_step_lines_hold_their_value() -> None:
    t_ns = np.array([10, 35, 36])
    values = np.array([4, 9, 2])
    assert list(held_values(t_ns, values, 0, 60, 6, np.max)) == [UNKNOWN, 4, 4, 9, 2, 2]
    assert list(held_values(t_ns, values, 0, 60, 6, np.min)) == [UNKNOWN, 4, 4, 2, 2, 2]


def test_levels_show_little_and_tell_zero_from_unknown() -> None:
    cells = level_cells(np.array([0, 1, 50, 100, UNKNOWN]), 100, Ink.FREE, zero="·")
    assert text(cells) == "·▁▄█ "
    assert text(level_cells(np.array([3, 4]), None, Ink.FREE)) == "  "
