"""The Stalls page: its sums are the ledger's, its lines lead to instants, and what it says of little."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import dash
import numpy as np
import pytest
from dash import html

from profiler.ledger.parts import GapDetail, PartKind
from profiler.ledger.report import CausesOverTime, StallGroup
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.dash_parts import data_of, links, rows, walk, words
from tests.support.three_runs import record_three_runs
from ui.metric_entries import ENTRIES, explained
from ui.palette import THEMES
from ui.part_words import CAUSES, causes_ns
from ui.stall_words import stalls_answer
from ui.web.figures.causes import cause_sums, causes_figure
from ui.web.pages import stalls
from ui.web.pages.saturation_evidence import EvidenceOf
from ui.web.pages.stalls_costs import chunks_table, culprits_table
from ui.web.pages.stalls_gap import GAP_PARTS, gap_parts, merged_chunks
from ui.web.pages.stalls_report import REPORT_PARTS, cause_bar, report_parts
from ui.web.pages.stalls_rows import MOST_ROWS
from ui.web.pages.stalls_tables import spans_table, victims_table, worst_table
from ui.web.pages.stalls_ttft import TTFT_PARTS, TtftOf, ttft_parts
from ui.web.runs import Run, make_runs
from ui.web.urls import read_view

LIGHT = THEMES["light"]
MS = 1_000_000
NAMES = ("whole", "chunked", "mixed", "sweep")


@pytest.fixture(scope="module")
def timelines(tmp_path_factory: pytest.TempPathFactory) -> list[Timeline]:
    paths: dict[str, Path] = record_three_runs(tmp_path_factory.mktemp("stalls"))
    return [open_timeline(paths[name]) for name in NAMES]


@pytest.fixture(scope="module")
def runs(timelines: list[Timeline]) -> tuple[Run, ...]:
    return make_runs(timelines)


def worst(run: Run) -> GapDetail:
    gap = run.timeline.worst_gap()
    assert gap is not None
    return gap


def query(link: Any) -> dict[str, int]:
    parts = urlsplit(link.href)
    assert parts.path == "/compare"
    return {key: int(values[0]) for key, values in parse_qs(parts.query).items()}


def sum_ns(table: object) -> int:
    return sum(data_of(row, "ns") for row in rows(table))


def is_total(row: Any) -> bool:
    return getattr(row, "className", None) == "total"


def ids(page: object) -> list[str]:
    return [str(part.id) for part in walk(page) if getattr(part, "id", None)]


def test_the_page_has_a_place_for_every_part_and_callback(timelines: list[Timeline]) -> None:
    app = dash.Dash("test", suppress_callback_exceptions=True)
    app.layout = stalls.layout(timelines, "light", read_view("", make_runs(timelines))[0])
    known = ids(app.layout)
    assert len(known) == len(set(known))
    assert {f"stalls-{part}" for part in (*REPORT_PARTS, *GAP_PARTS, *TTFT_PARTS)} <= set(known)
    stalls.register(app, timelines, threading.Lock(), EvidenceOf(timelines))
    told = [end["id"] for callback in app._callback_list for end in callback["inputs"] + callback["state"]]
    assert set(told) <= set(known)
    for graph in (part for part in walk(app.layout) if type(part).__name__ == "Graph"):
        assert graph.config["showSendToCloud"] is False


@pytest.mark.parametrize("index", range(3))
def test_sums_on_screen_are_those_of_the_ledger(runs: tuple[Run, ...], index: int) -> None:
    run = runs[index]
    report = run.timeline.stall_report
    parts = report_parts(run, LIGHT)
    assert words(parts["answer"]).replace(" ;", ";").replace(" .", ".").replace("  ", " ") == (
        stalls_answer(report).text
    )
    legend = [part for part in walk(parts["causes"]) if isinstance(part, html.Li)]
    told = {words(item).strip(): data_of(item, "ns") for item in legend}
    assert sum(told.values()) == report.waiting_ns == sum(report.by_kind.values())
    causes = causes_ns(report.by_kind)
    assert sorted(ns for ns in told.values() if ns) == sorted(ns for ns in causes.values() if ns)
    spans = [[data_of(cell, "ns") for cell in row.children[1:]] for row in span_rows(parts["spans"])]
    assert np.sum(spans[:-1], axis=0).tolist() == spans[-1] == [ns for ns in causes.values() if ns]


def span_rows(table: object) -> list[Any]:
    return [row for row in walk(table) if isinstance(row, html.Tr)][1:]


def test_the_picture_is_as_high_as_the_requests_that_wait(runs: tuple[Run, ...]) -> None:
    report = runs[1].timeline.stall_report
    figure = causes_figure(report.over_time, runs[1].timeline.start_ns, LIGHT, "")
    spans_s = np.diff(report.over_time.edges_ns) / 1e9
    waited_s = sum(float(np.dot(bar.y, spans_s)) for bar in figure.data)
    assert waited_s == pytest.approx(report.waiting_ns / 1e9)
    assert [bar.name for bar in figure.data] == [
        cause.words for cause, ns in causes_ns(report.by_kind).items() if ns
    ]
    heights = np.sum([bar.y for bar in figure.data], axis=0)
    assert heights.max() <= runs[1].timeline.num_requests + 1e-9
    patterns = {bar.name: bar.marker.pattern.shape for bar in figure.data}
    assert patterns["own decode"] is None
    assert patterns["others' prefill"] == "/"


def test_causes_that_never_happened_are_not_drawn_and_nothing_says_why() -> None:
    nothing = CausesOverTime(np.array([0, 10, 20]), np.zeros((2, len(PartKind)), dtype=np.int64))
    figure = causes_figure(nothing, 0, LIGHT, "nobody waited")
    assert not figure.data
    assert figure.layout.annotations[0].text == "nobody waited"
    every = CausesOverTime(np.array([0, 10]), np.arange(len(PartKind))[None, :] + 1)
    assert sum(int(waited.sum()) for waited in cause_sums(every).values()) == every.waiting_ns.sum()
    assert len(causes_figure(every, 0, LIGHT, "").data) == len(CAUSES)


def test_the_bar_says_zero_of_what_did_not_happen_and_of_nothing_else() -> None:
    told = words(cause_bar({PartKind.OWN_DECODE: 3 * MS, PartKind.SIT_OUT: MS}))
    assert "own decode 3.0 ms (75 %)" in told
    assert "no KV 1.0 ms (25 %)" in told
    assert "mixed extra 0" in told
    assert "idle" not in told


def group(late_ms: int, lost_ms: int, rid: int = 0) -> StallGroup:
    return StallGroup(
        start_ns=late_ms,
        end_ns=late_ms + late_ms * MS,
        own_forward_id=late_ms,
        cause=PartKind.OTHERS_PREFILL,
        rids=(rid, rid + 1),
        names=(f"r{rid}", "<b>"),
        token_index=3,
        gap_ns=late_ms * MS,
        late_ns=late_ms * MS,
        lost_ns=lost_ms * MS,
        by_kind={PartKind.OTHERS_PREFILL: late_ms * MS},
        culprits=(),
    )


def test_the_worst_stalls_are_sorted_as_asked_and_rows_and_rest_sum_to_all(runs: tuple[Run, ...]) -> None:
    groups = tuple(group(30 - i, i, rid=2 * i) for i in range(MOST_ROWS + 2))
    report = replace(
        runs[0].timeline.stall_report, groups=groups, late_ns=sum(each.lost_ns for each in groups)
    )
    by_late, by_lost = (worst_table(runs[0], report, None, order) for order in ("late", "lost"))
    assert [data_of(row, "ns") for row in rows(by_late)] == [i * MS for i in range(MOST_ROWS)]
    assert [data_of(row, "ns") for row in rows(by_lost)][:2] == [(MOST_ROWS + 1) * MS, MOST_ROWS * MS]
    for table in (by_late, by_lost):
        assert sum_ns(table) + sum(rests(table)) == report.late_ns
    assert "All other late tokens lost 25.0 ms together." in words(by_late)
    assert not rests(worst_table(runs[0], replace(report, late_ns=sum_ns(by_late)), None, "late"))
    sorts = {data_of(part, "sort") for part in walk(by_late) if hasattr(part, "data-sort")}
    assert sorts == {"late", "lost"}
    assert "r0, <b>" in words(by_late)


def rests(table: object) -> list[int]:
    return [data_of(part, "rest") for part in walk(table) if hasattr(part, "data-rest")]


def test_the_row_of_the_chosen_gap_is_marked(runs: tuple[Run, ...]) -> None:
    run, gap = runs[1], worst(runs[1])
    table = worst_table(run, run.timeline.stall_report, gap, "late")
    marked = [row for row in rows(table) if getattr(row, "className", None) == "selected"]
    assert len(marked) == 1
    chosen = run.timeline.gap(data_of(marked[0], "rid"), data_of(marked[0], "tok"))
    assert chosen is not None
    assert (chosen.start_ns, chosen.own_forward_id) == (gap.start_ns, gap.own_forward_id)


def test_victims_and_culprits_hold_what_the_report_holds(runs: tuple[Run, ...]) -> None:
    run = runs[1]
    report = run.timeline.stall_report
    victims = victims_table(replace(report, victims=report.victims[:3]))
    assert sum_ns(victims) == sum(victim.late_ns for victim in report.victims[:3])
    assert sum_ns(victims) + sum(rests(victims)) == report.late_ns
    assert sum_ns(culprits_table(run, report)) == sum(c.cost_ns for c in report.culprits[:MOST_ROWS])
    costs = chunks_table(run, report)
    assert sum_ns(costs) == sum(c.cost_ns for c in report.chunks[:MOST_ROWS])
    starts = [query(link)["t"] for link in links(costs)]
    wanted = [run.timeline.start_of_forward(chunk.forward_id) for chunk in report.chunks[:MOST_ROWS]]
    assert starts == [start - run.timeline.start_ns for start in wanted if start is not None]
    innocent = replace(report, culprits=(), chunks=())
    assert "No request's chunks" in words(culprits_table(run, innocent))
    assert "No chunk" in words(chunks_table(run, innocent))


@pytest.mark.parametrize("index", range(3))
def test_the_chosen_gap_is_shown_whole(runs: tuple[Run, ...], index: int) -> None:
    run, gap = runs[index], worst(runs[index])
    parts = gap_parts(run, gap, "late")
    ledger = rows(parts["ledger"])
    assert sum(data_of(row, "ns") for row in ledger if not is_total(row)) == gap.gap_ns
    charged = sum(culprit.device_ns for culprit in gap.culprits)
    assert sum_ns(parts["chunks"]) == sum(chunk.in_gap_ns for chunk in merged_chunks(gap)) == charged
    assert f"token {gap.token_index}" in words(parts["ledger"])
    assert parts["why"]
    assert {query(link)["tok"] for link in links(parts["chunks"])} == {gap.token_index}


def test_without_a_gap_there_is_the_list_to_choose_from(runs: tuple[Run, ...]) -> None:
    parts = gap_parts(runs[1], None, "late")
    assert "No gap is chosen" in words(parts["ledger"])
    assert rows(parts["worst"])
    assert parts["chunks"] == ""


def test_a_chunk_stands_once_with_all_that_it_took(runs: tuple[Run, ...]) -> None:
    gap = worst(runs[1])
    doubled = replace(gap, chunks=(*gap.chunks, *gap.chunks))
    assert len(merged_chunks(doubled)) == len(gap.chunks)
    assert [chunk.in_gap_ns for chunk in merged_chunks(doubled)] == [2 * c.in_gap_ns for c in gap.chunks]


def test_a_run_without_gaps_says_so_and_hides_the_rest(runs: tuple[Run, ...]) -> None:
    parts = report_parts(runs[3], LIGHT)
    assert parts["answer"] == "No request gave two tokens, so nobody waited between tokens."
    assert parts["gaps"] is True
    assert "forward" in str(parts["said"])
    assert set(parts) == set(REPORT_PARTS)


def test_heads_of_numbers_name_their_entries(runs: tuple[Run, ...], timelines: list[Timeline]) -> None:
    run = runs[1]
    totals, ledgers = TtftOf()(run)
    parts = [
        stalls.layout(timelines, "light", read_view("", runs)[0]),
        *report_parts(run, LIGHT).values(),
        *gap_parts(run, worst(run), "late").values(),
        *ttft_parts(run, totals, ledgers).values(),
    ]
    heads: list[Any] = [part for part in walk(parts) if getattr(part, "scope", None) == "col"]
    assert len(heads) > 30
    for each in heads:
        key = getattr(each, "data-metric", None)
        if key is None:
            assert each.className == "names"
        else:
            assert each.title == explained(key)
    keys = {getattr(part, "data-metric", None) for part in walk(parts)} - {None}
    assert keys <= set(ENTRIES)


def test_spans_are_counted_from_the_start_of_the_run(runs: tuple[Run, ...]) -> None:
    report = runs[0].timeline.stall_report
    first = span_rows(spans_table(runs[0], report.over_time))[0]
    since_s = (int(report.over_time.edges_ns[0]) - runs[0].timeline.start_ns) / 1e9
    assert words(first.children[0]) == f"{since_s:,.3f} s"
