"""The timeline's routes against the timelines themselves, and against polars over the traces' tables."""

import threading
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from flask import Flask
from flask.testing import FlaskClient

from engine.batch import ForwardMode
from profiler.timeline.tiles import LaneRef
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.rewritten import rewrite
from tests.support.three_runs import record_three_runs
from ui.web import wire
from ui.web.tile_bytes import Arrays, unpack_tile
from ui.web.tiles import register_tiles

RUNS = ("whole", "chunked", "mixed")
INSTANTS = ("start_ns", "end_ns", "t_ns")
MS = 1_000_000


@pytest.fixture(scope="module")
def timelines(tmp_path_factory: pytest.TempPathFactory) -> list[Timeline]:
    paths = record_three_runs(tmp_path_factory.mktemp("runs"))
    return [open_timeline(paths[name]) for name in RUNS]


@pytest.fixture(scope="module")
def client(timelines: list[Timeline]) -> Iterator[FlaskClient]:
    with server_of(timelines).test_client() as client:
        yield client


def server_of(timelines: list[Timeline]) -> Flask:
    server = Flask(__name__)
    register_tiles(server, timelines, threading.Lock())
    return server


def array(entry: dict[str, Any], data: bytes) -> np.ndarray:
    assert entry["offset"] % 8 == 0
    return np.frombuffer(data, np.dtype(f"<{entry['dtype']}"), entry["length"], entry["offset"])


def assert_same(entries: dict[str, Any], data: bytes, tile: Any, start_ns: int) -> None:
    """Every array of a tile is on the wire, exactly, times counted from the run's start."""
    names = [f.name for f in fields(tile) if isinstance(getattr(tile, f.name), np.ndarray)]
    assert sorted(entries) == sorted(names)
    for name in names:
        expected = getattr(tile, name) - (start_ns if name in INSTANTS else 0)
        assert array(entries[name], data).tolist() == expected.tolist(), name


@pytest.mark.parametrize("run", range(3))
@pytest.mark.parametrize("columns", [40, 2000])
def test_a_tile_is_what_the_timeline_answers(
    client: FlaskClient, timelines: list[Timeline], run: int, columns: int
) -> None:
    timeline = timelines[run]
    start = timeline.start_ns
    window = (start + 50 * MS, start + 300 * MS)
    url = f"/api/timeline/{run}/tile?t0={50 * MS}&t1={300 * MS}&columns={columns}&lanes=20"
    header, data = unpack_tile(client.get(url).data)
    assert (header["t0"], header["t1"]) == (50 * MS, 300 * MS)
    assert_same(header["strip"], data, timeline.strip(*window, columns), start)
    assert_same(header["counters"], data, timeline.counters(*window, columns), start)
    assert header["lanes_total"] == len(header["lanes"]) == 11
    for lane in header["lanes"]:
        assert_same(lane["items"], data, timeline.lane(lane["rid"], *window, columns), start)
    assert header["strip"]["start_ns"]["dtype"] == "f8"
    assert header["strip"]["extend_tokens"]["dtype"] == "i4"


def test_a_window_far_beyond_the_run_holds_all_of_it(client: FlaskClient, timelines: list[Timeline]) -> None:
    url = f"/api/timeline/0/tile?t0=-{10**17}&t1={10**18 - 1}&columns=4000"
    header, data = unpack_tile(client.get(url).data)
    assert array(header["strip"]["count"], data).sum() == timelines[0].num_forwards


def test_few_lanes_are_those_of_the_window_and_those_to_keep(
    client: FlaskClient, timelines: list[Timeline]
) -> None:
    start = timelines[1].start_ns
    url = "/api/timeline/1/tile?t0=0&t1=300000000&columns=9&lanes=3&lanes_t0=0&lanes_t1=1000000"
    few, _ = unpack_tile(client.get(url).data)
    refs, total = timelines[1].lane_refs(start, start + MS, 3)
    assert [lane["rid"] for lane in few["lanes"]] == [ref.rid for ref in refs]
    assert few["lanes_total"] == total
    more, _ = unpack_tile(client.get(url + "&keep=10,8").data)
    assert {8, 10} <= {lane["rid"] for lane in more["lanes"]}


def test_the_minimap_is_the_strip_of_the_whole_run(client: FlaskClient, timelines: list[Timeline]) -> None:
    header, data = unpack_tile(client.get("/api/timeline/2/minimap?columns=30").data)
    timeline = timelines[2]
    assert_same(
        header["strip"], data, timeline.strip(timeline.start_ns, timeline.end_ns, 30), timeline.start_ns
    )


