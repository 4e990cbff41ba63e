"""What a view gets of a window, against polars over the trace's tables."""

import os
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.batch import ForwardMode, Outcome, Role
from engine.config import EngineConfig
from profiler.forward_table import forward_table
from profiler.ledger.parts import PartKind
from profiler.stalls import stalls
from profiler.tables import frame
from profiler.timeline.array_file import read_arrays, write_arrays
from profiler.timeline.cache import cache_key
from profiler.timeline.tiles import Lane, LaneKind
from profiler.timeline.timeline import Timeline, open_timeline
from profiler.worst_gap import worst_gap
from tests.support.recorded import record_run
from tests.support.three_runs import record_three_runs
from tests.support.traces import MemoryTrace, forward
from tests.support.workloads import Arrival, crowds, scenarios
from traces.reader import Trace, open_trace

EXAMPLES = min(settings().max_examples // 8, 250)  # an example records a run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Timeline]:
    paths = record_three_runs(tmp_path_factory.mktemp("runs"))
    return {name: open_timeline(path) for name, path in paths.items()}


@pytest.fixture(params=["whole", "chunked", "mixed"])
def run(request: pytest.FixtureRequest, runs: dict[str, Timeline]) -> Timeline:
    timeline = runs[request.param]
    assert isinstance(timeline, Timeline)
    return timeline


def window(timeline: Timeline, low: float, high: float) -> tuple[int, int]:
    length = timeline.end_ns - timeline.start_ns
    return timeline.start_ns + int(low * length), timeline.start_ns + int(high * length)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.1, 0.5), (0.33, 0.34), (0.5, 0.5), (0.99, 1)])
def test_sums_are_polars_over_the_same_interval(run: Timeline, low: float, high: float) -> None:
    a, b = window(run, low, high)
    forwards, rows = frame(run.trace, "forwards"), frame(run.trace, "rows")
    begun = forwards.filter(pl.col("start_ns").is_between(a, b, closed="left"))
    came = forwards.filter(pl.col("result_end_ns").is_between(a, b, closed="left"))["forward_id"]
    inside = pl.min_horizontal("end_ns", pl.lit(b)) - pl.max_horizontal("start_ns", pl.lit(a))
    found = run.sums(a, b)
    assert found.forwards == begun.height
    assert sum(found.forwards_by_mode.values()) == begun.height
    assert found.extend_tokens == begun["extend_tokens"].sum()
    assert found.decode_tokens == begun["decode_tokens"].sum()
    assert found.flops == begun.select(pl.sum_horizontal(pl.col("^flops_.*$")).sum()).item()
    assert found.busy_ns == forwards.select(inside.filter(inside > 0).sum()).item()
    emitted = rows.filter((pl.col("outcome") == Outcome.EMITTED.value) & pl.col("forward_id").is_in(came))
    assert found.output_tokens == emitted.height
    listed = stalls(run.trace).filter((pl.col("start_ns") < b) & (pl.col("end_ns") > a))
    assert found.stalls == listed.height


@pytest.mark.parametrize("columns", [1, 3, 10, 1000])
def test_strips_and_lanes_of_any_width_hold_everything(run: Timeline, columns: int) -> None:
    a, b = run.start_ns, run.end_ns
    strip = run.strip(a, b, columns)
    assert strip.count.sum() == run.num_forwards
    assert strip.busy_ns.sum() == run.sums(a, b).busy_ns
    assert len(strip.count) <= max(4 * columns, 4)
    rows = frame(run.trace, "rows")
    for ref in run.lane_refs(a, b, 100)[0]:
        lane = run.lane(ref.rid, a, b, columns)
        mine = rows.filter(pl.col("rid") == ref.rid)
        assert _count(lane, LaneKind.CHUNK) == (mine["role"] != Role.DECODE.value).sum()
        assert _count(lane, LaneKind.TOKEN) == (mine["outcome"] == Outcome.EMITTED.value).sum()
        assert (np.diff(lane.start_ns) >= 0).all()


def _count(lane: Lane, kind: LaneKind) -> int:
    return int(lane.count[lane.kind == kind].sum())


def test_chunks_are_numbered_and_cover_the_prompt(runs: dict[str, Timeline]) -> None:
    timeline = runs["chunked"]
    rid = timeline.request_by_name("long-1")
    assert rid is not None
    lane = timeline.lane(rid, timeline.start_ns, timeline.end_ns, 1000)
    chunks = lane.kind == LaneKind.CHUNK
    assert lane.number[chunks].tolist() == list(range(1, 11))
    assert set(lane.of[chunks].tolist()) == {10}
    assert lane.tokens[chunks].sum() == 1200


