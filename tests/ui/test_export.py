from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from engine.batch import ForwardMode, Outcome, Role
from profiler.export.picture import draw
from profiler.tables import frame
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.chrome import Chrome, assert_nested, nanoseconds, read_chrome
from tests.support.cli import call, refused
from tests.support.three_runs import record_three_runs
from tests.support.traces import decode_row, extend_row, forward, request
from traces.chrome import write_chrome
from traces.drawing import Item, Slice, Track
from traces.writer import TraceWriter

SUMS = ("extend_tokens", "decode_tokens", "prefix_tokens", "kv_tokens", "running_reqs", "waiting_reqs")
Capture = pytest.CaptureFixture[str]
RUNS = ("whole", "chunked", "mixed")
HOSTILE = ["<b>&\"'", "[red]x[/]", "\x1b]0;t\x07\n", "\u202eabc", "é" * 10_000]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return record_three_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module", params=RUNS)
def timeline(request: pytest.FixtureRequest, runs: dict[str, Path]) -> Timeline:
    return open_timeline(runs[request.param])


@pytest.fixture(scope="module")
def chrome(timeline: Timeline, tmp_path_factory: pytest.TempPathFactory) -> Chrome:
    path = tmp_path_factory.mktemp("chrome") / "t.json"
    write_chrome(path, draw(timeline, timeline.start_ns, timeline.end_ns), {"provenance": "simulated"})
    return read_chrome(path)


def exported(capfd: Capture, trace: Path, output: Path, *options: object) -> Chrome:
    done = call(capfd, "export", "chrome", trace, "-o", output, *options)
    assert (done.code, done.out) == (0, ""), done.err
    chrome = read_chrome(output)
    assert f"{len(chrome.events):,} events" in done.err
    assert [file.name for file in output.parent.iterdir()] == [output.name]
    return chrome


def interval(event: Any) -> tuple[int, int]:
    return nanoseconds(event["ts"]), nanoseconds(event["ts"] + event["dur"])


def test_every_forward_is_drawn_once_over_its_device_interval(timeline: Timeline, chrome: Chrome) -> None:
    drawn = {e["args"]["forward_id"]: e for e in chrome.slices_on("forwards")}
    forwards = frame(timeline.trace, "forwards").rows(named=True)
    assert len(chrome.slices_on("forwards")) == len(drawn) == len(forwards)
    for row in forwards:
        event = drawn[row["forward_id"]]
        args = event["args"]
        assert interval(event) == (row["start_ns"], row["end_ns"])
        assert {name: args[name] for name in SUMS} == {name: row[name] for name in SUMS}
        flops = sum(value for name, value in row.items() if name.startswith("flops_"))
        moved = sum(row[f"bytes_{name}"] for name in ("weights", "kv_read", "kv_write", "activation"))
        assert (args["flops"], args["bytes"]) == (flops, moved)
        assert float(args["flop_per_byte"]) == pytest.approx(flops / moved)
        assert args["kv_pages"]["free"] == row["pages_free"]
        mode = ForwardMode(row["mode"])
        assert args["mode"] == mode.name
        tokens = [f"{n:,}" for n in (row["extend_tokens"], row["decode_tokens"]) if n]
        assert event["name"] == f"{mode.name} {' + '.join(tokens)}"
        assert ("budgets_tokens" in args) == (row["total_budget_start_tokens"] is not None)


def test_requests_are_tracks_with_every_chunk_and_every_token(timeline: Timeline, chrome: Chrome) -> None:
    rows = frame(timeline.trace, "rows")
    results = dict(frame(timeline.trace, "forwards").select("forward_id", "result_end_ns").iter_rows())
    names = dict(frame(timeline.trace, "requests").select("rid", "name").iter_rows())
    threads = chrome.threads()
    order = {
        threads[e["pid"], e["tid"]]: e["args"]["sort_index"] for e in chrome.of("M", "thread_sort_index")
    }
    by_arrival = frame(timeline.trace, "requests").sort("arrival_ns", "rid")["name"]
    assert sorted(order, key=order.__getitem__) == ["forwards", *by_arrival]
    for rid, name in names.items():
        mine = rows.filter(pl.col("rid") == rid)
        tokens = mine.filter(pl.col("outcome") == Outcome.EMITTED.value)
        chunks = mine.filter(pl.col("role") <= Role.LAST.value)
        drawn = {e["args"]["forward_id"]: e for e in chrome.slices_on(name) if "chunk" in e["name"]}
        assert len(drawn) == len(chunks)
        for number, row in enumerate(chunks.rows(named=True), start=1):
            extent = f"[{row['prefix_len']:,}, {row['seq_len']:,})"
            assert drawn[row["forward_id"]]["name"] == f"chunk {number}/{len(chunks)} {extent}"
        decodes = {e["args"]["forward_id"] for e in chrome.slices_on(name) if e["name"] == "decode"}
        assert decodes == set(tokens.filter(pl.col("role") == Role.DECODE.value)["forward_id"])
        times = {
            e["args"]["token_index"]: nanoseconds(e["ts"])
            for e in chrome.of("i")
            if threads[e["pid"], e["tid"]] == name
        }
        assert times == {r["token_index"]: results[r["forward_id"]] for r in tokens.rows(named=True)}