def test_sums_are_those_of_the_tables(client: FlaskClient, timelines: list[Timeline]) -> None:
    for run, timeline in enumerate(timelines):
        t0, t1 = 70 * MS, 260 * MS
        sums = client.get(f"/api/timeline/{run}/sums?t0={t0}&t1={t1}").get_json()
        a, b = timeline.start_ns + t0, timeline.start_ns + t1
        forwards = pl.from_arrow(timeline.trace.table("forwards"))
        inside = forwards.filter(pl.col("start_ns").is_between(a, b, closed="left"))
        assert sums["forwards"] == inside.height > 0
        assert sums["extend_tokens"] == inside["extend_tokens"].sum()
        assert sums["decode_tokens"] == inside["decode_tokens"].sum()
        clipped = pl.min_horizontal("end_ns", pl.lit(b)) - pl.max_horizontal("start_ns", pl.lit(a))
        assert sums["busy_ns"] == forwards.select(clipped.clip(lower_bound=0)).to_series().sum()
        assert (sums["start_ns"], sums["end_ns"]) == (t0, t1)
        assert f" {inside.height} forward" in sums["text"]


def test_a_gap_is_found_by_token_and_by_time(client: FlaskClient, timelines: list[Timeline]) -> None:
    worst = timelines[1].worst_gap()
    assert worst is not None
    assert worst.costliest is not None
    start = timelines[1].start_ns
    by_token = client.get(f"/api/timeline/1/gap?rid={worst.rid}&tok={worst.token_index}").get_json()
    middle = (worst.start_ns + worst.end_ns) // 2 - start
    assert client.get(f"/api/timeline/1/gap?rid={worst.rid}&t={middle}").get_json() == by_token
    assert by_token["gap_ns"] == worst.gap_ns == by_token["end_ns"] - by_token["start_ns"]
    assert by_token["start_ns"] == worst.start_ns - start
    assert by_token["median_gap_ns"] == worst.median_gap_ns
    chunk = by_token["costliest"]
    assert chunk["start_ns"] == worst.costliest.start_ns - start
    assert by_token["arrow"].startswith(f"costliest chunk: {chunk['name']} {chunk['number']}/{chunk['of']}, ")
    assert [c["device_ns"] for c in by_token["culprits"]] == [c.device_ns for c in worst.culprits]


def test_the_longest_gap_of_the_same_name_in_another_run(
    client: FlaskClient, timelines: list[Timeline]
) -> None:
    found = client.get("/api/timeline/2/longest?like=0&rid=3").get_json()
    rid = timelines[2].request_by_name("decode-4")
    assert rid is not None
    expected = timelines[2].longest_gap(rid)
    assert expected is not None
    assert (found["name"], found["token_index"]) == ("decode-4", expected.token_index)


def test_steps_and_stalls_go_both_ways_and_end(client: FlaskClient, timelines: list[Timeline]) -> None:
    starts = pl.from_arrow(timelines[0].trace.table("forwards"))["start_ns"].sort() - timelines[0].start_ns
    step = "/api/timeline/0/step"
    assert client.get(f"{step}?t={starts[3]}&by=1").get_json() == {"t": starts[4]}
    assert client.get(f"{step}?t={starts[3]}&by=-1").get_json() == {"t": starts[2]}
    assert client.get(f"{step}?t={starts[-1]}&by=1").get_json() == {"t": None}
    stall = "/api/timeline/0/stall"
    first = client.get(f"{stall}?t=-1&by=1").get_json()
    begins = timelines[0].stalls["start_ns"].min() - timelines[0].start_ns
    assert first["start_ns"] == begins < first["end_ns"]
    assert client.get(f"{stall}?t={begins}&by=-1").get_json() is None


def test_search_finds_names_whatever_their_case(client: FlaskClient) -> None:
    found = client.get("/api/timeline/0/search?q=LONG-").get_json()
    assert [ref["name"] for ref in found] == ["long-1", "long-2"]
    assert found[0]["arrival_ns"] == 60 * MS
    assert found[0]["ttft"].endswith(("ms", " s"))
    assert client.get("/api/timeline/0/search?q=").get_json() == []


def test_walls_say_how_many_decodes_were_silent_and_why(
    client: FlaskClient, timelines: list[Timeline]
) -> None:
    whole, chunked, mixed = (client.get(f"/api/timeline/{run}/walls").get_json() for run in range(3))
    worst = timelines[1].worst_gap()
    assert worst is not None
    assert chunked[0]["title"].startswith("6 decodes silent for ")
    assert "prefill forwards in a row: long-1" in chunked[0]["detail"]
    assert chunked[0]["start_ns"] <= worst.start_ns - timelines[1].start_ns < chunked[0]["end_ns"]
    assert whole[0]["title"].startswith("6 decodes silent for ")
    assert mixed[0]["title"].startswith("a token every ")
    assert mixed[0]["detail"] == f"{riding(timelines[2], mixed[0])} decodes ride along with each chunk"


def riding(timeline: Timeline, wall: dict[str, Any]) -> str:
    """The decode rows of the mixed forwards that lie in a wall, fewest to most."""
    begin, end = (timeline.start_ns + wall[key] for key in ("start_ns", "end_ns"))
    held = pl.from_arrow(timeline.trace.table("forwards")).filter(
        (pl.col("mode") == ForwardMode.MIXED.value)
        & (pl.col("start_ns") >= begin)
        & (pl.col("end_ns") <= end)
    )["decode_tokens"]
    assert held.min() < held.max()
    return f"{held.min()} to {held.max()}"


