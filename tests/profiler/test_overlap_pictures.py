"""Lanes and exported pictures of random runs, overlapped or not, hold every row and nest."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import given, settings

from engine.batch import Outcome, Role
from engine.config import EngineConfig
from profiler.export.picture import draw
from profiler.tables import frame
from profiler.timeline.tiles import LaneKind
from profiler.timeline.timeline import Timeline
from tests.support.chrome import assert_nested, read_chrome
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.recorded import record_run
from tests.support.workloads import Arrival, scenarios
from traces.chrome import write_chrome

MANY = 100_000  # columns


@settings(max_examples=ENGINE_EXAMPLES // 10, deadline=None)
@given(scenarios())
def test_lanes_hold_every_chunk_and_token_and_stalls_lie_between_tokens(
    scenario: tuple[EngineConfig, list[Arrival]],
) -> None:
    with TemporaryDirectory() as directory:
        trace, _ = record_run(Path(directory) / "t.chunkscope", *scenario)
        timeline = Timeline(trace)
        rows = frame(trace, "rows")
        for ref in timeline.lane_refs(timeline.start_ns, timeline.end_ns, 100)[0]:
            mine = rows.filter(pl.col("rid") == ref.rid)
            lane = timeline.lane(ref.rid, timeline.start_ns, timeline.end_ns, MANY)
            tokens = lane.start_ns[lane.kind == LaneKind.TOKEN]
            assert len(tokens) == (mine["outcome"] == Outcome.EMITTED.value).sum()
            assert (lane.kind == LaneKind.CHUNK).sum() == (mine["role"] != Role.DECODE.value).sum()
            stalls = lane.kind >= LaneKind.STALL_PREFILL
            for start, end, number in zip(
                lane.start_ns[stalls], lane.end_ns[stalls], lane.number[stalls], strict=True
            ):
                assert tokens[number - 1] <= start <= end <= tokens[number]


@settings(max_examples=ENGINE_EXAMPLES // 10, deadline=None)
@given(scenarios())
def test_exported_spans_nest(scenario: tuple[EngineConfig, list[Arrival]]) -> None:
    with TemporaryDirectory() as directory:
        trace, _ = record_run(Path(directory) / "t.chunkscope", *scenario)
        timeline = Timeline(trace)
        written = Path(directory) / "t.json"
        write_chrome(written, draw(timeline, timeline.start_ns, timeline.end_ns), {})
        chrome = read_chrome(written)
        assert_nested(chrome.of("X"))
        assert len(chrome.slices_on("forwards")) == trace.table("forwards").num_rows
        ends = {event["id"]: event["ts"] for event in chrome.of("f")}
        assert all(event["ts"] < ends.pop(event["id"]) for event in chrome.of("s"))
        assert not ends
