"""Forwards with prompts, replayed in pieces: the same tokens, keys and values, whatever is padded."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.batch import ForwardMode
from engine.clock import MonotonicClock
from engine.engine import Engine
from engine.executors.graph_sizes import DEFAULT_GRAPHS, NO_GRAPHS, GraphLimits, token_sizes
from engine.executors.protocol import ForwardResult, GraphKind
from engine.observer import EngineObserver
from engine.operators import Operator
from engine.request import Request, SamplingParams
from profiler.kernels import KernelProbe, KernelRecorder
from profiler.recorder import Recorder
from tests.support.graphed import POOL, SHAPE, Graphed, graphed_config, prompts
from traces.reader import open_trace
from traces.writer import TraceWriter

pytestmark = pytest.mark.usefixtures("one_thread")

PIECES = GraphLimits(0, 40)  # 16, 32 and 40 tokens
PIECE_COUNT = SHAPE.num_layers + 1


def _stored(forwards: Graphed) -> torch.Tensor:
    """Keys and values of all layers and pages, the padding page's first."""
    pages = torch.arange(POOL // forwards.page_size + 1)
    return torch.stack(
        [forwards.kv.gather(i, pages, forwards.kv.workspace(len(pages))) for i in range(SHAPE.num_layers)]
    )


def _served(forwards: Graphed) -> tuple[list[list[int]], list[ForwardResult]]:
    """Outputs and results of extend, mixed and decode forwards of all kinds of rows."""
    first, second, third, fourth = (
        forwards.add(prompt, temperature=0.9 * (i == 1), seed=i)
        for i, prompt in enumerate(prompts([3, 30, 17, 45]))
    )
    results = [
        forwards.run([(first, 3), (second, 13)]),  # 16 tokens: nothing is padded
        forwards.run([(second, 17)], decode=[first]),
        forwards.run([(third, 1)]),
        forwards.run([(third, 16), (fourth, 20)], decode=[second, first]),
        forwards.run([(fourth, 25)]),
        forwards.run(decode=[first, second, third, fourth]),
    ]
    return [r.output_ids for r in (first, second, third, fourth)], results


def test_sizes_are_few() -> None:
    assert token_sizes(512) == [16, 32, 64, 128, 192, 256, 320, 384, 448, 512]
    assert token_sizes(2048)[-9:] == [768, 832, 896, 960, 1024, 1280, 1536, 1792, 2048]
    assert [token_sizes(n) for n in (0, 1, 16, 40)] == [[], [1], [16], [16, 32, 40]]


@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("qk_norm", [False, True])
def test_pieces_give_the_tokens_keys_and_values_of_the_plain_path(page_size: int, qk_norm: bool) -> None:
    shape = replace(SHAPE, qk_norm=qk_norm)
    pieces, plain = (Graphed(limits, page_size, shape=shape) for limits in (PIECES, NO_GRAPHS))
    outputs, results = _served(pieces)
    expected, eager = _served(plain)
    assert outputs == expected
    torch.testing.assert_close(_stored(pieces), _stored(plain), rtol=1e-5, atol=1e-5)
    assert {result.graph for result in eager} == {GraphKind.NONE}
    told = [(result.graph.name, result.padded_rows) for result in results]
    assert told == [*(("PIECEWISE", n) for n in (0, 14, 15, 2, 7)), ("NONE", 0)]
    assert pieces.recorded.captures == 3 * PIECE_COUNT
    assert pieces.recorded.replays == 5 * PIECE_COUNT


rows = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 14)), min_size=1, max_size=4)