BAD = [
    ("tile?t0=NaN", 400, "t0=NaN is not a whole number"),
    ("tile?t0=1e400", 400, "t0=1e400 is not a whole number"),
    ("tile?t0=" + "9" * 40, 400, "is not a whole number of at most 18 digits"),
    ("tile?t0=٣", 400, "is not a whole number"),
    ("tile?t0=5&t1=5", 400, "t0=5 is not before t1=5: give a window of at least 1 ns"),
    ("tile?t0=9&t1=3", 400, "is not before"),
    ("tile?columns=0", 400, "columns=0 is too small: give at least 1"),
    ("tile?columns=4001", 400, "columns=4001 is too large: give at most 4000"),
    ("tile?lanes=-1", 400, "lanes=-1 is too small"),
    ("tile?lanes_t0=2&lanes_t1=1", 400, "lanes_t0=2 is not before lanes_t1=1"),
    ("tile?keep=1,x", 400, "keep=x is not a whole number"),
    ("minimap?columns=1.5", 400, "columns=1.5 is not a whole number"),
    ("sums?t0=0&t1=-1", 400, "is not before"),
    ("gap?tok=1", 400, "rid is missing"),
    ("gap?rid=0", 400, "t is missing"),
    ("gap?rid=0&tok=0", 404, "request 0 has no gap before token 0"),
    ("gap?rid=99&tok=1", 404, "request 99 has no gap before token 1"),
    ("gap?rid=0&t=-5", 404, "request 0 has no gap at that time"),
    ("step?t=0", 400, "by is missing"),
    ("step?t=0&by=2", 400, "by=2 is none of -1, 1"),
    ("stall?t=%1b[31m&by=1", 400, r"t=\x1b[31m is not"),
    ("search", 400, "q is missing"),
    ("search?q=" + "x" * 201, 400, "q has 201 characters: give at most 200"),
    ("longest?like=7&rid=0", 404, "no run 7: runs of this page are 0 to 2"),
    ("nothing", 404, "nothing at /api/timeline/0/nothing"),
]


@pytest.mark.parametrize(("query", "status", "says"), BAD)
def test_a_bad_query_gets_one_line(client: FlaskClient, query: str, status: int, says: str) -> None:
    answer = client.get(f"/api/timeline/0/{query}")
    assert answer.status_code == status
    error = answer.get_json()["error"]
    assert says in error
    assert "\n" not in error
    assert len(error) < 250


@pytest.mark.parametrize("run", ["3", "-1", "x", "%00", "1e400", "99999999999999999999", "٠"])
def test_an_unknown_run_gets_one_line(client: FlaskClient, run: str) -> None:
    answer = client.get(f"/api/timeline/{run}/tile")
    assert answer.status_code == 404
    assert answer.get_json()["error"].startswith("no run ")


def test_a_browser_may_keep_a_tile_of_a_trace_that_has_ended(client: FlaskClient) -> None:
    first = client.get("/api/timeline/0/tile")
    assert first.headers["Cache-Control"] == "private, no-cache"
    again = client.get("/api/timeline/0/tile", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    other = client.get("/api/timeline/1/tile", headers={"If-None-Match": first.headers["ETag"]})
    assert other.status_code == 200
    assert client.get("/api/timeline/0/sums").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("table", ["forwards", "rows", "requests", "events"])
def test_a_trace_without_a_table_is_answered_for(
    timelines: list[Timeline], tmp_path: Path, table: str
) -> None:
    path = rewrite(timelines[2].path, tmp_path / "less.chunkscope", without=[table])
    with server_of([open_timeline(path)]).test_client() as client:
        for query in ("tile", "tile?keep=3", "minimap", "sums", "walls", "search?q=long", "stall?t=0&by=1"):
            answer = client.get(f"/api/timeline/0/{query}")
            assert answer.status_code == 200, query
        header, _ = unpack_tile(client.get("/api/timeline/0/tile").data)
        assert (header["strip"]["count"]["length"] == 0) == (table == "forwards")


def test_names_are_text_on_one_line() -> None:
    name = "<img src=x>\x1b[31m\u202e" + "y" * 10_000
    ref = LaneRef(4, name, 100, 20, None, None, 0, False)
    shown = wire.request(ref, 60)
    assert shown["name"].startswith(r"<img src=x>\x1b[31m\u202eyyy")
    assert len(shown["name"]) < 200
    assert (shown["arrival_ns"], shown["first_token_ns"], shown["ttft"]) == (40, None, None)


def test_numbers_beyond_32_bits_stay_exact() -> None:
    arrays = Arrays()
    values = np.array([2**31, -1, 2**52 + 1])
    header, data = unpack_tile(arrays.pack({"a": arrays.add(np.array([1])), "b": arrays.add(values)}))
    assert array(header["b"], data).tolist() == values.tolist()
