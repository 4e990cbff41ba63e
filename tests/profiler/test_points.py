"""Points of a trace's forwards by layout, as far as its columns tell."""

from typing import Any

import pytest

from engine.batch import ForwardMode
from profiler.points import (
    NO_PREFIX,
    Layout,
    Rows,
    decode_points,
    prefill_points,
    trace_points,
)
from profiler.saturation import decode_saturation, saturation, saturations
from tests.support.traces import MemoryTrace, forward

ONE: dict[str, Any] = {"num_extend_seqs": 1, "num_decode_seqs": 0, "decode_tokens": 0}


def extend(forward_id: int, tokens: int, prefix: int | None = 0, **more: Any) -> dict[str, Any]:
    values = {"extend_tokens": tokens, "prefix_tokens": prefix, **ONE, **more}
    return forward(forward_id, 0, 10 + tokens, ForwardMode.EXTEND, **values)


def decode(forward_id: int, rows: int, context: int | None = 100, **more: Any) -> dict[str, Any]:
    kv_tokens = None if context is None else rows * context
    values = {"num_extend_seqs": 0, "extend_tokens": 0, "decode_tokens": rows, "kv_tokens": kv_tokens, **more}
    return forward(forward_id, 0, 10 + rows, ForwardMode.DECODE, **values)


def trace_of(*forwards: dict[str, Any]) -> MemoryTrace:
    return MemoryTrace({"forwards": forwards})


def sizes_by_words(trace: MemoryTrace) -> dict[str, list[int]]:
    return {of.layout.words: of.points["tokens"].to_list() for of in trace_points(trace)}


def test_layouts_are_told_apart_by_rows_and_by_octaves_of_prefix_or_context() -> None:
    trace = trace_of(
        extend(0, 64),
        extend(1, 32),
        extend(2, 64, 4096),
        extend(3, 48, 5000),
        extend(4, 16, 8192),
        extend(5, 70, num_extend_seqs=2),
        decode(6, 4),
        decode(7, 8, 127),
        decode(8, 2, 128),
    )
    assert sizes_by_words(trace) == {
        "one prompt a forward, no prefix": [64, 32],
        "one prompt a forward, prefix of 4,096 to 5,000 tokens": [64, 48],
        "one prompt a forward, prefix of 8,192 tokens": [16],
        "several prompts a forward, no prefix": [70],
        "decode rows alone, context of 100 to 127 tokens": [4, 8],
        "decode rows alone, context of 128 tokens": [2],
    }


def test_those_of_more_sizes_come_first() -> None:
    trace = trace_of(extend(0, 64), extend(1, 64), decode(2, 4), decode(3, 5))
    assert [of.layout.rows for of in trace_points(trace)] == [Rows.DECODE, Rows.ONE_PROMPT]


def test_mixed_untimed_and_watched_forwards_are_no_points() -> None:
    mixed = {"extend_tokens": 5, "decode_tokens": 1, "num_extend_seqs": 1}
    untimed = {**extend(1, 64), "end_ns": None}
    trace = MemoryTrace(
        {
            "forwards": [extend(0, 8), untimed, forward(2, 0, 9, ForwardMode.MIXED, **mixed), extend(3, 9)],
            "kernels": [{"forward_id": 3, "start_ns": 0, "end_ns": 1}],
        }
    )
    assert sizes_by_words(trace) == {"one prompt a forward, no prefix": [8]}


def test_what_an_imported_trace_lacks_stays_unknown() -> None:
    """Without a mode the tokens tell it; nothing tells prefix, context and the number of prompts."""
    unknown_mode = [{**extend(0, 64), "mode": None}, {**decode(1, 4), "mode": None}]
    assert sizes_by_words(trace_of(*unknown_mode)) == {
        "one prompt a forward, no prefix": [64],
        "decode rows alone, context of 100 tokens": [4],
    }
    trace = trace_of(extend(0, 64, None), extend(1, 32, num_extend_seqs=None), decode(2, 4, None))
    assert sizes_by_words(trace) == {
        "one prompt a forward, prefix unknown": [64],
        "prompts only, their number unknown, no prefix": [32],
        "decode rows alone, context unknown": [4],
    }
    assert prefill_points(trace).layout == NO_PREFIX
    assert prefill_points(trace).points.is_empty()
    rows_only = {**decode(0, 4), "decode_tokens": None, "num_decode_seqs": 6}
    assert decode_points(trace_of(rows_only)).points["tokens"].to_list() == [6]
    nothing = forward(0, 0, 5) | {"mode": None}
    assert trace_points(trace_of(nothing)) == ()


@pytest.mark.parametrize(("prefix", "sizes"), [(0, [64]), (4096, [48]), (7000, [48]), (9000, [])])
def test_a_prefix_finds_its_octave(prefix: int, sizes: list[int]) -> None:
    trace = trace_of(extend(0, 64), extend(1, 48, 4096))
    assert prefill_points(trace, prefix).points["tokens"].to_list() == sizes


def test_attentions_work_follows_the_layout() -> None:
    behind = Layout(low=1000, high=1000)
    assert behind.work.of(10.0) == 2 * (10 * 1000 + 10 * 11 / 2)  # type: ignore[arg-type]
    assert Layout(Rows.DECODE, 100, 100).work.of(8.0) == 8.0  # type: ignore[arg-type]


def test_each_layout_has_its_point() -> None:
    """Forwards of up to 100 tokens take 1 ms, behind the prefix of up to 50, and of 16 rows."""
    sizes = [8, 16, 32, 64, 128, 256, 512, 1024, 2048]

    def times(knee: int, tokens: int) -> int:
        return 1_000_000 * max(tokens, knee) // knee

    forwards = [extend(i, n) | {"end_ns": times(100, n)} for i, n in enumerate(sizes)]
    forwards += [extend(20 + i, n, 4096) | {"end_ns": times(50, n)} for i, n in enumerate(sizes)]
    forwards += [decode(40 + i, n // 4, 600) | {"end_ns": times(16, n // 4)} for i, n in enumerate(sizes)]
    trace = trace_of(*forwards)
    assert saturation(trace).tokens == pytest.approx(95, abs=3)
    assert saturation(trace, prefix=4096).tokens == pytest.approx(48, abs=3)
    assert decode_saturation(trace).tokens == pytest.approx(15, abs=2)
    assert {found.layout for found in saturations(trace)} == {
        "one prompt a forward, no prefix",
        "one prompt a forward, prefix of 4,096 tokens",
        "decode rows alone, context of 600 tokens",
    }


def test_a_trace_without_forwards_has_no_layout() -> None:
    assert trace_points(MemoryTrace({})) == ()
    assert decode_saturation(MemoryTrace({})).status == "too_few_points"