@settings(max_examples=12, deadline=None)
@given(rows, st.integers(0, 3), st.sampled_from([1, 4, 16, 64]))
def test_any_rows_give_what_the_plain_path_gives(
    extends: list[tuple[int, int]], decodes: int, page_size: int
) -> None:
    """Rows of (prefix, new tokens) beside decode rows: middle and last chunks, pages larger than all rows."""
    given_ = prompts([prefix + new + new % 2 for prefix, new in extends] + [2] * decodes)
    outcome = []
    for limits in (GraphLimits(0, 64), NO_GRAPHS):
        forwards = Graphed(limits, page_size)
        requests = [forwards.add(prompt) for prompt in given_[: POOL // page_size]]
        cut, running = requests[: len(extends)], requests[len(extends) :]
        for request, (prefix, _) in zip(cut, extends, strict=False):
            if prefix:
                forwards.run([(request, prefix)])
        for request in running:
            forwards.run([(request, 2)])
        result = forwards.run([(r, new) for r, (_, new) in zip(cut, extends, strict=False)], decode=running)
        outcome.append((result.next_token_ids, _stored(forwards)))
    (found, stored), (expected, plain) = outcome
    assert found == expected
    torch.testing.assert_close(stored, plain, rtol=1e-5, atol=1e-5)


def test_padding_tokens_store_nothing_and_are_never_read() -> None:
    """Between forwards all that lies beyond their tokens in the buffers becomes NaN."""
    poisoned, plain = Graphed(PIECES, 4), Graphed(NO_GRAPHS, 4)
    buffers = poisoned.executor._pieces._buffers
    run = poisoned.executor.forward

    def forward(batch: object) -> ForwardResult:
        for rows in (buffers.residual, buffers.qkv, buffers.attended, buffers.update):
            rows.fill_(torch.nan)
        buffers.input_ids.fill_(SHAPE.vocab_size - 1)
        return run(batch)

    poisoned.executor.forward = forward
    outputs, _ = _served(poisoned)
    assert outputs == _served(plain)[0]
    stored = _stored(poisoned)
    assert not stored.isnan().any()
    assert bool((stored[:, :4] == 0).all())
    torch.testing.assert_close(stored, _stored(plain), rtol=1e-5, atol=1e-5)


def test_buffers_stay_in_place_and_are_no_more_with_more_layers() -> None:
    def addresses(forwards: Graphed) -> list[int]:
        buffers = forwards.executor._pieces._buffers
        return [getattr(buffers, name).data_ptr() for name in buffers.__slots__]

    forwards = Graphed(PIECES)
    before = addresses(forwards)
    _served(forwards)
    assert addresses(forwards) == before
    for pieces in forwards.executor._pieces._pieces.values():
        assert [getattr(pieces._buffers, n).data_ptr() for n in pieces._buffers.__slots__] == before


def test_what_is_captured_beforehand_serves_every_forward() -> None:
    forwards = Graphed(PIECES)
    forwards.executor.capture_graphs()
    assert forwards.recorded.captures == 3 * PIECE_COUNT
    assert bool((_stored(forwards) == 0).all())
    assert _served(forwards)[0] == _served(Graphed(NO_GRAPHS))[0]
    assert forwards.recorded.captures == 3 * PIECE_COUNT
    forwards.executor.capture_graphs()
    assert forwards.recorded.captures == 3 * PIECE_COUNT


def test_more_tokens_than_the_largest_pieces_are_not_replayed() -> None:
    forwards = Graphed(GraphLimits(0, 20))
    assert [result.graph.name for result in _served(forwards)[1]] == [
        *("PIECEWISE", "PIECEWISE", "PIECEWISE", "NONE", "NONE", "NONE")
    ]


@pytest.mark.parametrize(
    ("limits", "config", "expected"),
    [
        (DEFAULT_GRAPHS, {}, GraphLimits(128, POOL)),
        (DEFAULT_GRAPHS, {"chunked_prefill_size": 24, "max_running_requests": 5}, GraphLimits(5, 24)),
        (DEFAULT_GRAPHS, {"chunked_prefill_size": -1}, GraphLimits(128, POOL)),
        (GraphLimits(3, 0), {}, GraphLimits(3, 0)),
    ],
)
def test_no_graph_is_larger_than_a_forward_can_be(
    limits: GraphLimits, config: dict[str, int], expected: GraphLimits
) -> None:
    assert Graphed(limits, **config).executor.graphs == expected


def test_the_peak_counts_what_the_largest_piece_computes_in() -> None:
    forwards = Graphed(PIECES)
    result = forwards.run([(forwards.add(prompts([5])[0]), 5)])
    assert result.memory_peak_bytes == result.memory_allocated_bytes + (1 << 40)


def _outputs(
    graphed: Graphed, clock: MonotonicClock, observer: EngineObserver | None = None, **config: int
) -> list[list[int]]:
    """Of requests that are prefilled in chunks and decode beside each other; one is aborted half-done."""
    resolved = graphed_config(graphed.page_size, **config)
    engine = Engine(resolved, graphed.executor, clock=clock, observer=observer)
    requests = [
        Request(i, f"r{i}", prompt, SamplingParams(6 + i, 0.7 * (i == 2), seed=i, ignore_eos=True))
        for i, prompt in enumerate(prompts([40, 7, 23, 2, 50]))
    ]
    for request in requests:
        engine.submit(request)
    while engine.has_work:
        half_done = requests[4].prefix_len
        if half_done:
            engine.abort(4)
        engine.step()
    assert 0 < half_done < requests[4].prompt_len
    return [request.output_ids for request in requests]


@pytest.mark.parametrize(("page_size", "chunk"), [(1, 16), (16, 32)])
@pytest.mark.parametrize("mixed", [False, True])
def test_pieces_and_whole_graphs_hand_their_samples_on(
    page_size: int, chunk: int, mixed: bool, tmp_path: Path
) -> None:
    """Under overlap, with an abort on the way; what was replayed stands in the trace."""
    clock = MonotonicClock()
    config = {"chunked_prefill_size": chunk, "enable_mixed_chunk": mixed}
    graphed = Graphed(GraphLimits(8, 64), page_size, chunked_prefill_size=chunk)
    path = tmp_path / "t.chunkscope"
    recorder = Recorder(TraceWriter(path, {"provenance": "measured"}), SHAPE, clock=clock)
    outputs = _outputs(graphed, clock, recorder, **config)
    recorder.close()
    plain = Graphed(NO_GRAPHS, page_size)
    assert outputs == _outputs(plain, clock, **config, disable_overlap_schedule=True)
    columns = ["mode", "graph", "padded_rows", "extend_tokens", "decode_tokens"]
    forwards = open_trace(path).table("forwards").select(columns).to_pylist()
    modes = {ForwardMode.EXTEND, ForwardMode.DECODE, *([ForwardMode.MIXED] if mixed else [])}
    assert {row["mode"] for row in forwards} == modes
    for row in forwards:
        tokens = row["extend_tokens"] + row["decode_tokens"]
        if row["mode"] == ForwardMode.DECODE:
            assert row["graph"] == GraphKind.FULL
        elif tokens <= chunk:
            assert row["graph"] == GraphKind.PIECEWISE
            assert tokens + row["padded_rows"] in token_sizes(chunk)
        else:
            assert (row["graph"], row["padded_rows"]) == (GraphKind.NONE, 0)


def test_watched_pieces_add_up(tmp_path: Path) -> None:
    """On a CPU a replay's operators belong to none in particular; all else is told as without graphs."""
    clock = MonotonicClock()
    probe = KernelProbe(clock, every=1)
    graphed = Graphed(GraphLimits(0, 64), clock=clock, probe=probe)
    path = tmp_path / "t.chunkscope"
    recorder = Recorder(TraceWriter(path, {"provenance": "measured"}), SHAPE, clock=clock)
    observer = KernelRecorder(recorder, probe, path / "rank-0" / "profiles", SHAPE)
    _outputs(graphed, clock, observer, chunked_prefill_size=16, enable_mixed_chunk=True)
    recorder.close()
    trace = open_trace(path)
    kernels = trace.table("kernels").to_pylist()
    replayed = [row for row in trace.table("forwards").to_pylist() if row["graph"] == GraphKind.PIECEWISE]
    assert {row["mode"] for row in replayed} == {ForwardMode.EXTEND, ForwardMode.MIXED}
    for forward in replayed:
        own = [row for row in kernels if row["forward_id"] == forward["forward_id"]]
        for operator, column in (
            (Operator.ATTENTION_EXTEND, "flops_attention_extend"),
            (Operator.ATTENTION_DECODE, "flops_attention_decode"),
            (Operator.HEAD, "flops_head"),
        ):
            assert sum(row["flops"] or 0 for row in own if row["op"] == operator) == forward[column]
        assert {row["layer"] for row in own if row["op"] == Operator.COPY} == set(range(SHAPE.num_layers))
        taken = sum(row["end_ns"] - row["start_ns"] for row in own)
        assert 0 < taken <= forward["end_ns"] - forward["start_ns"]