def test_stalls_are_drawn_by_cause_as_the_timeline_draws_them(timeline: Timeline, chrome: Chrome) -> None:
    first, last = timeline.start_ns, timeline.end_ns
    refs, _ = timeline.lane_refs(first, last, timeline.num_requests)
    for ref in refs:
        lane = timeline.lane(ref.rid, first, last, 10**6)
        for kind, name in ((3, "stall: others' prefill"), (4, "stall: mixed extra")):
            wanted = [
                (int(start), int(end))
                for start, end, of in zip(lane.start_ns, lane.end_ns, lane.kind, strict=True)
                if of == kind
            ]
            found = [interval(e) for e in chrome.slices_on(ref.name) if e["name"] == name]
            assert sorted(found) == sorted(wanted)
    assert {e["name"] for e in chrome.of("X") if "stall" in e["name"]}


def test_slices_nest_and_no_track_needs_a_further_thread(chrome: Chrome) -> None:
    assert_nested(chrome.of("X"))
    assert not [name for name in chrome.threads().values() if name.endswith(" (2)")]


def test_a_late_token_carries_its_ledger(timeline: Timeline, chrome: Chrome) -> None:
    names = dict(frame(timeline.trace, "requests").select("rid", "name").iter_rows())
    for stall in timeline.stalls.rows(named=True):
        gap = timeline.gap(stall["rid"], stall["token_index"])
        assert gap is not None
        spans = [
            e["args"]
            for e in chrome.slices_on(names[gap.rid])
            if e["name"].startswith("stall") and e["args"]["token_index"] == gap.token_index
        ]
        assert spans
        for args in spans:
            assert sum(args["ledger_ns"].values()) == args["gap_ns"] == stall["end_ns"] - stall["start_ns"]
            own = ("own decode", "its other decode forwards")
            assert args["late_ns"] == args["gap_ns"] - sum(args["ledger_ns"].get(words, 0) for words in own)
            lost = {words: ns for words, ns in args["ledger_ns"].items() if words not in own}
            assert lost[args["cause"]] == max(lost.values())
            assert [text.rsplit(" ", 2)[0] for text in args["culprits"]] == [c.name for c in gap.culprits]


def test_an_arrow_leads_from_each_culprits_costliest_chunk_to_the_late_token(
    timeline: Timeline, chrome: Chrome
) -> None:
    stalls = timeline.stalls.rows(named=True)
    starts = {e["id"]: e for e in chrome.of("s")}
    ends = {e["id"]: e for e in chrome.of("f")}
    wanted = set()
    for stall in stalls:
        gap = timeline.gap(stall["rid"], stall["token_index"])
        assert gap is not None
        latest_first = sorted(gap.chunks, key=lambda each: -each.start_ns)
        most = {chunk.rid: chunk for chunk in sorted(latest_first, key=lambda each: each.in_gap_ns)}
        assert set(most) == {culprit.rid for culprit in gap.culprits}
        for rid, chunk in most.items():
            wanted.add((rid, chunk.forward_id, stall["rid"], stall["own_forward_id"]))
    assert len(wanted) > len({(victim, own) for _, _, victim, own in wanted})
    rids = dict(frame(timeline.trace, "requests").select("name", "rid").iter_rows())
    threads = chrome.threads()
    found = set()
    for number, start in starts.items():
        end = ends.pop(number)
        assert start["ts"] < end["ts"]
        source = [e for e in chrome.around(start) if e["name"].startswith("chunk ")]
        target = [e for e in chrome.around(end) if "stall" not in e["name"]]
        inner = chrome.around(end)[-1]
        assert inner in target or inner["dur"] == target[0]["dur"]  # a mixed extra may fill the forward
        assert (len(source), len(target)) == (1, 1)
        ids = [event["args"]["forward_id"] for event in (*source, *target)]
        names = [threads[event["pid"], event["tid"]] for event in (start, end)]
        found.add((rids[names[0]], ids[0], rids[names[1]], ids[1]))
    assert found == wanted
    assert not ends


