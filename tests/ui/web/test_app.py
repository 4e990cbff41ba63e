"""The web application without a browser: routes, addresses, panels and their words."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from profiler.compare import CHUNKED, MIXED, WHOLE
from profiler.ledger.lines import ledger_lines
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.rewritten import rewrite
from tests.support.silent_tables import silent_tables
from tests.support.sound_trace import META
from tests.support.three_runs import record_three_runs
from tests.support.traces import decode_row
from traces.errors import TraceError
from traces.writer import TraceWriter
from ui.metric_entries import explained, state_entry
from ui.state_words import state_lines
from ui.web.answer import answer
from ui.web.app import create_app
from ui.web.checks import Checks
from ui.web.gap_panel import gap_panel
from ui.web.guards import LOOPBACK
from ui.web.kpi_table import kpi_table
from ui.web.live import Follower
from ui.web.names import shown
from ui.web.pages.trace import headline
from ui.web.runs import Status, badge, compared, make_runs, status
from ui.web.sums_panel import sums_panel
from ui.web.trace_facts import facts, table_facts
from ui.web.urls import read_view

POLICIES = (WHOLE, CHUNKED, MIXED)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return record_three_runs(tmp_path_factory.mktemp("three-runs"))


@pytest.fixture(scope="module")
def timelines(paths: dict[str, Path]) -> list[Timeline]:
    return [open_timeline(paths[name]) for name in (*POLICIES, "sweep")]


@pytest.fixture(scope="module")
def client(timelines: list[Timeline]) -> FlaskClient:
    return create_app(timelines, hosts=LOOPBACK).server.test_client()


def texts(component: Any) -> str:
    """All text of a component, in order."""
    if component is None or isinstance(component, str | int | float):
        return "" if component is None else str(component)
    if isinstance(component, Sequence):
        return " ".join(texts(child) for child in component)
    return texts(getattr(component, "children", None))


@pytest.mark.parametrize(
    "path", ["/", "/overview", "/compare", "/stalls", "/saturation", "/trace", "/compare?theme=dark"]
)
def test_pages_are_served(client: FlaskClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert "http://" not in response.text
    assert "https://" not in response.text
    assert ('data-theme="dark"' in response.text.split("<head>")[0]) == path.endswith("dark")


def test_the_trace_page_names_the_one_rank_and_tables_that_should_not_be_empty(
    timelines: list[Timeline], paths: dict[str, Path], tmp_path: Path
) -> None:
    whole = timelines[0]
    assert ("rank", "0") in facts(whole)[0][1]
    assert headline(make_runs(timelines)[0], table_facts(whole)).endswith(" forwards.")
    without = ("rows", "requests", "events", "pages", "kernels")
    lacking = open_timeline(rewrite(paths[CHUNKED], tmp_path / "lacking.chunkscope", without=without))
    [run] = make_runs([lacking])
    assert headline(run, table_facts(lacking)).endswith("; empty tables: rows, requests, pages.")


@pytest.mark.parametrize("path", ["/nowhere", "/compare/more", "/%3Cscript%3E"])
def test_an_unknown_page_is_a_clear_404(client: FlaskClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 404
    assert "There is no page" in response.text
    assert "<script" not in response.text


def test_an_unknown_route_is_answered_in_json(client: FlaskClient) -> None:
    response = client.get("/api/nothing")
    assert response.status_code == 404
    assert "nothing at /api/nothing" in response.json["error"]


def test_a_foreign_host_name_is_refused(client: FlaskClient) -> None:
    assert client.get("/compare", headers={"Host": "evil.example:8050"}).status_code == 403
    assert client.get("/compare", headers={"Host": "localhost:8050"}).status_code == 200
    assert client.get("/compare", headers={"Host": "[::1]:8050"}).status_code == 200


@pytest.mark.parametrize("body", [None, [], {}, {"x": 1}, {"output": "a", "inputs": []}])
def test_a_post_that_is_no_request_of_the_pages_is_refused(client: FlaskClient, body: Any) -> None:
    answer = client.post("/_dash-update-component", json=body)
    assert answer.status_code == 400
    assert "no request of these pages" in answer.json["error"]


def test_the_state_is_what_replay_says(client: FlaskClient, timelines: list[Timeline]) -> None:
    timeline = timelines[1]
    for t in (0, 60_000_000, (timeline.end_ns - timeline.start_ns) // 2, 10**15):
        answered = client.get(f"/api/state/1?t={t}").json
        told = state_lines(timeline.state_at(timeline.start_ns + t))
        lines = [[*line, explained(state_entry(line[0]))] for line in told]
        assert answered == {"t": t, "lines": lines}


@pytest.mark.parametrize(
    ("path", "code", "named"),
    [
        ("/api/state/1", 400, "t is missing"),
        ("/api/state/1?t=NaN", 400, "t=NaN"),
        ("/api/state/1?t=1e400", 400, "t=1e400"),
        ("/api/state/9?t=0", 404, "no run 9"),
        ("/api/state/x?t=0", 404, "nothing at"),
        ("/api/jump/0?rid=-1", 400, "rid=-1"),
        ("/api/jump/0", 400, "rid is missing"),
        ("/api/jump/0?forward=zero", 400, "forward=zero"),
    ],
)
def test_bad_queries_get_one_line(client: FlaskClient, path: str, code: int, named: str) -> None:
    response = client.get(path)
    assert response.status_code == code
    assert named in response.json["error"]
    assert "\n" not in response.json["error"]


def test_jumps_go_to_forwards_and_longest_gaps(client: FlaskClient, timelines: list[Timeline]) -> None:
    worst = timelines[0].worst_gap()
    assert worst is not None
    place = client.get(f"/api/jump/0?rid={worst.rid}").json
    assert (place["rid"], place["tok"], place["end"] - place["start"]) == (
        worst.rid,
        worst.token_index,
        worst.gap_ns,
    )
    assert client.get("/api/jump/0?rid=4000").json is None
    assert client.get("/api/jump/0?forward=4000000").json is None
    assert (
        client.get("/api/jump/0?forward=3").json["t"]
        == timelines[0].start_of_forward(3) - timelines[0].start_ns
    )


def test_runs_are_named_by_policy_and_differ_by_options(timelines: list[Timeline]) -> None:
    runs = make_runs(timelines)
    assert [run.heading for run in runs] == ["A Whole prompt", "B Chunked", "C Chunked + mixed", "D sweep"]
    assert [run.options for run in runs[:3]] == [
        "--chunked-prefill-size -1",
        "--chunked-prefill-size 128",
        "--chunked-prefill-size 128 --enable-mixed-chunk",
    ]
    assert [run.letter for run in compared(runs)] == ["A", "B", "C"]
    assert compared(runs[3:]) == runs[3:]
    assert badge(runs) == "simulated"


def test_the_worst_gap_of_the_worst_run_is_chosen(timelines: list[Timeline]) -> None:
    view, notices = read_view("", make_runs(timelines))
    gaps = [timeline.worst_gap() for timeline in timelines[:3]]
    assert view.gap is not None
    assert view.gap.gap_ns == max(gap.gap_ns for gap in gaps if gap is not None)
    assert view.gap.costliest is not None
    assert view.t == view.gap.costliest.start_ns - timelines[view.run].start_ns
    assert notices == []


def test_a_gap_too_narrow_to_see_is_shown_by_its_surroundings(timelines: list[Timeline]) -> None:
    runs = make_runs(timelines)
    longest = max(timeline.end_ns - timeline.start_ns for timeline in timelines[:3])
    wide, _ = read_view("", runs)
    assert (wide.t0, wide.t1) == (0, longest)
    least = timelines[0].stalls.sort("gap_ns").row(0, named=True)
    assert least["gap_ns"] < 0.02 * longest
    narrow, _ = read_view(f"?run=0&rid={least['rid']}&tok={least['token_index']}", runs)
    start_ns, end_ns = (least[key] - timelines[0].start_ns for key in ("start_ns", "end_ns"))
    assert narrow.t0 < start_ns < end_ns < narrow.t1
    assert narrow.t1 - narrow.t0 <= 12 * least["gap_ns"]


def test_a_good_address_is_taken_as_it_is(timelines: list[Timeline]) -> None:
    gap = timelines[1].worst_gap()
    assert gap is not None
    view, notices = read_view(
        f"?t0=5&t1=900&t=7&run=1&rid={gap.rid}&tok={gap.token_index}&sel=6-8&sat=2", make_runs(timelines)
    )
    assert (view.t0, view.t1, view.t, view.run, view.selection) == (5, 900, 7, 1, (6, 8))
    assert view.gap == gap
    assert notices == []


@pytest.mark.parametrize(
    "search",
    [
        "t0=abc",
        "t0=9&t1=9",
        f"t0={10**17}",
        "t=-1",
        "t=1e9",
        "t=%F0%9F",
        "t0=5&t1=3",
        "run=7",
        "run=",
        "rid=x&tok=1",
        "rid=1&tok=0",
        "sel=3-",
        "sel=8-8",
        "theme=blue",
    ],
)
def test_each_bad_value_has_one_notice_and_the_default(timelines: list[Timeline], search: str) -> None:
    runs = make_runs(timelines)
    view, notices = read_view(f"?{search}", runs)
    assert len(notices) == 1
    assert search.split("=")[0] in notices[0]
    assert view == read_view("", runs)[0]


def test_too_many_parameters_are_refused_in_one_line(timelines: list[Timeline]) -> None:
    search = "&".join(f"x{i}=1" for i in range(1000))
    assert "more than 32 parameters" in read_view(search, make_runs(timelines))[1][0]


def test_the_answer_compares_the_demos_policies(timelines: list[Timeline]) -> None:
    said = answer(make_runs(timelines))
    assert said.effect.startswith("Mixing cuts the longest silence from ")
    assert "Chunking alone" in said.effect
    assert "prefill forwards of others" in said.cause
    assert any("--enable-mixed-chunk" in line for line in said.more)


def test_the_answer_of_one_run_is_its_longest_gap(timelines: list[Timeline]) -> None:
    gap = timelines[1].worst_gap()
    said = answer(make_runs(timelines[1:2]))
    assert gap is not None
    assert said.effect.startswith(f"{gap.name} waited ")
    assert gap.culprits[0].name in said.cause


def test_the_answer_is_a_silence_that_has_not_ended_where_it_is_the_longest(tmp_path: Path) -> None:
    tables = silent_tables()

    def said(path: Path) -> tuple[str, str]:
        with TraceWriter(path, {key: value for key, value in META.items() if key != "sealed"}) as writer:
            for table, rows in tables.items():
                columns = {key for row in rows for key in row}
                writer.append(table, {key: [row.get(key) for row in rows] for key in columns}, len(rows))
        found = answer(make_runs([open_timeline(path)]))
        return found.effect, found.cause

    assert said(tmp_path / "silent.chunkscope") == (
        "2 decodes are silent at the end, a for 70.0 ms so far.",
        "doc holds the half-done slot in the last forward.",
    )
    tables["requests"][0]["name"] = "b\n"
    tables["forwards"][3]["chunked_rid"] = None
    tables["rows"] = [row for row in tables["rows"] if row["rid"] != 1]
    assert said(tmp_path / "alone.chunkscope") == (
        "b\\n is silent at the end, for 70.0 ms so far.",
        "The next token is not recorded.",
    )
    tables["rows"].append(decode_row(3, 0, 2))
    assert said(tmp_path / "spoken.chunkscope")[0] == "b\\n waited 70.0 ms for its token 2."


def test_the_table_shows_the_longest_gap_before_percentiles(timelines: list[Timeline]) -> None:
    table = texts(kpi_table(make_runs(timelines)[:3]))
    assert table.index("longest ITL") < table.index("ITL p50") < table.index("ITL p99")
    kpis = timelines[0].kpis
    assert f"{kpis.itl_over_200ms} / {kpis.gaps}" in table


def test_lines_of_a_gap_sum_to_it(timelines: list[Timeline]) -> None:
    for timeline in timelines[:3]:
        for row in timeline.stalls.head(20).iter_rows(named=True):
            gap = timeline.gap(row["rid"], row["token_index"])
            assert gap is not None
            lines = ledger_lines(gap)
            assert sum(line.part_ns for line in lines) == gap.gap_ns
            named = [line.name for line in lines if line.name is not None]
            assert list(dict.fromkeys(named)) == [culprit.name for culprit in gap.culprits]


def test_the_panel_of_a_gap_names_culprits_and_the_costliest_chunk(timelines: list[Timeline]) -> None:
    runs = make_runs(timelines)
    gap = timelines[1].worst_gap()
    assert gap is not None
    assert gap.costliest is not None
    panel = texts(gap_panel(runs, runs[1], gap))
    for text in (
        "waited",
        gap.culprits[0].name,
        f"chunk {gap.costliest.number}/{gap.costliest.of}",
        "in each run",
    ):
        assert text in panel
    assert "No gap is chosen" in texts(gap_panel(runs, runs[1], None))


def test_sums_are_the_timelines(timelines: list[Timeline]) -> None:
    panel = texts(sums_panel(make_runs(timelines), (0, 50_000_000)))
    sums = timelines[0].sums(timelines[0].start_ns, timelines[0].start_ns + 50_000_000)
    assert f"forwards {sums.forwards:,} " in panel
    assert sums_panel(make_runs(timelines), None) == []


def test_checks_run_once_in_the_background(timelines: list[Timeline]) -> None:
    checks = Checks()
    check = checks.ask(timelines[0])
    for thread in threading.enumerate():
        if thread.daemon and thread.name.startswith("Thread"):
            thread.join(20)
    assert checks.ask(timelines[0]) is check
    assert check.report is not None
    assert check.report.ok


def test_a_trace_without_rows_or_forwards_has_words(paths: dict[str, Path], tmp_path: Path) -> None:
    tables = ("forwards", "rows", "requests", "events", "pages", "kernels")
    nothing = open_timeline(rewrite(paths["chunked"], tmp_path / "nothing.chunkscope", without=tables))
    runs = make_runs([nothing])
    assert answer(runs).effect == "The trace holds no forward."
    assert "–" in texts(kpi_table(runs))
    bare = open_timeline(rewrite(paths["chunked"], tmp_path / "bare.chunkscope", without=tables[1:]))
    assert answer(make_runs([bare])).effect == "No token is recorded, so who waited for whom is not known."


def test_names_are_cut_and_isolated() -> None:
    assert shown("n" * 10_240) == "n" * 47 + "…"
    assert shown("a\x1b[31m\u202eb") == "a\\x1b[31m\\u202eb"
    assert shown("שלום") == "\u2068שלום\u2069"
    assert shown("long-1") == "long-1"


def test_a_growing_trace_is_followed_to_its_end(tmp_path: Path) -> None:
    now = [0.0]
    writer = TraceWriter(tmp_path / "t.chunkscope", {"provenance": "measured"})
    timeline = open_timeline(writer.path)
    runs = make_runs([timeline])
    follower = Follower(runs, clock=lambda: now[0])
    assert status(timeline) is Status.LIVE
    forward = {"forward_id": 0, "mode": 1, "plan_start_ns": 0, "plan_end_ns": 1}
    writer.append("forwards", {**forward, "start_ns": 2, "end_ns": 3, "result_end_ns": 4}, 1)
    follower.poll()
    assert (follower.version, timeline.num_forwards) == (1, 1)
    follower.poll()
    assert follower.version == 1
    writer.close()
    now[0] += 0.5
    follower.poll()
    assert follower.states == [Status.LIVE]  # asked too soon
    now[0] += 0.5
    follower.poll()
    assert (follower.version, follower.states) == (2, [Status.ENDED])


def test_a_trace_found_damaged_is_one_line(
    timelines: list[Timeline], client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(t_ns: int) -> None:
        raise TraceError("t.chunkscope/rank-0/forwards.arrow: batch 0: checksum mismatch")

    monkeypatch.setattr(timelines[0], "state_at", damaged)
    response = client.get("/api/state/0?t=0")
    assert response.status_code == 500
    assert response.json == {"error": "t.chunkscope/rank-0/forwards.arrow: batch 0: checksum mismatch"}


def test_a_trace_found_damaged_is_a_notice_of_the_page(
    timelines: list[Timeline], client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged() -> None:
        raise TraceError("t.chunkscope: corrupt trace")

    monkeypatch.setattr(timelines[0], "worst_gap", damaged)
    parts = ("page.children", "view.data", "notices.children", "gap-panel.children", "sums-panel.children")
    route = {"path": "/compare", "search": "", "theme": "light"}
    response = client.post(
        "/_dash-update-component",
        json={
            "output": f"..{'...'.join(parts)}..",
            "outputs": [dict(zip(("id", "property"), part.split("."), strict=True)) for part in parts],
            "inputs": [{"id": "route", "property": "data", "value": route}],
            "changedPropIds": ["route.data"],
        },
    )
    notices = response.json["sideUpdate"]["notices"]["children"]
    assert [line["props"]["children"] for line in notices] == ["t.chunkscope: corrupt trace"]
