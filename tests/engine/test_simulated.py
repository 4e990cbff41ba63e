"""Forwards on a virtual clock: when they start and end, in both loops, and what they sample."""

from array import array
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from engine.batch import ForwardBatch, ForwardMode, Role
from engine.clock import VirtualClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.protocol import NO_TOKEN
from engine.executors.simulated import SimulatedExecutor
from engine.observer import ForwardRecord
from engine.request import Request, SamplingParams

VOCAB = 1000


@dataclass
class PerToken:
    """A forward takes a microsecond a token, and ten more."""

    def forward_ns(self, batch: ForwardBatch) -> int:
        return 10_000 + 1_000 * len(batch.input_ids)


def request(rid: int, prompt: int, new: int = 5, arrival_ns: int = 0) -> Request:
    sampling = SamplingParams(new, ignore_eos=True)
    return Request(rid, f"r{rid}", array("i", range(prompt)), sampling, arrival_ns)


def run(
    requests: list[Request], *, host_overhead_ns: int = 0, **options: object
) -> tuple[list[ForwardRecord], VirtualClock]:
    clock = VirtualClock()
    config = EngineConfig(max_total_tokens=10_000, max_running_requests=64, **options)  # type: ignore[arg-type]
    config = config.resolve(max_total_tokens=10_000, context_length=10_000)
    executor = SimulatedExecutor(PerToken(), clock, VOCAB, host_overhead_ns=host_overhead_ns)
    records: list[ForwardRecord] = []
    Engine(config, executor, clock=clock).run(requests, records.append)
    return records, clock


def gaps_ns(records: list[ForwardRecord]) -> list[int]:
    """From the end of each forward to the start of the next."""
    return [after.result.start_ns - before.result.end_ns for before, after in pairwise(records)]


@pytest.mark.parametrize("plain", [True, False])
def test_forwards_take_what_the_cost_model_says_and_follow_without_a_gap(plain: bool) -> None:
    records, clock = run([request(0, 50), request(1, 30)], disable_overlap_schedule=plain)
    for record in records:
        assert record.result.end_ns - record.result.start_ns == 10_000 + 1_000 * len(record.batch.input_ids)
    assert records[0].result.start_ns == 0
    assert set(gaps_ns(records)) == {0}
    assert clock.now_ns() == records[-1].result.end_ns


def test_a_result_is_processed_when_its_forward_ends() -> None:
    plain, _ = run([request(0, 50)], disable_overlap_schedule=True)
    assert all(record.result_start_ns == record.result.end_ns for record in plain)
    overlapped, _ = run([request(0, 50)])
    assert all(record.result_start_ns == record.result.end_ns for record in overlapped)
    assert [record.overlapped for record in overlapped] == [False] + [True] * (len(overlapped) - 1)


def test_under_overlap_a_forward_is_planned_when_the_one_before_starts() -> None:
    records, _ = run([request(0, 50)])
    for before, record in pairwise(records):
        assert record.plan_start_ns == record.launch_start_ns == before.result.start_ns


def test_host_overhead_lies_between_forwards_of_the_plain_loop() -> None:
    records, _ = run([request(0, 50)], host_overhead_ns=3_000, disable_overlap_schedule=True)
    assert set(gaps_ns(records)) == {3_000}
    assert {record.launch_end_ns - record.launch_start_ns for record in records} == {3_000}


def test_host_overhead_hides_behind_a_longer_forward_under_overlap() -> None:
    hidden, _ = run([request(0, 50)], host_overhead_ns=3_000)
    assert set(gaps_ns(hidden)) == {0}
    shown, _ = run([request(0, 50)], host_overhead_ns=15_000)  # a decode takes 11,000
    assert set(gaps_ns(shown)[1:]) == {4_000}


def test_the_clock_jumps_to_the_next_arrival() -> None:
    records, _ = run([request(0, 10, 2), request(1, 10, 2, arrival_ns=5_000_000)])
    starts = [record.result.start_ns for record in records if record.batch.mode is ForwardMode.EXTEND]
    assert starts == [0, 5_000_000]


@pytest.mark.parametrize(
    "options",
    [
        {"disable_overlap_schedule": True},
        {"chunked_prefill_size": 16},
        {"chunked_prefill_size": 8, "enable_mixed_chunk": True},
        {"page_size": 4, "chunked_prefill_size": 16, "disable_radix_cache": True},
    ],
)
def test_no_schedule_changes_what_is_sampled(options: dict[str, object]) -> None:
    def outputs(**options: object) -> list[list[int]]:
        requests = [request(0, 50, 20), request(1, 30, 7), request(2, 45, 9, arrival_ns=60_000)]
        run(requests, **options)
        return [r.output_ids for r in requests]

    assert outputs(**options) == outputs()
    assert [len(ids) for ids in outputs()] == [20, 7, 9]


def test_samples_are_token_ids_and_middle_chunks_have_none() -> None:
    seen: set[int] = set()
    records, _ = run([request(rid, 40, 60) for rid in range(8)], chunked_prefill_size=25)
    for record in records:
        for role, token in zip(record.batch.roles, record.result.next_token_ids, strict=True):
            assert (token == NO_TOKEN) == (role in (Role.FIRST, Role.MIDDLE))
            seen.add(token)
    ids = np.array(sorted(seen - {NO_TOKEN}))
    assert 0 <= ids.min() < ids.max() < VOCAB
    assert len(ids) > 300  # of 480 samples: they are spread, not a few


def test_memory_is_unknown() -> None:
    records, _ = run([request(0, 5)])
    assert records[0].result.memory_allocated_bytes is None
    assert records[0].result.memory_peak_bytes is None