def test_counters_are_those_of_each_forward(timeline: Timeline, chrome: Chrome) -> None:
    columns = {
        ("tokens", "extend"): "extend_tokens",
        ("tokens", "decode"): "decode_tokens",
        ("KV pages", "locked"): "pages_protected",
        ("KV pages", "private"): "pages_private",
        ("KV pages", "evictable"): "pages_evictable",
        ("KV pages", "free"): "pages_free",
        ("queue", "waiting"): "waiting_reqs",
        ("inflight_middle_chunks", "sum"): "inflight_middle_chunks",
    }
    forwards = frame(timeline.trace, "forwards").sort("start_ns")
    for (name, series), column in columns.items():
        found = [(nanoseconds(e["ts"]), e["args"][series]) for e in chrome.of("C", name)]
        assert found == list(forwards.select("start_ns", column).iter_rows()), name


def test_the_command_writes_the_picture_and_says_where_it_comes_from(
    timeline: Timeline, chrome: Chrome, tmp_path: Path, capfd: Capture
) -> None:
    written = exported(capfd, timeline.path, tmp_path / "t.json.gz")
    assert written.events == chrome.events
    assert written.about["provenance"] == "simulated"
    assert written.about["trace"] == timeline.path.name
    assert written.about["generator"].startswith("chunkscope ")
    assert "hardware" not in written.about


def test_a_range_holds_what_reaches_into_it_uncut(
    runs: dict[str, Path], tmp_path: Path, capfd: Capture
) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "part").mkdir()
    whole = exported(capfd, runs["chunked"], tmp_path / "all" / "t.json.gz")
    worst = open_timeline(runs["chunked"]).worst_gap()
    assert worst is not None
    assert worst.costliest is not None
    first, last = worst.costliest.end_ns - 1, worst.end_ns
    edges = [f"{t_ns / 1e9:.9f}" for t_ns in (first, last)]
    part = exported(
        capfd, runs["chunked"], tmp_path / "part" / "t.json", "--from", edges[0], "--to", edges[1]
    )

    def inside(chrome: Chrome) -> set[tuple[Any, ...]]:
        threads = chrome.threads()
        return {
            (threads[e["pid"], e["tid"]], e["name"], *interval(e))
            for e in chrome.of("X")
            if interval(e)[0] < last and interval(e)[1] > first
        }

    assert inside(part) == inside(whole)
    assert 0 < len(part.of("X")) < len(whole.of("X")) / 2
    assert 0 < len(part.of("s")) == len(part.of("f")) < len(whole.of("s"))
    assert all(part.around(end) for end in (*part.of("s"), *part.of("f")))


