"""The ledger of a gap and its chunks as lines: numbers are the ledger's, and nothing is lost on the way."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.ledger.parts import Part, PartKind
from tests.ui.tui.stall_parts import MS, chunk, gap, text_of
from tests.ui.tui.test_text import HOSTILE
from ui.part_words import CAUSES
from ui.tui.ink import BAND, Ink
from ui.tui.stalls_bar import bar, cause_legend, eighths, stacked
from ui.tui.stalls_chunk_rows import blamed_forwards, chunk_rows, chunks_of
from ui.tui.stalls_chunks import chunks_panel
from ui.tui.stalls_ledger import ledger_rows
from ui.tui.stalls_ledger_panel import ledger_panel
from ui.tui.stalls_numbers import Durations
from ui.tui.stalls_view import Panel, StallsView
from ui.tui.text import span_length

PREFILL = PartKind.OTHERS_PREFILL
WALL = gap(
    *(Part(PREFILL, c.in_gap_ns, c.forward_id, c) for c in (chunk(7, k, 30 + k, 50 * MS) for k in (1, 2, 3))),
    Part(PREFILL, 27 * MS + 1, 34, chunk(8, 1, 34, 27 * MS + 1, of=1)),
    Part(PartKind.OWN_DECODE, 9 * MS, 99),
    Part(PartKind.PLAN, 3 * MS),
    Part(PartKind.LAUNCH, 4 * MS),
    Part(PartKind.IDLE, 2 * MS + 7),
)


def view_of(detail: object) -> StallsView:
    view = StallsView()
    view.gap = detail  # type: ignore[assignment]
    view.chunks = chunks_of(view.gap)  # type: ignore[arg-type]
    return view


@pytest.mark.parametrize("cells", [40, 60])
def test_culprits_come_first_its_own_last_and_the_sum_is_told(cells: int) -> None:
    lines = ledger_rows(WALL, cells, 20, rule=True)
    assert {span_length(line) for line in lines} == {cells}
    told = [re.sub(r"  +[╱█▉▋▎▏▒· ]*", "  ", line).strip() for line in text_of(lines).splitlines()]
    assert told[0] == "╱ r7, chunks 1–3  150.0 ms  76.9 %"
    assert told[1] == "╱ r8, whole  27.0 ms  13.8 %"
    assert told[2] == "▒ host and launch  7.0 ms  3.6 %"
    assert told[3] == "· idle  2.0 ms  1.0 %"
    assert told[4] == "█ own decode  9.0 ms  4.6 %"
    assert told[6].endswith("195.0 ms  ✓")


def test_in_full_it_tells_what_the_host_did() -> None:
    told = text_of(ledger_rows(WALL, 60, 20, rule=True, full=True))
    assert "host: planning" in told
    assert "host: launching" in told


def test_parts_that_miss_the_gap_are_called_out() -> None:
    wrong = gap(*WALL.parts[:-1])
    wrong = type(wrong)(**{**{f: getattr(wrong, f) for f in wrong.__slots__}, "end_ns": wrong.end_ns + 3})
    assert "parts miss 3 ns" in text_of(ledger_rows(wrong, 60, 20, rule=False))
    assert "✓" not in text_of(ledger_rows(wrong, 60, 20, rule=False))


@given(st.lists(st.integers(1, 10**10), min_size=1, max_size=30), st.integers(3, 30))
def test_what_there_is_no_room_for_is_taken_together(costs: list[int], most: int) -> None:
    parts = [Part(PREFILL, ns, i, chunk(i, 1, i, ns)) for i, ns in enumerate(costs)]
    lines = ledger_rows(gap(*parts), 40, most, rule=False)
    assert len(lines) <= most
    form = Durations.in_ms(sum(costs), 1)
    told = [line.split() for line in text_of(lines).splitlines()]
    assert told[-1][-3] == form.of(sum(costs))
    if len(costs) > most - 1:
        kept = sorted(costs, reverse=True)[: most - 2]
        assert told[-2][:3] == [f"{len(costs) - len(kept)}", "more,", "together"]
        assert told[-2][3] == form.of(sum(costs) - sum(kept))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("cells", [34, 62])
def test_a_name_keeps_to_its_column(name: str, cells: int) -> None:
    each = chunk(1, 1, 1, 5 * MS, name=name)
    view = view_of(gap(Part(PREFILL, 5 * MS, 1, each), Part(PartKind.OWN_DECODE, MS, 2), name=name))
    for lines in (ledger_panel(view, cells, 12, wide=False), chunks_panel(view, cells, 12)):
        assert len(lines) == 12
        assert max(span_length(line) for line in lines) <= cells
        assert all(c.isprintable() or c in "\u2068\u2069\n" for c in text_of(lines))


def test_chunks_are_rows_with_bars_as_long_as_they_took() -> None:
    lines = text_of(chunks_panel(view_of(WALL), 60, 12)).splitlines()
    assert lines[0].split() == ["Culprits,", "per", "chunk", "ms"]
    assert [line.split()[:4] for line in lines[1:5]] == [
        ["r7", "1/9", "forward", "31"],
        ["r7", "2/9", "forward", "32"],
        ["r7", "3/9", "forward", "33"],
        ["r8", "whole", "forward", "34"],
    ]
    assert [line.split()[-1] for line in lines[1:5]] == ["50.0", "50.0", "50.0", "27.0"]
    assert lines[1].count("█") == lines[2].count("█") > lines[4].count("█") > 5
    assert "100 tokens each" in lines[5]


def test_where_rows_lack_others_than_the_chosen_request_take_one_each() -> None:
    view = view_of(gap(*(Part(PREFILL, MS, k, chunk(k // 20, k % 20 + 1, k, MS)) for k in range(60))))
    view.panel, view.chunk_at = Panel.CHUNKS, 25
    folded = chunk_rows(view.chunks, view.chunk_at, 30)
    assert [len(row.chunks) for row in folded] == [20, *[1] * 20, 20]
    assert sum(row.in_gap_ns for row in folded) == sum(c.in_gap_ns for c in view.chunks)
    lines = chunks_panel(view, 60, 11)
    assert "2–11 of 22" in text_of(lines) or "–" in text_of(lines[:1])
    chosen = [line for line in lines if line and line[0][1] & BAND]
    assert text_of(chosen).split()[:2] == ["▸r1", "6/9"]


def test_a_chunk_that_is_charged_twice_is_one_row() -> None:
    part = chunk(7, 1, 3, 2 * MS)
    twice = gap(Part(PREFILL, 2 * MS, 3, part), Part(PartKind.RETRACTED, 2 * MS, 3, part))
    assert [c.in_gap_ns for c in chunks_of(twice)] == [4 * MS]


def test_forwards_that_reach_out_of_the_gap_are_not_counted_as_inside() -> None:
    assert blamed_forwards(gap(*WALL.parts, start_ns=0), WALL.chunks) == (4, 0)
    inside = gap(*WALL.parts, Part(PartKind.IDLE, 10**9), start_ns=0)
    assert blamed_forwards(inside, WALL.chunks) == (4, 4)


@given(st.lists(st.integers(0, 10**12), min_size=len(CAUSES), max_size=len(CAUSES)), st.integers(30, 200))
def test_the_bar_of_all_waiting_has_every_cause_and_its_length(amounts: list[int], cells: int) -> None:
    by_cause = dict(zip(CAUSES, amounts, strict=True))
    line = stacked(by_cause, cells)
    assert span_length(line) == (cells if any(amounts) else 0)
    assert [text[0] for text, _ in line] == [cause.glyph for cause, ns in by_cause.items() if ns]


def test_the_legend_leaves_out_what_does_not_fit_and_never_cuts() -> None:
    by_cause = dict(zip(CAUSES, [5 * 10**9, 10**9, *[0] * (len(CAUSES) - 2)], strict=True))
    assert text_of([cause_legend(by_cause, 100, wide=True)]) == (
        "█ own decode 5.00 s   ╱ others' prefill 1.00 s   ░ mixed extra 0   ▓ no KV 0"
    )
    assert text_of([cause_legend(by_cause, 40, wide=False)]) == "█ own decode 5.00 s"


def test_a_bar_shows_anything_and_never_more_than_its_cells() -> None:
    hatched = CAUSES[1]
    assert [text for text, _ in bar(hatched, 1, 10**9, 10)] == ["╱", " " * 9]
    assert [text for text, _ in bar(hatched, 10**9, 10**9, 10)] == ["╱" * 10, ""]
    assert bar(hatched, 0, 10, 4) == [("", Ink.STALL), ("    ", Ink.BLANK)]
    assert eighths(1, 10**9, 4) == "▏   "
    assert eighths(5, 8, 1) == "▋"
    assert eighths(9, 8, 2) == "██"


@pytest.mark.parametrize(
    ("largest_ns", "told"),
    [
        (1_516_000_000, "1,516 ms"),
        (99_700_000, "99.7 ms"),
        (1_234_000, "1.23 ms"),
        (3, "0.000003 ms"),
        (0, "0 ms"),
    ],
)
def test_a_column_is_as_precise_as_its_largest_number_needs(largest_ns: int, told: str) -> None:
    assert Durations.in_ms(largest_ns).with_unit(largest_ns) == told


def test_sums_of_a_second_or_more_are_in_seconds() -> None:
    assert Durations.of_sums(9_096_000_000).with_unit(350_000_000) == "0.35 s"
    assert Durations.of_sums(598_000_000).with_unit(598_000_000) == "598 ms"
    assert Durations.of_sums(1).with_unit(None) == "–"
    assert Durations.of_sums(9_096_000_000).with_unit(4_999_999) == "<0.01 s"
    assert Durations.in_ms(100 * MS).with_unit(1) == "<1 ms"
    assert Durations.in_ms(100 * MS).with_unit(0) == "0 ms"
