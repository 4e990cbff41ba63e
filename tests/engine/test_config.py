"""Engine options: SGLang's defaults, and one line for each value that cannot be honoured."""

from typing import Any

import pytest

from engine.config import CHUNKING_OFF, SCHEDULE_POLICIES, EngineConfig
from engine.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"page_size": 0}, "--page-size 0 is below 1: give 1 or more"),
        (
            {"chunked_prefill_size": 0},
            "--chunked-prefill-size 0: give -1 (off) or a number of tokens above 0",
        ),
        (
            {"chunked_prefill_size": 100, "page_size": 16},
            "--chunked-prefill-size 100 is no multiple of --page-size 16: give 96",
        ),
        (
            {"max_prefill_tokens": 2**70},
            f"--max-prefill-tokens {2**70} is above {2**31 - 1}: give {2**31 - 1} or less",
        ),
        (
            {"chunked_prefill_size": 2**40},
            f"--chunked-prefill-size {2**40} is above {2**31 - 1}: give {2**31 - 1} or less",
        ),
        ({"max_prefill_tokens": 0}, "--max-prefill-tokens 0 is below 1: give 1 or more"),
        ({"max_running_requests": 0}, "--max-running-requests 0 is below 1: give 1 or more"),
        ({"max_total_tokens": 0}, "--max-total-tokens 0 is below 1: give 1 or more"),
        (
            {"max_total_tokens": 8, "page_size": 16},
            "--max-total-tokens 8 holds no page of 16 tokens: give at least one page",
        ),
        ({"schedule_conservativeness": 0.0}, "--schedule-conservativeness 0.0: give a number above 0"),
        (
            {"schedule_conservativeness": float("nan")},
            "--schedule-conservativeness nan: give a number above 0",
        ),
        (
            {"schedule_policy": "sjf"},
            "--schedule-policy 'sjf' is not known: "
            "give fcfs, lof, random, lpm, dfs-weight, shortest-prefill-first",
        ),
        ({"prefill_max_requests": 0}, "--prefill-max-requests 0 is below 1: give 1 or more"),
        ({"prefill_decode_interval": -1}, "--prefill-decode-interval -1 is below 0: give 0 or more"),
        (
            {"prefill_decode_interval_min_bs": -2},
            "--prefill-decode-interval-min-bs -2 is below 0: give 0 or more",
        ),
        ({"truncation_align_size": 0}, "--truncation-align-size 0 is below 1: give 1 or more"),
        (
            {"chunked_prefill_size": 2048, "truncation_align_size": 4096},
            "--chunked-prefill-size 2048 is below --truncation-align-size 4096: give a chunk of 4096 or more",
        ),
        (
            {"chunked_prefill_size": 64, "truncation_align_size": 100, "page_size": 16},
            "--chunked-prefill-size 64 is below --truncation-align-size 100: give a chunk of 112 or more",
        ),
        (
            {"chunked_prefill_size": 64, "truncation_align_size": 48, "page_size": 64},
            "--truncation-align-size 48 leaves no page of 64 tokens in a chunk of 64: "
            "give a multiple of --page-size",
        ),
        (
            {"disable_priority_preemption": True},
            "--disable-priority-preemption does nothing without priorities: add --enable-priority-scheduling",
        ),
        (
            {"schedule_low_priority_values_first": True},
            "--schedule-low-priority-values-first does nothing without priorities: "
            "add --enable-priority-scheduling",
        ),
        (
            {"priority_scheduling_preemption_threshold": 3},
            "--priority-scheduling-preemption-threshold 3 does nothing without priorities: "
            "add --enable-priority-scheduling",
        ),
        (
            {"enable_priority_scheduling": True, "priority_scheduling_preemption_threshold": -1},
            "--priority-scheduling-preemption-threshold -1 is below 0: give 0 or more",
        ),
        (
            {"chunked_prefill_size": CHUNKING_OFF, "enable_mixed_chunk": True},
            "--enable-mixed-chunk needs chunked prefill: give a --chunked-prefill-size above 0",
        ),
    ],
)
def test_a_value_that_cannot_be_honoured_is_named(options: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as refused:
        EngineConfig(**options)
    assert str(refused.value) == line


def test_the_defaults_are_sglangs() -> None:
    config = EngineConfig().resolve(max_total_tokens=100_000, context_length=8192)
    assert config.chunked_prefill_size == 4096
    assert config.max_prefill_tokens == 16384
    assert config.page_size == 1
    assert not config.enable_mixed_chunk
    assert (config.schedule_policy, config.priority_scheduling_preemption_threshold) == ("fcfs", 10)
    assert (config.prefill_decode_interval, config.prefill_decode_interval_min_bs) == (0, 0)
    assert (config.prefill_max_requests, config.truncation_align_size) == (None, None)
    assert config.max_running_requests == 4096  # 100,000 / 8,192 * 512 is more


@pytest.mark.parametrize(
    ("pool", "context", "slots"),
    [(100_000, 131_072, 2048), (60_000, 8192, 3750), (1000, 8192, 500), (1, 8192, 1)],
)
def test_max_running_requests_follows_the_pool(pool: int, context: int, slots: int) -> None:
    config = EngineConfig().resolve(max_total_tokens=pool, context_length=context)
    assert config.max_running_requests == slots


def test_there_are_no_more_request_rows_than_pages() -> None:
    given = EngineConfig(max_running_requests=10**9, page_size=16)
    assert given.resolve(max_total_tokens=1600, context_length=8192).max_running_requests == 100


def test_what_the_user_gave_is_kept() -> None:
    given = EngineConfig(
        chunked_prefill_size=64, max_total_tokens=500, max_running_requests=3, context_length=99
    )
    assert given.resolve(max_total_tokens=100_000, context_length=8192) == given


def test_an_automatic_chunk_is_a_multiple_of_any_page() -> None:
    config = EngineConfig(page_size=48).resolve(max_total_tokens=100_000, context_length=8192)
    assert config.chunked_prefill_size == 4128


@pytest.mark.parametrize("policy", SCHEDULE_POLICIES)
@pytest.mark.parametrize("without_cache", [False, True])
def test_without_a_prefix_cache_a_policy_that_asks_it_is_fcfs(policy: str, without_cache: bool) -> None:
    config = EngineConfig(schedule_policy=policy, disable_radix_cache=without_cache)
    resolved = config.resolve(max_total_tokens=100_000, context_length=8192)
    replaced = without_cache and policy in ("lpm", "dfs-weight", "shortest-prefill-first")
    assert resolved.schedule_policy == ("fcfs" if replaced else policy)


def test_an_automatic_chunk_is_checked_against_the_align_size_too() -> None:
    with pytest.raises(ConfigError, match="give a chunk of 8192 or more"):
        EngineConfig(truncation_align_size=8192).resolve(max_total_tokens=100_000, context_length=8192)
