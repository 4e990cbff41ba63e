"""The Overview page: its numbers are the ledger's, its lines lead on, and what it says of little."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import dash
import pytest
from dash import html

from profiler.findings import Finding, FindingKind, Severity
from profiler.invariants.report import CheckReport, RuleResult, Status
from profiler.ledger.parts import GapDetail
from profiler.overview import overview
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.dash_parts import data_of, links, rows, walk, words
from tests.support.rewritten import rewrite
from tests.support.three_runs import record_three_runs
from ui.metric_entries import ENTRIES, explained
from ui.palette import THEMES
from ui.part_words import cause_of, causes_ns
from ui.stall_words import culprit_shares, names_words
from ui.web.app import create_app
from ui.web.checks import Check, Checks
from ui.web.pages import overview as page
from ui.web.pages.overview_findings import finding_list, findings_words
from ui.web.pages.overview_options import with_options
from ui.web.pages.overview_provenance import check_words, provenance_rows
from ui.web.pages.overview_stalls import MOST_ROWS, stall_rows, stall_table
from ui.web.pages.overview_tiles import tiles
from ui.web.pages.overview_view import PARTS, parts_of
from ui.web.pages.saturation_evidence import EvidenceOf
from ui.web.runs import Run, make_runs
from ui.web.urls import read_view
from ui.words import seconds

LIGHT = THEMES["light"]
TABLES = ("forwards", "rows", "requests", "events", "pages", "kernels")
FINDING = Finding(
    kind=FindingKind.PREFILL_FIRST_STARVATION,
    severity=Severity.BAD,
    title="Prefill-first starvation",
    sentence="6 decodes emitted nothing while <b>r7</b> prefilled.",
    evidence="23 prefill forwards in a row",
    numbers={},
    threshold=("starvation_forwards", 8),
    forward_ids=(3,),
    rids=(),
    mend="With --enable-mixed-chunk decodes ride along.",
    option=("--enable-mixed-chunk",),
    at_ns=None,
    lost_ns=None,
)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return record_three_runs(tmp_path_factory.mktemp("overview"))


@pytest.fixture(scope="module")
def timelines(paths: dict[str, Path]) -> list[Timeline]:
    return [open_timeline(paths[name]) for name in ("chunked", "mixed")]


@pytest.fixture(scope="module")
def runs(timelines: list[Timeline]) -> tuple[Run, ...]:
    return make_runs(timelines)


def worst(run: Run) -> GapDetail:
    gap = run.timeline.worst_gap()
    assert gap is not None
    return gap


def marked(table: Any) -> list[Any]:
    return [row for row in rows(table) if getattr(row, "aria-current", None)]


@pytest.mark.parametrize("index", [0, 1])
def test_the_worst_stalls_are_the_ledgers(runs: tuple[Run, ...], index: int) -> None:
    run = runs[index]
    report = run.timeline.stall_report
    groups = stall_rows(report)
    assert groups == report.groups[: len(groups)]
    assert 0 < len(groups) <= MOST_ROWS
    shown = rows(stall_table(run, report, None))
    assert [(data_of(row, "ns"), data_of(row, "lost")) for row in shown] == [
        (group.late_ns, group.lost_ns) for group in groups
    ]
    for row, group in zip(shown, groups, strict=True):
        assert words(row.children[0]).split("  ")[0] == names_words(group.names)
        assert words(row.children[1]) == f"{(group.start_ns - run.timeline.start_ns) / 1e9:,.3f} s"
        assert float(words(row.children[3]).split()[0].replace(",", "")) == pytest.approx(
            group.late_ns / 1e6, abs=0.5
        )
        assert cause_of(group.cause).words in words(row.children[5])
        assert words(row.children[6]) == culprit_shares(group)


def test_the_waiting_is_the_ledgers_sum_beside_the_longest_wait(runs: tuple[Run, ...]) -> None:
    report = runs[0].timeline.stall_report
    parts: Any = parts_of(runs[0], None, LIGHT)
    shown = [data_of(item, "ns") for item in walk(parts["waiting"]) if isinstance(item, html.Li)]
    assert sum(shown) == report.waiting_ns
    assert set(shown) == {ns for ns in causes_ns(report.by_kind).values() if ns} | {0}
    note = words(parts["waiting-note"])
    assert f"all {report.gaps:,} gaps, {seconds(report.waiting_ns / 1e9)} of waiting in sum" in note
    assert report.longest is not None
    assert note.endswith(f"the longest is {seconds(report.longest.gap_ns / 1e9)}")


def test_tiles_stand_in_order_and_say_what_the_run_has(runs: tuple[Run, ...]) -> None:
    told = overview(runs[0].timeline)
    shown = tiles(told)
    assert [words(tile.children[0]) for tile in shown] == [
        *("TTFT, longest", "ITL, longest", "Output throughput"),
        *("Queue, longest wait", "KV pages, peak use", "Budget fill, prefill forwards"),
    ]
    values = [words(tile.children[1]).replace("  ", " ") for tile in shown]
    assert values[0] == seconds(told.kpis.ttft_s.max)
    assert values[1] == seconds(told.kpis.itl_s.max)
    assert values[3] == seconds(told.kpis.queue_longest_s)
    assert f"p50 {seconds(told.kpis.itl_s.p50)} · p99 {seconds(told.kpis.itl_s.p99)}" in words(shown[1])
    assert "decode-1–decode-6" in words(shown[1])
    assert "long-1, prompt of 1,200" in words(shown[0])
    assert "short-1, behind long-1" in words(shown[3])
    assert shown[1].children[1].className == "late"
    assert all(data_of(tile, "metric") in ENTRIES for tile in shown)


def test_the_answer_names_effect_cause_and_option(runs: tuple[Run, ...]) -> None:
    parts: Any = parts_of(runs[0], None, LIGHT)
    gap = worst(runs[0])
    assert parts["answer"] == (
        f"Decodes stop for up to {seconds(gap.gap_ns / 1e9)}, because prefill always goes first."
    )
    cause = words(parts["cause"])
    assert f"{gap.name} waited {seconds(gap.gap_ns / 1e9)}" in cause
    assert "as did decode-2–decode-6" in cause
    assert "--enable-mixed-chunk" in cause


def test_every_number_names_its_entry(runs: tuple[Run, ...]) -> None:
    table = stall_table(runs[0], runs[0].timeline.stall_report, None)
    heads = [part for part in walk(table) if hasattr(part, "data-metric")]
    assert len(heads) == 5
    assert all(head.title == explained(data_of(head, "metric")) for head in heads)
    view, _ = read_view("", runs)
    whole = page.layout([run.timeline for run in runs], "light", view)
    labels = [part for part in walk(whole) if hasattr(part, "data-metric")]
    assert {data_of(label, "metric") for label in labels} <= set(ENTRIES)


def test_the_row_of_the_chosen_gap_is_marked_whoever_of_its_group_it_is(runs: tuple[Run, ...]) -> None:
    report = runs[0].timeline.stall_report
    first, second = stall_rows(report)[:2]
    gap = runs[0].timeline.gap(second.rids[-1], second.token_index)
    for chosen, group in ((None, first), (gap, second)):
        [row] = marked(stall_table(runs[0], report, chosen))
        assert data_of(row, "gap") == f"{group.rids[0]},{group.token_index}"


def test_a_stall_leads_to_its_ledger_and_its_culprit_to_the_costliest_chunk(runs: tuple[Run, ...]) -> None:
    report = runs[0].timeline.stall_report
    for row, group in zip(rows(stall_table(runs[0], report, None)), stall_rows(report), strict=True):
        ledger, instant = links(row)
        gap = runs[0].timeline.gap(group.rids[0], group.token_index)
        for link, path in ((ledger, "/stalls"), (instant, "/compare")):
            address = urlsplit(link.href)
            assert address.path == path
            view, notices = read_view(address.query, runs)
            assert (view.run, view.gap, notices) == (0, gap, [])
        assert gap is not None
        assert gap.costliest is not None
        view, _ = read_view(urlsplit(instant.href).query, runs)
        assert view.t == gap.costliest.start_ns - runs[0].timeline.start_ns


def test_findings_say_glyph_evidence_and_where_to_look(runs: tuple[Run, ...]) -> None:
    run, gap = runs[0], worst(runs[0])
    seen = replace(FINDING, rids=(gap.rid,), at_ns=gap.start_ns + 1)
    size = replace(FINDING, kind=FindingKind.CHUNK_SIZE, severity=Severity.FINE, mend=None)
    found = finding_list(run, [seen, replace(seen, severity=Severity.WATCH), size])
    items = [part for part in walk(found) if isinstance(part, html.Li)]
    assert [words(item.children[0]) for item in items] == ["✕", "▲", "✓"]
    assert "<b>r7</b>" in words(items[0])  # a name is text
    assert "23 prefill forwards in a row" in words(items[0])
    assert ["ride along" in words(item) for item in items] == [True, False, False]  # said once
    [instant] = links(items[0])
    query = {key: int(values[0]) for key, values in parse_qs(urlsplit(instant.href).query).items()}
    assert (query["run"], query["rid"], query["tok"]) == (0, gap.rid, gap.token_index)
    assert query["t"] == gap.start_ns + 1 - run.timeline.start_ns
    assert [link.href for link in links(items[2])] == ["/saturation?sat=0"]
    assert words(finding_list(run, [])) == "Nothing passes its threshold."
    assert [findings_words(each) for each in ((), (size,), (seen, size))] == [
        *("none", "1", "2, ordered by decode time lost"),
    ]


def test_an_instant_without_a_gap_is_shown_as_such(runs: tuple[Run, ...]) -> None:
    [link] = links(finding_list(runs[0], [replace(FINDING, at_ns=runs[0].timeline.start_ns)]))
    assert "rid" not in parse_qs(urlsplit(link.href).query)


def test_options_are_code() -> None:
    pieces = with_options("Take --chunked-prefill-size 512 --enable-mixed-chunk: less - or -- more.")
    assert [piece.children for piece in pieces if isinstance(piece, html.Code)] == [
        *("--chunked-prefill-size 512", "--enable-mixed-chunk"),
    ]
    text = "".join(str(piece.children) if isinstance(piece, html.Code) else str(piece) for piece in pieces)
    assert text == "Take --chunked-prefill-size 512 --enable-mixed-chunk: less - or -- more."


def rule(name: str, status: Status) -> RuleResult:
    return RuleResult(name, "what it asks", status, 3, 0)


def test_checks_count_rules_that_hold() -> None:
    held = CheckReport((rule("a_b", Status.HELD), rule("c", Status.NOT_CHECKABLE)), 0, True)
    broken = CheckReport((rule("a_b", Status.VIOLATED), rule("c", Status.HELD)), 0, True)
    none = CheckReport((rule("c", Status.NOT_CHECKABLE),), 0, True)
    assert words(check_words(Check(0.0, held))) == "✓ 1 of 1 invariants hold  · 1 not checkable"
    assert words(check_words(Check(0.0, broken))) == "✕ 1 of 2 invariants violated: a b"
    assert words(check_words(Check(0.0, none))) == "no invariant can be checked"
    assert words(check_words(Check(0.0, error="unreadable"))) == "✕ unreadable"
    assert "so far" in words(check_words(Check(0.0)))


def test_the_source_is_named(runs: tuple[Run, ...]) -> None:
    told = words(provenance_rows(runs[0].timeline, overview(runs[0].timeline)))
    assert "simulated : real scheduler, cost model of unknown hardware, virtual clock" in told
    assert "kernels missing" in told


def test_a_trace_of_forwards_alone_says_what_it_lacks(paths: dict[str, Path], tmp_path: Path) -> None:
    lacking = open_timeline(rewrite(paths["chunked"], tmp_path / "lacking.chunkscope", without=TABLES[1:]))
    [run] = make_runs([lacking])
    parts: Any = parts_of(run, None, LIGHT)
    assert parts["answer"] == "No token is recorded, so who waited for whom is not known."
    assert "no first token is recorded" in words(parts["tiles"])
    assert words(parts["stalls"]) == "No gap is recorded."
    assert words(parts["waiting-note"]) == "no request gave two tokens"
    assert "rows, requests, kernels, events, pages missing" in words(parts["source"])
    assert len(parts["glance"].data) == 2


def test_an_empty_trace_has_a_page(paths: dict[str, Path], tmp_path: Path) -> None:
    [run] = make_runs([open_timeline(rewrite(paths["chunked"], tmp_path / "no.chunkscope", without=TABLES))])
    parts: Any = parts_of(run, None, LIGHT)
    assert parts["answer"] == "The trace holds no forward."
    assert parts["glance"].layout.annotations[0].text == "no forward has a time"


def test_one_run_opens_with_overview_and_several_with_compare(timelines: list[Timeline]) -> None:
    one = create_app(timelines[:1]).server.test_client().get("/?theme=dark")
    assert (one.status_code, one.location) == (302, "/overview?theme=dark")
    assert create_app(timelines).server.test_client().get("/").status_code == 200


def test_a_run_is_drawn_once_and_anew_when_it_grew(timelines: list[Timeline]) -> None:
    app = dash.Dash(__name__)
    page.register(app, timelines, threading.Lock(), EvidenceOf(timelines), Checks())
    [fill] = [
        callback["callback"].__wrapped__
        for key, callback in app.callback_map.items()
        if "overview-answer" in key
    ]
    asked = {"run": 0, "rid": None, "tok": None}
    drawn = fill(0, "light", None, asked, None)
    assert set(drawn) == {*PARTS, "drawn"}
    again = fill(0, "light", 1, asked, drawn["drawn"])
    assert set(again.values()) == {dash.no_update}
    assert fill(1, "light", 1, asked, drawn["drawn"])["drawn"]["run"] == 1