@settings(max_examples=EXAMPLES)
@given(scenarios(), st.data())
def test_gaps_taken_apart_agree_with_the_stall_list(
    scenario: tuple[EngineConfig, list[Arrival]], data: st.DataObject
) -> None:
    with TemporaryDirectory() as directory:
        trace, _ = record_run(Path(directory) / "t.chunkscope", *scenario)
        timeline = Timeline(trace)
        worst, same = timeline.worst_gap(), worst_gap(trace)
        assert (worst is None) == (same is None)
        if worst is not None and same is not None:
            assert (worst.rid, worst.token_index, worst.gap_ns) == (same.rid, same.token_index, same.gap_ns)
            assert worst.parts == same.parts
        listed = stalls(trace, min_ratio=0.0)
        for stall in listed.head(5).iter_rows(named=True):
            gap = timeline.gap(stall["rid"], stall["token_index"])
            assert gap is not None
            assert gap.gap_ns == stall["gap_ns"]
            assert sum(f.in_gap_ns for f in gap.forwards[:-1]) == stall["others_ns"]
            assert len(gap.forwards) - 1 == stall["other_forwards"]
            assert sum(c.in_gap_ns for c in gap.chunks) == sum(c.device_ns for c in gap.culprits)
            assert sum(part.part_ns for part in gap.parts) == gap.gap_ns
            assert gap.sum_ns([PartKind.OWN_OTHER]) <= _own_others(trace, stall)
            assert timeline.gap_at(gap.rid, gap.start_ns) == gap
        starts = sorted(timeline.stalls["start_ns"])
        t = data.draw(st.integers(timeline.start_ns, timeline.end_ns))
        after, before = timeline.next_stall(t), timeline.previous_stall(t)
        assert (after and after["start_ns"]) == next((s for s in starts if s > t), None)
        assert (before and before["start_ns"]) == next((s for s in reversed(starts) if s < t), None)


def _own_others(trace: Trace, gap: dict[str, Any]) -> int:
    """Device time in a gap of forwards in which its request has a row, the own one left out."""
    mine = frame(trace, "rows").filter(pl.col("rid") == gap["rid"])["forward_id"].to_list()
    forwards = frame(trace, "forwards").filter(pl.col("forward_id").is_in(mine))
    others = forwards.filter(pl.col("forward_id") != gap["own_forward_id"])
    inside = (
        min(f["end_ns"], gap["end_ns"]) - max(f["start_ns"], gap["start_ns"]) for f in others.to_dicts()
    )
    return sum(max(0, part) for part in inside)


def test_lane_stalls_are_those_of_the_list(run: Timeline) -> None:
    every = stalls(run.trace, min_ratio=0.0)
    for ref in run.lane_refs(run.start_ns, run.end_ns, 100)[0]:
        lane = run.lane(ref.rid, run.start_ns, run.end_ns, 10_000)
        mine = every.filter(pl.col("rid") == ref.rid).sort("start_ns")
        drawn = lane.kind == LaneKind.STALL_PREFILL
        others = mine.filter(pl.col("others_ns") > 0)
        assert lane.start_ns[drawn].tolist() == others["start_ns"].to_list()
        assert lane.end_ns[drawn].tolist() == others["own_start_ns"].to_list()
        extra = lane.kind == LaneKind.STALL_MIXED
        mixed = mine.filter(pl.col("mixed_extra_ns") > 0)
        assert lane.number[extra].tolist() == mixed["token_index"].to_list()
        assert lane.busy_ns[extra].tolist() == mixed["mixed_extra_ns"].to_list()


@settings(max_examples=EXAMPLES)
@given(crowds())
def test_a_mixed_forward_of_unknown_cost_is_drawn_whole(
    scenario: tuple[EngineConfig, list[Arrival]],
) -> None:
    with TemporaryDirectory() as directory:
        trace, _ = record_run(Path(directory) / "t.chunkscope", *scenario)
        timeline = Timeline(trace)
        rows = frame(trace, "rows").select("rid", "forward_id", "role")
        every = stalls(trace, min_ratio=0.0).join(
            rows, left_on=["rid", "own_forward_id"], right_on=["rid", "forward_id"]
        )
        unknown = every.filter(
            (pl.col("own_mode") == ForwardMode.MIXED.value)
            & (pl.col("role") == Role.DECODE.value)
            & pl.col("mixed_extra_ns").is_null()
        )
        for ref in timeline.lane_refs(timeline.start_ns, timeline.end_ns, 100)[0]:
            lane = timeline.lane(ref.rid, timeline.start_ns, timeline.end_ns, 10_000)
            drawn = lane.number[lane.kind == LaneKind.STALL_UNKNOWN].tolist()
            assert drawn == sorted(unknown.filter(pl.col("rid") == ref.rid)["token_index"])


