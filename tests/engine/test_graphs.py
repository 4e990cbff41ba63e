"""Decode forwards replayed from graphs: the same tokens, padded sizes, and what is not replayed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.batch import ForwardMode
from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.device import DeviceExecutor
from engine.executors.graph_sizes import DEFAULT_GRAPHS, NO_GRAPHS, GraphLimits, graph_sizes, padded_size
from engine.executors.protocol import GraphKind
from engine.executors.ready import ReadyForward
from engine.observer import EngineObserver
from engine.request import Request, SamplingParams
from profiler.recorder import Recorder
from tests.support.graphed import POOL, SHAPE, Graphed, graphed_config, prompts
from tests.support.tiny_llama import Forwards, load_tiny
from traces.reader import open_trace
from traces.writer import TraceWriter

pytestmark = pytest.mark.usefixtures("one_thread")


def _graphed(page_size: int = 1, max_bs: int = DEFAULT_GRAPHS.max_bs, **config: Any) -> Graphed:
    """Decode batches alone are replayed."""
    return Graphed(GraphLimits(max_bs, 0), page_size, **config)


def _served(
    forwards: Forwards, temperature: float = 0.0
) -> tuple[list[list[int]], list[tuple[GraphKind, int]]]:
    """Outputs of requests that decode in batches of changing size, and (graph, padded rows) of each batch."""
    requests = [
        forwards.add(prompt, temperature=temperature * (i % 2), seed=i)
        for i, prompt in enumerate(prompts([3, 17, 9, 30, 1, 12]))
    ]
    for request in requests:
        forwards.prefill(request, 11)
    told = []
    for batch in ([0, 1, 2, 3, 4, 5], [5, 3, 1], [0], [4, 0, 2], [1, 2, 3, 4, 5], [2, 1]):
        result = forwards.run(decode=[requests[i] for i in batch])
        told.append((result.graph, result.padded_rows))
    return [request.output_ids for request in requests], told


def test_sizes_are_those_of_sglang() -> None:
    small = [1, 2, 4, 8, 12, *range(16, 257, 8)]
    assert graph_sizes(256) == small
    assert graph_sizes(512) == [*small, *range(272, 513, 16)]
    assert graph_sizes(600) == [*small, *range(272, 513, 16), 544, 576, 600]
    assert [graph_sizes(n) for n in (0, 1, 5, 16, 17)] == [
        [],
        [1],
        [1, 2, 4, 5],
        [1, 2, 4, 8, 12, 16],
        [1, 2, 4, 8, 12, 16, 17],
    ]


def test_a_batch_goes_to_the_next_size() -> None:
    sizes = graph_sizes(32)
    assert [padded_size(rows, sizes) for rows in (1, 3, 4, 9, 31, 32, 33)] == [1, 4, 4, 12, 32, 32, None]


@pytest.mark.parametrize("page_size", [1, 4])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_replay_gives_the_tokens_of_the_eager_path(page_size: int, temperature: float) -> None:
    graphed = _graphed(page_size)
    outputs, told = _served(graphed, temperature)
    expected, eager = _served(Forwards(load_tiny(SHAPE), page_size, pool=POOL), temperature)
    assert outputs == expected
    assert eager == [(GraphKind.NONE, 0)] * 6
    assert told == [(GraphKind.FULL, padding) for padding in (2, 1, 0, 1, 3, 0)]
    assert (graphed.recorded.captures, graphed.recorded.replays) == (4, 6)  # sizes 8, 4, 1, 2


def test_padding_rows_leave_the_padding_page_alone() -> None:
    graphed = _graphed(4)
    _served(graphed)
    pool = graphed.kv.gather(0, torch.arange(POOL // 4 + 1), graphed.kv.workspace(POOL // 4 + 1))
    assert bool((pool[:4] == 0).all())
    assert bool((pool != 0).any())


def test_extend_rows_are_not_replayed() -> None:
    graphed = _graphed()
    running, fresh = (graphed.add(p) for p in prompts([4, 6]))
    assert graphed.run([(running, 4)]).graph == GraphKind.NONE
    assert graphed.run([(fresh, 6)], decode=[running]).graph == GraphKind.NONE
    assert graphed.run(decode=[running, fresh]).graph == GraphKind.FULL


def test_batches_beyond_the_largest_graph_are_not_replayed() -> None:
    graphed = _graphed(max_bs=3)
    outputs, told = _served(graphed)
    assert told == [(GraphKind(kind), 0) for kind in (0, 1, 1, 1, 0, 1)]
    assert outputs == _served(Forwards(load_tiny(SHAPE), pool=POOL))[0]


def test_graphs_can_be_off() -> None:
    graphed = Graphed(NO_GRAPHS)
    assert graphed.executor.graphs == NO_GRAPHS
    assert _served(graphed)[1] == [(GraphKind.NONE, 0)] * 6
    graphed.executor.capture_graphs()
    assert graphed.recorded.captures == 0


def test_graphs_captured_beforehand_serve_every_batch() -> None:
    graphed = _graphed(max_bs=8)
    graphed.executor.capture_graphs()
    assert graphed.recorded.captures == len(graph_sizes(8))
    assert bool((graphed.kv.gather(1, torch.arange(POOL + 1), graphed.kv.workspace(POOL + 1)) == 0).all())
    outputs, _ = _served(graphed)
    assert graphed.recorded.captures == len(graph_sizes(8))
    assert outputs == _served(Forwards(load_tiny(SHAPE), pool=POOL))[0]
    with pytest.raises(RuntimeError, match="captured any more"):
        graphed.executor.capture_graphs()


def test_no_graph_is_larger_than_a_batch_can_be() -> None:
    graphed = _graphed(max_running_requests=3)
    graphed.executor.capture_graphs()
    assert graphed.recorded.captures == len(graph_sizes(3))


def test_the_peak_of_a_replay_counts_what_the_graph_computes_in() -> None:
    result = _decode_once(_graphed())
    assert result.memory_peak_bytes == result.memory_allocated_bytes + (1 << 40)
    ready = ReadyForward(torch.Tensor, graph_bytes=5)
    assert [ready.peak_bytes(*read) for read in ((10, 12), (10, 17), (None, 3), (3, None))] == [
        15,
        17,
        None,
        None,
    ]


def _decode_once(forwards: Forwards) -> Any:
    request = forwards.add(prompts([5])[0])
    forwards.prefill(request, 5)
    return forwards.run(decode=[request])


def _outputs(
    executor: DeviceExecutor, config: EngineConfig, clock: MonotonicClock, observer: EngineObserver | None
) -> list[list[int]]:
    engine = Engine(config, executor, clock=clock, observer=observer)
    requests = [
        Request(i, f"r{i}", prompt, SamplingParams(5 + 2 * i, 0.7 * (i == 2), seed=i, ignore_eos=True))
        for i, prompt in enumerate(prompts([20, 7, 13, 2]))
    ]
    engine.run(requests)
    return [request.output_ids for request in requests]


@pytest.mark.parametrize("mixed", [False, True])
def test_a_replay_takes_the_tokens_that_the_forward_before_samples(mixed: bool, tmp_path: Path) -> None:
    """Under overlap: replays after replays of other sizes, after prefills and before mixed forwards."""
    config = graphed_config(chunked_prefill_size=8, enable_mixed_chunk=mixed)
    clock = MonotonicClock()
    graphed = _graphed()
    path = tmp_path / "t.chunkscope"
    recorder = Recorder(TraceWriter(path, {"provenance": "measured"}), SHAPE, clock=clock)
    outputs = _outputs(graphed.executor, config, clock, recorder)
    recorder.close()
    plain = replace(config, disable_overlap_schedule=True)
    assert outputs == _outputs(DeviceExecutor(load_tiny(SHAPE), plain, clock), plain, clock, None)
    told = open_trace(path).table("forwards").select(["mode", "graph", "padded_rows", "decode_tokens"])
    forwards = told.to_pylist()
    replayed = [row for row in forwards if row["graph"] == GraphKind.FULL]
    assert len(replayed) == graphed.recorded.replays > 3
    assert {row["mode"] for row in replayed} == {ForwardMode.DECODE}
    assert all(row["decode_tokens"] + row["padded_rows"] in graph_sizes(4) for row in replayed)
    assert any(row["padded_rows"] for row in replayed)
    assert {row["padded_rows"] for row in forwards if row["graph"] == GraphKind.NONE} == {0}


def test_a_batch_that_the_plan_has_no_room_for_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.executors.device.MAX_GRAPH_PAGES", 16)
    graphed = _graphed(max_bs=2)
    requests = [graphed.add(prompt) for prompt in prompts([6, 9])]
    for request in requests:
        graphed.prefill(request, 9)
    assert graphed.run(decode=requests[:1]).graph == GraphKind.FULL
    assert graphed.run(decode=requests[1:]).graph == GraphKind.NONE  # 10 pages, of 8 for each row
