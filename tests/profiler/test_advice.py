"""Advice from traces whose cost is known: what is fitted, which requests are tried, what the words say."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine.config import CHUNKING_OFF, EngineConfig
from engine.errors import ConfigError
from engine.request import Request, SamplingParams
from profiler.advice import Advice, advise
from profiler.advice_choice import VALUES
from profiler.advice_names import LIMIT_WORDS, limit_words, option_words
from profiler.advice_point import Point, point_by_model
from profiler.advice_words import answer, basis, reasons
from profiler.advice_workload import base_config
from profiler.price_list import with_options
from profiler.price_rows import Limits, Options
from profiler.price_sums import chunk_sums
from profiler.trial import trial
from tests.support.fitted_runs import COST, HARDWARE
from tests.support.shapes import LLAMA_8B
from tests.support.simulated_trace import record_simulated
from tests.support.traces import MemoryTrace
from traces.reader import Trace


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """A stream of decodes and three long prompts, mixed; meta.json does not tell the cost model."""
    lengths = [(150 + 60 * at, 40, 0.03 * at) for at in range(12)]
    lengths += [(6000, 8, 0.1), (3000, 8, 0.3), (11_000, 8, 0.5)]
    requests = [
        Request(rid, f"r{rid}", [rid] * prompt, SamplingParams(output, ignore_eos=True), round(at_s * 1e9))
        for rid, (prompt, output, at_s) in enumerate(lengths)
    ]
    config = EngineConfig(chunked_prefill_size=2048, enable_mixed_chunk=True)
    config = config.resolve(max_total_tokens=900_000, context_length=131_072)
    path = tmp_path_factory.mktemp("advice") / "t.chunkscope"
    return record_simulated(path, requests, config, COST, shape=LLAMA_8B, meta={"hardware": HARDWARE})


@pytest.fixture(scope="module")
def advice(trace: Trace) -> Advice:
    return advise(trace, chunks=(256, 512, 2048))


def test_what_is_fitted_prices_as_the_true_cost_does(advice: Advice) -> None:
    assert advice.basis.model is not None
    for row in advice.rows:
        found = trial(advice.workload.requests, with_options(advice.config, row.options), COST)
        assert (advice.margins.value(row, "itl_max_s") or 0.0) >= (found.longest_wait_s or 0.0)
        if not row.options.mixed and not row.options.interval:
            continue  # their waits last while the queue is busy, and how long that is hangs by a thread
        felt = (found.longest_wait_s, found.gap_s(0.99), found.ttft_s(0.99))
        for limit, value in zip(VALUES, felt, strict=True):
            assert value is not None
            assert (advice.margins.value(row, limit) or 0.0) >= value
        assert row.longest_wait_s == pytest.approx(found.longest_wait_s, rel=0.05)


def test_the_recommended_options_keep_the_limits_under_the_true_cost(advice: Advice) -> None:
    mixed = next(row for row in advice.rows if row.options == Options(512, mixed=True))
    limits = Limits(*(1.15 * v for v in (mixed.longest_wait_s, mixed.itl_p99_s, mixed.ttft_p99_s) if v))
    chosen = advice.choose(limits).row
    assert chosen is not None
    assert chosen.options.mixed
    found = trial(advice.workload.requests, with_options(advice.config, chosen.options), COST)
    felt = (found.longest_wait_s, found.gap_s(0.99), found.ttft_s(0.99))
    for value, limit in zip(felt, (limits.itl_max_s, limits.itl_p99_s, limits.ttft_p99_s), strict=True):
        assert value is not None
        assert limit is not None
        assert value <= limit


def test_margins_are_those_of_the_fit(advice: Advice) -> None:
    assert advice.margins.prompts.keys() == {None, 256, 512, 2048}
    whole = advice.margins.prompts[None]
    for chunk in (512, 2048):
        assert (
            0 < advice.margins.prompts[chunk] < min(0.2, whole)
        )  # no forward was as large as a whole prompt
    assert 0 <= advice.margins.decode < 0.1
    tight = Limits(itl_max_s=min(row.longest_wait_s or 9.9 for row in advice.rows))
    assert advice.choose(tight).row is None


def test_the_point_is_the_cost_models_where_points_do_not_tell_it(advice: Advice) -> None:
    point = advice.point
    assert not point.by_points
    assert point.low <= point.tokens <= point.high
    exact = point_by_model(COST, advice.workload.longest_prompt)
    assert exact.low == exact.tokens == exact.high
    assert point.tokens == pytest.approx(exact.tokens, rel=0.25)
    sizes = range(1, 4096)
    rates = {size: size / COST.seconds(chunk_sums(size)) for size in sizes}
    best = max(rates.values())
    assert exact.tokens == pytest.approx(next(s for s in sizes if rates[s] >= 0.95 * best), rel=0.03)


def test_short_prompts_do_not_end_the_range_of_the_point(tmp_path: Path) -> None:
    short = [Request(rid, f"r{rid}", [rid] * 20, SamplingParams(4, ignore_eos=True)) for rid in range(3)]
    config = EngineConfig(chunked_prefill_size=2048).resolve(max_total_tokens=9_000, context_length=131_072)
    trace = record_simulated(
        tmp_path / "t.chunkscope", short, config, COST, shape=LLAMA_8B, meta={"hardware": HARDWARE}
    )
    assert advise(trace, chunks=(64,)).point.tokens > 100


def test_the_base_is_the_runs_own_options_with_another_page_size(trace: Trace) -> None:
    told = EngineConfig(**trace.meta["engine"])
    whole = {"chunked_prefill_size": CHUNKING_OFF, "enable_mixed_chunk": False}
    assert base_config(trace) == replace(told, **whole)
    assert base_config(trace, 64) == replace(told, **whole, page_size=64, max_total_tokens=899_968)
    with pytest.raises(ConfigError, match="no multiple of --page-size 64"):
        advise(trace, page_size=64, chunks=(500,))


def test_a_long_workload_is_cut_to_its_busiest_stretch(trace: Trace) -> None:
    advice = advise(trace, chunks=(512,), budget_s=0.1)
    assert advice.workload.kind == "stretch"
    everything = trace.table("requests").num_rows
    assert 1 < len(advice.workload.requests) < everything == advice.workload.of_requests
    told = dict(basis(advice))["workload"]
    assert told.startswith(
        f"{len(advice.workload.requests)} requests of {everything}, those that arrive from "
    )


def test_traces_of_different_models_are_not_fitted_together(trace: Trace) -> None:
    model = {**trace.meta["model"], "num_layers": 3}
    other = MemoryTrace({}, {**trace.meta, "model": model})
    with pytest.raises(ConfigError, match="different models"):
        advise([trace, other])
    with pytest.raises(ConfigError, match="tells no model"):
        advise(MemoryTrace({}))


def test_words_say_what_to_take_and_why(advice: Advice) -> None:
    chosen = advice.choice.row
    assert chosen is not None
    assert answer(advice) == f"Take {' '.join(chosen.options.arguments())}."
    assert any(line.startswith("Longest decode wait ") for line in reasons(advice))
    within = advice.under(Limits(itl_max_s=10))
    assert any("with a margin of" in line and "within 10 s" in line for line in reasons(within))
    facts = dict(basis(advice))
    assert facts["workload"] == f"the trace's {advice.workload.of_requests} requests"
    assert facts["forward times"].startswith("fitted to ")
    assert facts["activations"] == "estimated from the shape"


@pytest.mark.parametrize(
    ("limits", "start"),
    [
        (Limits(itl_max_s=1e-4), "No option meets ITL max 0.1 ms: a decode forward alone takes "),
        (Limits(ttft_p99_s=1e-4), "No option meets TTFT p99 0.1 ms: the least TTFT p99 is "),
        (
            Limits(itl_p99_s=1e-4, ttft_p99_s=1e-4),
            "No option meets ITL p99 0.1 ms and TTFT p99 0.1 ms: a decode forward alone takes ",
        ),
    ],
)
def test_words_name_the_limit_that_stands_in_the_way(advice: Advice, limits: Limits, start: str) -> None:
    refused = advice.under(limits)
    assert answer(refused).startswith(start)
    assert reasons(refused) == [f"Without limits it is {_arguments(advice)}."]
    assert refused.interval() is None


def test_words_name_limits_that_do_not_go_together(advice: Advice) -> None:
    waits = [advice.margins.value(row, "itl_max_s") or 0.0 for row in advice.rows]
    firsts = [advice.margins.value(row, "ttft_p99_s") or 0.0 for row in advice.rows]
    pairs = [Limits(itl_max_s=1.001 * a, ttft_p99_s=1.001 * b) for a in waits for b in firsts]
    apart = next(limits for limits in pairs if _apart(advice.under(limits)))
    told = answer(advice.under(apart))
    assert " together: what keeps the rest has ITL max " in told
    assert "; what keeps the rest has TTFT p99 " in told


def test_the_interval_is_the_points_or_the_sizes_that_keep_the_limits_too(advice: Advice) -> None:
    point = Point(500, 470, 530, by_points=False)
    paged = replace(advice, point=point, config=replace(advice.config, page_size=64)).under(Limits())
    assert paged.choice.row is not None
    assert paged.choice.row.options.chunk_tokens == paged.enough_tokens == 512
    assert paged.interval() == (512, 576)
    small = next(row for row in advice.rows if row.options == Options(256, mixed=True))
    middle = next(row for row in advice.rows if row.options == Options(512, mixed=True))
    raised = [advice.margins.value(row, "itl_max_s") or 0.0 for row in (small, middle)]
    between = advice.under(Limits(itl_max_s=1.001 * raised[1]))
    assert between.choice.row == middle
    assert 256 < between.enough_tokens <= 512
    assert between.interval() == (512, 512)
    later = replace(between, point=Point(2048, 2048, 2048, by_points=False)).under(between.choice.limits)
    assert later.choice.row == middle
    assert later.interval() == (256, 512)


def test_a_point_where_mixing_does_not_pay_gives_way_to_a_larger_chunk_in_words(advice: Advice) -> None:
    dear = [
        replace(each, ttft_long_s=3.0 * (each.ttft_long_s or 0.0))
        if each.options == Options(256, True)
        else each
        for each in advice.rows
    ]
    point = Point(256, 200, 300, by_points=False)
    small = replace(advice, rows=tuple(dear), point=point).under(Limits())
    assert small.choice.row is not None
    assert small.choice.row.options == Options(512, mixed=True)
    assert small.interval() == (512, 2048)
    assert "but in such chunks mixing makes the longest prompt's first token " in reasons(small)[0]


def _arguments(advice: Advice) -> str:
    assert advice.choice.row is not None
    return " ".join(advice.choice.row.options.arguments())


def _apart(advice: Advice) -> bool:
    bindings: Sequence[object] = advice.choice.bindings
    return bool(bindings) and not advice.choice.bindings[0].alone and len(bindings) == 2


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (36.0, "36 s"),
        (0.2, "200 ms"),
        (1e-4, "0.1 ms"),
        (1.25, "1.25 s"),
        (0.0605, "60.5 ms"),
        (1e6, "1,000,000 s"),
    ],
)
def test_a_limit_is_repeated_as_it_was_given(seconds: float, said: str) -> None:
    assert limit_words(seconds) == said


def test_words_say_whose_the_point_is(advice: Advice, trace: Trace) -> None:
    span = f"{advice.point.tokens:,} tokens [{advice.point.low:,}, {advice.point.high:,}]"
    assert f"{span} by the cost model fitted to the forwards of the run" in reasons(advice)[0]
    two = advise([trace, trace], chunks=(512,))
    assert "by the cost model fitted to the forwards of all 2 runs together" in reasons(two)[0]
    assert "in all 2 runs together" in dict(basis(two))["point"]
    own = replace(two, point=Point(427, 427, 427, by_points=True, num_sizes=9))
    assert "427 tokens by the forwards of all 2 runs together" in reasons(own)[0]
    assert dict(basis(own))["point"].startswith("427 tokens, of 9 sizes of ")
    alone = replace(own, num_traces=1)
    assert "at 427 tokens: " in reasons(alone)[0] or "at 427 tokens." in reasons(alone)[0]
    exact = replace(alone, basis=replace(own.basis, model=None), point=replace(own.point, by_points=False))
    assert "427 tokens by the run's own cost model" in reasons(exact)[0]


def test_the_margins_told_are_those_of_the_sentences(advice: Advice) -> None:
    limits = Limits(itl_max_s=10.0, itl_p99_s=10.0, ttft_p99_s=36.0)
    within = advice.under(limits)
    assert within.choice.row is not None
    told = dict(basis(within))["margins"]
    assert told.startswith(f"of {option_words(within.choice.row.options)}, ")
    for name, words in LIMIT_WORDS.items():
        margin = f"{within.margins.of(within.choice.row, name) * 100:.0f} %"
        (sentence,) = (each for each in reasons(within) if each.startswith(words))
        assert f"with a margin of {margin}: within " in sentence
        assert f"{words} {margin} ({within.margins.source(within.choice.row, name)})" in told


def test_no_smaller_chunk_is_hoped_for_where_decodes_alone_are_too_slow(advice: Advice) -> None:
    decode_s = min(row.decode_forward_s or 9.9 for row in advice.rows)
    hopeless = advice.under(Limits(itl_max_s=decode_s * (1 + advice.margins.decode) * 0.999))
    assert hopeless.choice.row is None
    assert not hopeless.smaller_may_help
    assert "a decode forward alone takes " in answer(hopeless)
    least_s = min(advice.margins.value(row, "itl_max_s") or 9.9 for row in advice.rows)
    hopeful = advice.under(Limits(itl_max_s=0.98 * least_s))
    assert hopeful.smaller_may_help
    assert "the least ITL max is " in answer(hopeful)
    assert not advice.under(Limits(ttft_p99_s=1e-4)).smaller_may_help
    assert not advice.smaller_may_help


def test_what_is_unknown_in_every_row_is_said_once(advice: Advice) -> None:
    assert "KV tokens" not in dict(basis(advice))
    assert advice.memory is not None
    rows = tuple(replace(row, kv_tokens=None) for row in advice.rows)
    for memory, said in (
        (replace(advice.memory, on_cpu=True), "on a CPU"),
        (replace(advice.memory, memory_bytes=None), "size of the device's memory"),
        (None, "tells no model"),
    ):
        assert said in dict(basis(replace(advice, rows=rows, memory=memory)))["KV tokens"]
