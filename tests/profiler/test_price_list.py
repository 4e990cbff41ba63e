"""A price list: its numbers against the trials and the cost model they come from."""

from typing import Any

import pytest

from engine.arithmetic import ForwardSums, forward_sums
from engine.batch import ForwardBatch
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.request import Request, SamplingParams
from profiler.price_list import chunk_ladder, options_of, price_list, with_options
from profiler.price_rows import Limits, Options
from profiler.price_sums import chunk_sums, decode_sums
from profiler.trial import trial

MS = 1_000_000


class Cost:
    """5 ms to read the weights or 20 us a token, whichever is longer; 2 ns a pair."""

    def seconds(self, sums: ForwardSums) -> float:
        pairs = sums.pairs_prefix + sums.pairs_causal + sums.pairs_decode
        return max(5e-3, 20e-6 * sums.tokens) + 2e-9 * pairs

    def forward_ns(self, batch: ForwardBatch) -> int:
        return round(self.seconds(forward_sums(batch)) * 1e9)


class Room:
    """A KiB a token of a forward, none known of whole prompts, and a KV token a KiB of what 1 MiB leaves."""

    def activation_bytes(self, chunk_tokens: int | None) -> int | None:
        return None if chunk_tokens is None else 1024 * chunk_tokens

    def kv_tokens(self, chunk_tokens: int | None) -> int | None:
        return None if chunk_tokens is None else 1024 - chunk_tokens


def config(**options: Any) -> EngineConfig:
    return EngineConfig(page_size=16, **options).resolve(max_total_tokens=400_000, context_length=32_768)


def workload() -> list[Request]:
    decodes = [Request(i, f"d{i}", [i] * 20, SamplingParams(200, ignore_eos=True)) for i in range(3)]
    return [*decodes, Request(3, "long", [9] * 4000, SamplingParams(5, ignore_eos=True), 50 * MS)]


def test_a_row_is_its_trial() -> None:
    options = options_of((512,))
    assert options == (Options(None), Options(512), Options(512, mixed=True), Options(512, interval=1))
    base = config(prefill_decode_interval=7)
    rows = price_list(Cost(), workload(), base, options)
    assert [row.options for row in rows] == [*options]
    for row in rows:
        found = trial(workload(), with_options(base, row.options), Cost())
        assert row.longest_wait_s == found.longest_wait_s
        assert (row.itl_p99_s, row.ttft_p99_s) == (found.gap_s(0.99), found.ttft_s(0.99))
        assert row.ttft_long_s == found.ttft_ns[3] / 1e9
        assert row.forwards == found.longest_prompt_forwards
        assert (row.activation_bytes, row.kv_tokens) == (None, None)
    whole, plain, mixed, interval = rows
    assert [row.forwards for row in rows] == [1, 8, 8, 8]
    assert whole.against_whole == 0
    assert plain.against_whole == pytest.approx(plain.ttft_long_s / whole.ttft_long_s - 1)
    assert plain.longest_wait_s >= whole.longest_wait_s > 4 * mixed.longest_wait_s
    assert interval.longest_wait_s < plain.longest_wait_s / 4


def test_forward_times_and_shares_are_the_cost_models() -> None:
    whole, chunked = price_list(Cost(), workload(), config(), (Options(None), Options(512)))
    assert chunked.first_forward_s == Cost().seconds(chunk_sums(512))
    assert chunked.last_forward_s == Cost().seconds(chunk_sums(512, 3488))
    assert whole.first_forward_s == whole.last_forward_s == Cost().seconds(chunk_sums(4000))
    assert chunked.decode_forward_s == pytest.approx(5e-3, rel=1e-2)


def test_a_chunk_loses_what_a_long_prompt_takes_longer_by() -> None:
    sizes = (None, 80, 160, 400, 4000)
    rows = price_list(Cost(), workload(), config(), [Options(size) for size in sizes])

    def seconds(chunk: int) -> float:
        last = 4000 - chunk
        starts = range(0, 4000, chunk)
        return sum(Cost().seconds(chunk_sums(chunk, start, logits=start == last)) for start in starts)

    best = min(seconds(size) for size in (80, 160, 400, 250, 500, 1000, 2000, 4000))
    shares = [best / seconds(size or 4000) for size in sizes]
    assert [row.plateau_share for row in rows] == pytest.approx(shares)
    assert shares[0] == shares[-1]
    assert max(shares) == pytest.approx(1)


def test_attention_alone_makes_no_chunk_size_better_than_another() -> None:
    class Pairs(Cost):
        def seconds(self, sums: ForwardSums) -> float:
            return 1e-9 * (sums.pairs_prefix + sums.pairs_causal) + 1e-6 * sums.tokens

    rows = price_list(Pairs(), workload(), config(), [Options(size) for size in (None, 64, 1024)])
    assert [row.plateau_share for row in rows] == pytest.approx([1, 1, 1])


def test_memory_is_asked_for_each_chunk_size() -> None:
    whole, chunked = price_list(Cost(), workload(), config(), (Options(None), Options(512)), memory=Room())
    assert (whole.activation_bytes, whole.kv_tokens) == (None, None)
    assert (chunked.activation_bytes, chunked.kv_tokens) == (512 * 1024, 512)


def test_whole_prompts_are_compared_with_even_if_not_asked_for() -> None:
    (row,) = price_list(Cost(), workload(), config(), (Options(128),))
    assert row.against_whole is not None
    assert row.against_whole > 0


def test_limits_are_broken_by_name() -> None:
    whole, *_ = price_list(Cost(), workload(), config(), (Options(None),))
    assert whole.breaks(Limits(itl_max_s=1e-3, ttft_p99_s=1e-3)) == ("itl_max_s", "ttft_p99_s")
    assert whole.breaks(Limits()) == ()


def test_options_that_do_not_go_with_the_rest_are_refused() -> None:
    with pytest.raises(ConfigError, match="no multiple of --page-size 16"):
        price_list(Cost(), workload(), config(), (Options(500),))


@pytest.mark.parametrize(
    ("longest", "options", "expected"),
    [
        (1000, {}, (64, 128, 256, 512)),
        (1000, {"also": (300,)}, (128, 256, 300, 512)),
        (1000, {"also": (40,)}, (16, 32, 40, 64, 128, 256, 512)),
        (300, {"page_size": 48, "also": (100,)}, (96, 144, 288)),
        (300, {"least": 100}, (100, 128, 256)),
        (5000, {"also": (4096, 256)}, (64, 128, 256, 512, 1024, 2048, 4096)),
        (10, {"page_size": 16}, (16,)),
    ],
)
def test_the_ladder_is_of_page_multiples(longest: int, options: Any, expected: tuple[int, ...]) -> None:
    assert chunk_ladder(longest, **options) == expected


def test_sums_of_forwards_that_nobody_ran() -> None:
    assert chunk_sums(100, 50) == ForwardSums(100, 0, 1, 5000, 5050, 0, 50, 150)
    assert chunk_sums(100, logits=False).rows_with_logits == 0
    assert decode_sums(6, 300) == ForwardSums(0, 6, 6, 0, 0, 1800, 0, 1800)