def test_the_numbers_above_the_picture_are_those_of_the_summary(runs: dict[str, Timeline]) -> None:
    for timeline in runs.values():
        shown, summary = timeline.kpis, timeline.summary
        assert asdict(shown.ttft_s) == summary["ttft_s"]
        assert asdict(shown.itl_s) == summary["itl_s"]
        for name in (
            *("output_tokens", "output_tokens_per_s", "kv_pages_peak", "kv_pages_total"),
            *("largest_forward_tokens", "activation_peak_bytes"),
        ):
            assert getattr(shown, name) == summary[name]


def test_lanes_without_room_show_victims_and_long_prompts(runs: dict[str, Timeline]) -> None:
    timeline = runs["chunked"]
    refs, total = timeline.lane_refs(timeline.start_ns, timeline.end_ns, 4)
    assert total == 11
    names = [ref.name for ref in refs]
    assert len(names) == 4
    assert "long-1" in names
    assert sum(name.startswith("decode") for name in names) >= 2
    assert names == sorted(
        names, key=lambda n: timeline.ref(timeline.request_by_name(n) or 0).arrival_ns or 0
    )


def test_counters_keep_the_peaks(run: Timeline) -> None:
    forwards = frame(run.trace, "forwards")
    for columns in (1, 2, 5):
        tile = run.counters(run.start_ns, run.end_ns, columns)
        used = tile.pages_total - tile.pages_free - tile.pages_evictable
        wanted = forwards["pages_total"] - forwards["pages_free"] - forwards["pages_evictable"]
        assert used.max() == wanted.max()
        assert tile.inflight_middle_chunks.max() == forwards["inflight_middle_chunks"].max()


def test_a_cached_index_gives_the_same_answers(tmp_path: Path) -> None:
    path = record_three_runs(tmp_path)["mixed"]
    first = open_timeline(path)
    assert (path / "timeline.cache").exists()
    second = open_timeline(path)
    assert second.kpis == first.kpis
    assert second.worst_gap() == first.worst_gap()
    assert second.stalls.equals(first.stalls)
    a, b = window(first, 0.2, 0.7)
    assert second.sums(a, b) == first.sums(a, b)
    assert second.state_at(a) == first.state_at(a)


@pytest.mark.parametrize("at", [0.0, 0.01, 0.3, 0.6, 0.99])
def test_a_damaged_cache_is_not_believed(tmp_path: Path, at: float) -> None:
    path = record_three_runs(tmp_path)["chunked"]
    wanted = open_timeline(path).kpis
    cache = path / "timeline.cache"
    content = bytearray(cache.read_bytes())
    content[int(at * len(content))] ^= 0x41
    cache.write_bytes(content)
    assert open_timeline(path).kpis == wanted
    cache.write_bytes(content[: int(at * len(content))])
    assert open_timeline(path).kpis == wanted


def test_a_sound_file_of_other_arrays_is_not_believed(tmp_path: Path) -> None:
    path = record_three_runs(tmp_path)["chunked"]
    wanted = open_timeline(path).kpis
    key = cache_key(open_trace(path))
    arrays = read_arrays(path / "timeline.cache", key)
    assert arrays is not None
    for name in ("rest", "stalls", "rows.role"):
        kept = {other: array.copy() for other, array in arrays.items() if other != name}
        write_arrays(path / "timeline.cache", key, kept)
        assert open_timeline(path).kpis == wanted
    (path / "timeline.cache").unlink()
    os.mkfifo(path / "timeline.cache")
    assert open_timeline(path).kpis == wanted


def test_a_trace_that_cannot_be_written_is_cached_for_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = record_three_runs(tmp_path)["chunked"]
    (path / "timeline.cache").mkdir()  # nothing can be renamed onto a directory, root or not
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wanted = open_timeline(path).kpis
    assert len(list((tmp_path / "cache/chunkscope/timelines").glob("*.cache"))) == 1
    assert open_timeline(path).kpis == wanted


def test_forwards_without_an_id_or_a_rank_are_no_stumbling_block() -> None:
    nameless = {**forward(1, 20, 30), "forward_id": None}
    table = forward_table(
        MemoryTrace({"forwards": [{**forward(0, 0, 10), "rank": None}, nameless], "rows": [], "requests": []})
    )
    assert (table.forward_id.tolist(), table.rank.tolist(), table.untimed) == ([0], [0], 1)
