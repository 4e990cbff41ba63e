"""On a virtual clock planning takes no time, and many things happen at one instant."""

from pathlib import Path

import polars as pl
import pytest

from engine.batch import StopReason
from engine.clock import VirtualClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.simulated import SimulatedExecutor
from engine.request import Request, SamplingParams
from profiler.invariants.check import check_trace
from profiler.recorder import Recorder
from profiler.tables import frame
from profiler.timeline.timeline import Timeline
from tests.support.recorded import TINY
from traces.reader import Trace, open_trace
from traces.writer import TraceWriter

MS = 1_000_000


class Microseconds:
    """A millisecond a forward, and a microsecond a token."""

    def forward_ns(self, batch: object) -> int:
        return MS + 1000 * len(batch.input_ids)  # type: ignore[attr-defined]


def recorded(
    path: Path, requests: list[Request], *, stop_after: int | None = None, **options: object
) -> Trace:
    """A simulated run, broken off between two rounds after so many results, if wanted."""
    config = EngineConfig(**options).resolve(max_total_tokens=4096, context_length=4096)  # type: ignore[arg-type]
    clock = VirtualClock()
    recorder = Recorder(TraceWriter(path, {"provenance": "simulated"}), TINY, clock=clock, simulated=True)
    engine = Engine(
        config, SimulatedExecutor(Microseconds(), clock, vocab_size=50), clock=clock, observer=recorder
    )

    class Enough(Exception):
        """As if Ctrl-C had been pressed."""

    results = 0

    def count(record: object) -> None:
        nonlocal results
        results += 1
        if results == stop_after:
            raise Enough

    try:
        engine.run(requests, count)
    except Enough:
        engine.land()
    recorder.close(engine.cache.pool_state() if stop_after is None else None)
    return open_trace(path)


def lone(count: int, apart_ns: int, prompt: int = 20, output: int = 8) -> list[Request]:
    sampling = SamplingParams(output, ignore_eos=True)
    return [Request(i, f"r{i}", [i + 1] * prompt, sampling, i * apart_ns) for i in range(count)]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    "requests", [lone(3, 100 * MS), lone(6, MS), lone(2, 0, prompt=300), lone(5, 3 * MS, prompt=150)]
)
def test_the_state_has_the_counts_that_the_scheduler_told(
    tmp_path: Path, requests: list[Request], plain: bool
) -> None:
    fresh = [request.fresh() for request in requests]
    trace = recorded(
        tmp_path / "t.chunkscope", fresh, chunked_prefill_size=64, disable_overlap_schedule=plain
    )
    timeline = Timeline(trace)
    for told in frame(trace, "forwards").sort("forward_id").iter_rows(named=True):
        state = timeline.state_at(told["plan_end_ns"])
        if state.planned is None or state.planned.forward_id != told["forward_id"]:
            continue  # another was planned at the same instant
        ending = sum(request.ending for request in state.running)
        assert told["running_reqs"] in (len(state.running), len(state.running) - ending)
        assert len(state.waiting) == told["waiting_reqs"]


@pytest.mark.parametrize("plain", [False, True])
def test_where_a_forward_begins_it_is_the_one_shown(tmp_path: Path, plain: bool) -> None:
    trace = recorded(
        tmp_path / "t.chunkscope",
        lone(5, 3 * MS, prompt=150),
        chunked_prefill_size=64,
        disable_overlap_schedule=plain,
    )
    timeline = Timeline(trace)
    forwards = frame(trace, "forwards").sort("forward_id")
    ahead = 0
    for told in forwards.iter_rows(named=True):
        start_ns = timeline.start_of_forward(told["forward_id"])
        assert start_ns is not None
        state = timeline.state_at(start_ns)
        assert state.forward is not None
        assert state.forward.forward_id == told["forward_id"]
        assert state.stop_reason == (
            None if told["stop_reason"] is None else StopReason(told["stop_reason"]).name
        )
        if state.planned_next is not None:
            assert state.planned_next.forward_id == told["forward_id"] + 1
            ahead += 1
    assert bool(ahead) is not plain


@pytest.mark.parametrize("stop_after", [1, 2, 3, 4, 7])
def test_a_run_that_is_broken_off_keeps_every_rule(tmp_path: Path, stop_after: int) -> None:
    requests = [Request(0, "long", [1] * 400, SamplingParams(20, ignore_eos=True)), *lone(4, MS)[1:]]
    trace = recorded(tmp_path / "t.chunkscope", requests, stop_after=stop_after, chunked_prefill_size=64)
    assert check_trace(trace).ok
    assert len(frame(trace, "forwards")) == stop_after + 1


def test_an_interval_defers_only_while_somebody_can_decode(tmp_path: Path) -> None:
    trace = recorded(
        tmp_path / "t.chunkscope",
        lone(6, 0, output=1),
        prefill_decode_interval=1,
        prefill_max_requests=1,
    )
    assert check_trace(trace).ok
    forwards = frame(trace, "forwards").sort("forward_id")
    assert (forwards["start_ns"].diff().drop_nulls() == forwards["end_ns"].diff().drop_nulls()).all()
    assert frame(trace, "forwards").filter(pl.col("stop_reason") == 9).is_empty()