def test_names_of_requests_are_text(tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "t.chunkscope"
    with TraceWriter(trace, {"provenance": "measured", "hardware": {"name": "<i>"}}) as writer:
        append(writer, "forwards", [forward(0, 10, 20, ForwardMode.EXTEND)])
        append(writer, "rows", [extend_row(0, rid, 4, 0, prefix_len=0) for rid in range(len(HOSTILE))])
        append(writer, "requests", [request(rid, rid, name) for rid, name in enumerate(HOSTILE)])
    (tmp_path / "out").mkdir()
    chrome = exported(capfd, trace, tmp_path / "out" / "t.json")
    assert [name for name in chrome.threads().values() if name != "forwards"] == HOSTILE
    [drawn] = chrome.slices_on("forwards")
    assert drawn["args"]["prompts"] == [f"{name} [0, 4)" for name in HOSTILE]
    assert chrome.about["hardware"] == "<i>"


def test_what_is_unknown_is_left_out(tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "t.chunkscope"
    with TraceWriter(trace, {}) as writer:
        append(writer, "forwards", [{"forward_id": 5, "rank": 2, "plan_start_ns": 10, "result_end_ns": 30}])
        append(writer, "rows", [decode_row(5, 9, 3)])
    (tmp_path / "out").mkdir()
    chrome = exported(capfd, trace, tmp_path / "out" / "t.json")
    [drawn] = chrome.slices_on("forwards")
    assert (drawn["name"], interval(drawn), drawn["pid"]) == ("forward", (10, 30), 3)
    assert drawn["args"].keys() == {"forward_id", "drawn"}
    assert not chrome.of("C")
    assert chrome.about.keys() == {"generator", "trace"}


def test_ranks_are_processes(tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "t.chunkscope"
    with TraceWriter(trace, {}) as writer:
        append(writer, "forwards", [{**forward(i, 10 * i, 10 * i + 15), "rank": i % 2} for i in range(4)])
        append(writer, "rows", [{**decode_row(i, i % 2, i // 2), "rank": i % 2} for i in range(4)])
        append(writer, "requests", [request(0, name="even"), {**request(1, name="odd"), "rank": 1}])
    (tmp_path / "out").mkdir()
    chrome = exported(capfd, trace, tmp_path / "out" / "t.json")
    assert {e["pid"]: e["args"]["name"] for e in chrome.of("M", "process_name")} == {1: "rank 0", 2: "rank 1"}
    places = {(pid, name) for (pid, _), name in chrome.threads().items()}
    assert places == {(1, "forwards"), (2, "forwards"), (1, "even"), (2, "odd")}
    assert_nested(chrome.of("X"))


def test_no_arrow_leads_back_from_a_chunk_that_began_after_the_own_forward(
    tmp_path: Path, capfd: Capture
) -> None:
    """The result of forward 3 is processed while a launched prompt runs already."""
    trace = tmp_path / "t.chunkscope"
    late = forward(3, 300, 400, decode_tokens=1) | {"result_end_ns": 900}
    with TraceWriter(trace, {}) as writer:
        begun = [forward(i, 100 * i, 100 * i + 100, decode_tokens=1) for i in range(3)]
        append(writer, "forwards", [*begun, late, forward(4, 410, 950, ForwardMode.EXTEND, extend_tokens=8)])
        append(
            writer, "rows", [*(decode_row(i, 0, i) for i in range(4)), extend_row(4, 1, 8, 0, prefix_len=0)]
        )
        append(writer, "requests", [request(0), request(1)])
    (tmp_path / "out").mkdir()
    chrome = exported(capfd, trace, tmp_path / "out" / "t.json")
    [ledger] = [e["args"] for e in chrome.slices_on("r0") if "ledger_ns" in e.get("args", {})]
    assert ledger["ledger_ns"] == {"own decode": 100, "others' prefill": 490, "not told": 10}
    assert not chrome.of("s")


def append(writer: TraceWriter, table: str, rows: list[dict[str, Any]]) -> None:
    columns = {key: [row.get(key) for row in rows] for key in {key for row in rows for key in row}}
    writer.append(table, columns, len(rows))


def test_bad_input_is_refused_in_one_line(runs: dict[str, Path], tmp_path: Path, capfd: Capture) -> None:
    trace, out = runs["chunked"], tmp_path / "t.json"
    (tmp_path / "there.json").write_text("mine")
    with TraceWriter(tmp_path / "empty.chunkscope", {}):
        pass
    cases = [
        (["export", "chrome", tmp_path / "no.chunkscope", "-o", out], "no such trace"),
        (["export", "chrome", tmp_path / "empty.chunkscope", "-o", out], "holds no forward"),
        (["export", "chrome", trace], "-o"),
        (["export", "chrome", trace, "-o", tmp_path / "there.json"], "there.json: already exists"),
        (["export", "chrome", trace, "-o", tmp_path / "t.txt"], "t.txt.json"),
        (["export", "chrome", trace, "-o", tmp_path / "no" / "t.json"], "cannot be written"),
        (["export", "chrome", trace, "-o", out, "--from", "2", "--to", "1"], "--from 2 is not before --to 1"),
        (["export", "chrome", trace, "-o", out, "--from", "1", "--to", "1"], "is not before"),
        (["export", "chrome", trace, "-o", out, "--from", "1e9"], "nothing between"),
        (["export", "chrome", trace, "-o", out, "--to", "-5"], "nothing between"),
        (["export", "chrome", trace, "-o", out, "--to", "nan"], "give seconds"),
        (["export", "chrome", trace, "-o", out, "--from", "1e400"], "give seconds"),
        (["export", "chrome", trace, "-o", out, "--from", "soon"], "soon"),
        (["export", "perfetto", trace], "perfetto"),
    ]
    for args, words in cases:
        assert words in refused(capfd, *args)
    assert (tmp_path / "there.json").read_text() == "mine"
    assert not out.exists()


def test_ctrl_c_leaves_nothing(
    runs: dict[str, Path], tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object) -> Iterator[Item]:
        yield Slice(Track(0, 0, "forwards"), "a", 0, 1)
        raise KeyboardInterrupt

    monkeypatch.setattr("profiler.export.picture.draw", interrupted)
    done = call(capfd, "export", "chrome", runs["chunked"], "-o", tmp_path / "t.json")
    assert (done.code, done.out, done.err.strip()) == (130, "", "chunkscope: interrupted")
    assert not list(tmp_path.iterdir())
