"""Workloads by seed, the same on every machine: every option, small pools, shared prefixes, aborts."""

from dataclasses import replace
from random import Random
from typing import Any

from engine.config import CHUNKING_OFF, SCHEDULE_POLICIES, EngineConfig
from engine.request import SamplingParams
from tests.support.workloads import CONTEXT_LENGTH, Arrival

MOST_REQUESTS = 9


def seeded_workload(seed: int) -> tuple[EngineConfig, list[Arrival]]:
    """An engine's options and what arrives at it.

    Of three, one is a crowd that outgrows its pool, and in one requests for few slots grow more urgent.
    """
    rng = Random(seed)
    config = _config(rng)
    arrivals = [_arrival(rng, at) for at in range(rng.randint(3, MOST_REQUESTS))]
    if seed % 3 == 1:
        return config, arrivals
    if seed % 3 == 2:
        return _contested(config), [replace(each, priority=at) for at, each in enumerate(arrivals)]
    return _crowded(rng, config), [_lasting(rng, at) for at in range(rng.randint(5, MOST_REQUESTS))]


def _config(rng: Random) -> EngineConfig:
    page_size = rng.choice([1, 2, 4])
    chunk = rng.choice([CHUNKING_OFF, page_size, 2 * page_size, 4 * page_size, 6 * page_size])
    priorities: dict[str, Any] = {}
    if rng.random() < 0.4:
        priorities = {
            "enable_priority_scheduling": True,
            "priority_scheduling_preemption_threshold": rng.choice([0, 3]),
            "schedule_low_priority_values_first": rng.random() < 0.5,
        }
    return EngineConfig(
        chunked_prefill_size=chunk,
        max_prefill_tokens=rng.choice([16, 16384]),
        page_size=page_size,
        max_total_tokens=rng.choice([60, 90, 150, 400]) + 2 * page_size,
        enable_mixed_chunk=chunk != CHUNKING_OFF and rng.random() < 0.5,
        disable_overlap_schedule=rng.random() < 0.2,
        disable_radix_cache=rng.random() < 0.2,
        schedule_policy=rng.choice(["fcfs", "fcfs", *SCHEDULE_POLICIES]),
        schedule_conservativeness=rng.choice([0.01, 0.3, 1.0]),
        max_running_requests=rng.choice([2, 4, 32]),
        prefill_decode_interval=rng.choice([0, 0, 3]),
        **priorities,
    ).resolve(max_total_tokens=1, context_length=CONTEXT_LENGTH)


def _crowded(rng: Random, config: EngineConfig) -> EngineConfig:
    chunk = config.page_size * rng.choice([2, 4, 8])
    return replace(
        config,
        chunked_prefill_size=chunk,
        enable_mixed_chunk=rng.random() < 0.7,
        max_total_tokens=rng.randint(50, 90) + 2 * config.page_size,
        max_running_requests=16,
        schedule_conservativeness=0.01,
    )


def _contested(config: EngineConfig) -> EngineConfig:
    return replace(
        config,
        max_running_requests=2,
        enable_priority_scheduling=True,
        priority_scheduling_preemption_threshold=0,
        schedule_low_priority_values_first=False,
    )


def _lasting(rng: Random, at: int) -> Arrival:
    prompt = tuple((at * 11 + i) % 50 for i in range(rng.choice([1, 3, 20, 36])))
    sampling = SamplingParams(max_new_tokens=rng.randint(15, 45), ignore_eos=rng.random() < 0.2)
    return Arrival(at * rng.randint(0, 3), prompt, sampling, priority=rng.choice([0, 1, 5]))


def _arrival(rng: Random, at: int) -> Arrival:
    share, own = rng.choice([0, 0, 9, 24]), rng.choice([1, 3, 17, 30])
    return Arrival(
        round=at * rng.randint(0, 3),
        prompt=(7,) * share + tuple((at % 3 * 11 + i) % 50 for i in range(own)),
        sampling=SamplingParams(
            max_new_tokens=rng.choice([1, 4, 20, 30]),
            ignore_eos=rng.random() < 0.5,
            stop_token_ids=frozenset(rng.choice([(), (1, 2, 8, 20, 31)])),
        ),
        abort_after=rng.choice([None, None, None, 3, 9]),
        priority=rng.choice([0, 1, 5]),
    )
