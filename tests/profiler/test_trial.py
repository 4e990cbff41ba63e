"""A workload tried on a cost model: when its tokens come, against a plain engine watched row by row."""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arithmetic import forward_sums
from engine.batch import ForwardBatch, ForwardMode, Outcome
from engine.clock import VirtualClock
from engine.config import CHUNKING_OFF, EngineConfig
from engine.engine import Engine
from engine.errors import WorkloadError
from engine.executors.simulated import SimulatedExecutor
from engine.observer import Event, ForwardRecord, NullObserver
from engine.request import Request, SamplingParams
from profiler.trial import END_TOKEN, TrialResult, longest_prompt, trial
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.workloads import configs

LARGE_POOL = 1 << 16


class LinearCost:
    """20 us a forward, 1 us a token, 10 ns a pair of the rectangle."""

    def forward_ns(self, batch: ForwardBatch) -> int:
        sums = forward_sums(batch)
        return 20_000 + 1_000 * sums.tokens + 10 * sums.pairs_prefix


class Kept(NullObserver):
    """Keeps every record and event."""

    def __init__(self) -> None:
        self.records: list[ForwardRecord] = []
        self.events: list[Event] = []

    def on_forward(self, record: ForwardRecord) -> None:
        self.records.append(record)

    def on_events(self, events: list[Event]) -> None:
        self.events += events


def observed(requests: list[Request], config: EngineConfig) -> Kept:
    """The same workload in an engine of its own, with the pool that the config says."""
    clock, kept = VirtualClock(), Kept()
    engine = Engine(
        config, SimulatedExecutor(LinearCost(), clock, vocab_size=END_TOKEN), clock=clock, observer=kept
    )
    engine.run(r.fresh() for r in requests)
    return kept


def token_times(records: list[ForwardRecord]) -> dict[int, list[int]]:
    """When each request's tokens came, row by row."""
    times: dict[int, list[int]] = defaultdict(list)
    for record in records:
        for rid, outcome in zip(record.batch.rids.tolist(), record.outcomes.tolist(), strict=True):
            if outcome == Outcome.EMITTED:
                times[rid].append(record.result_end_ns)
    return times


def request(rid: int, prompt: int, output: int, arrival_ns: int = 0, *, ignore_eos: bool = True) -> Request:
    tokens = [(rid * 31 + i) % 1000 for i in range(prompt)]
    return Request(rid, f"r{rid}", tokens, SamplingParams(output, ignore_eos=ignore_eos), arrival_ns)


@st.composite
def workloads(draw: st.DrawFn) -> list[Request]:
    return [
        request(
            rid,
            draw(st.one_of(st.integers(1, 8), st.integers(1, 30))),
            draw(st.integers(1, 12)),
            draw(st.integers(0, 40)) * 10_000,
            ignore_eos=draw(st.booleans()),
        )
        for rid in range(draw(st.integers(1, 7)))
    ]


def config_of(chunk: int | None, *, mixed: bool = False, **options: object) -> EngineConfig:
    return EngineConfig(
        chunked_prefill_size=CHUNKING_OFF if chunk is None else chunk,
        enable_mixed_chunk=mixed,
        **options,  # type: ignore[arg-type]
    ).resolve(max_total_tokens=LARGE_POOL, context_length=LARGE_POOL)


@settings(max_examples=ENGINE_EXAMPLES, deadline=None)
@given(requests=workloads(), config=configs(), roomy=st.booleans())
def test_what_is_felt_is_what_the_records_say(
    requests: list[Request], config: EngineConfig, roomy: bool
) -> None:
    config = replace(config, max_total_tokens=LARGE_POOL if roomy else max(64, config.max_total_tokens or 0))
    found = trial(requests, config, LinearCost())
    records = observed(requests, config).records
    times = token_times(records)
    gaps = {rid: [b - a for a, b in pairwise(mine)] for rid, mine in times.items()}
    longest = max((gap for mine in gaps.values() for gap in mine), default=None)
    assert found.longest_wait_s == (None if longest is None else longest / 1e9)
    assert [*zip(found.gap_rids.tolist(), found.gaps_ns.tolist(), strict=True)] == [
        (rid, gap) for rid in sorted(gaps) for gap in gaps[rid]
    ]
    assert found.ttft_ns == {r.rid: times[r.rid][0] - r.arrival_ns for r in requests if r.rid in times}
    assert found.forwards == len(records)
    assert found.output_tokens == sum(map(len, times.values()))
    long = longest_prompt(requests)
    assert found.longest_prompt_forwards == sum(
        long.rid in record.batch.rids[: record.batch.num_extend_seqs] for record in records
    )


@settings(max_examples=ENGINE_EXAMPLES // 2, deadline=None)
@given(requests=workloads(), config=configs())
def test_no_wait_is_shorter_than_the_longest_mixed_forward(
    requests: list[Request], config: EngineConfig
) -> None:
    config = replace(config, max_total_tokens=max(64, config.max_total_tokens or 0))
    found = trial(requests, config, LinearCost())
    mixed_ns = found.longest_ns.get(ForwardMode.MIXED)
    if mixed_ns is not None:
        assert found.gaps_ns.max() >= mixed_ns  # in whole nanoseconds: seconds are rounded


@settings(max_examples=ENGINE_EXAMPLES // 5, deadline=None)
@given(
    prompt=st.integers(1, 4000),
    chunk=st.integers(1, 400),
    decodes=st.integers(1, 4),
    overlap=st.booleans(),
)
def test_chunking_alone_never_cuts_the_wait(prompt: int, chunk: int, decodes: int, overlap: bool) -> None:
    requests = [request(rid, 10, 40) for rid in range(decodes)]
    requests.append(request(decodes, prompt, 4, arrival_ns=200_000))
    plain = {"disable_overlap_schedule": not overlap, "max_prefill_tokens": 1 << 14}
    whole = trial(requests, config_of(None, **plain), LinearCost())
    chunked = trial(requests, config_of(max(chunk, 40), **plain), LinearCost())
    assert whole.longest_wait_s is not None
    assert chunked.longest_wait_s is not None
    assert chunked.longest_wait_s >= whole.longest_wait_s


def test_mixing_leaves_one_forward_to_wait_for() -> None:
    requests = [*(request(rid, 10, 60) for rid in range(3)), request(3, 2000, 4, arrival_ns=200_000)]
    found = trial(requests, config_of(100, mixed=True), LinearCost())
    chunked = trial(requests, config_of(100), LinearCost())
    assert found.longest_wait_s is not None
    assert chunked.longest_wait_s is not None
    assert found.longest_wait_s * 1e9 == found.longest_ns[ForwardMode.MIXED]
    assert chunked.longest_wait_s > 10 * found.longest_wait_s
    assert chunked.longest_prompt_forwards == 20
    assert found.longest_prompt_forwards == 21  # three of a forward's tokens are the decodes'


def test_a_request_ends_where_it_is_said_to_and_the_scheduler_does_not_know() -> None:
    requests = [request(0, 20, 900, ignore_eos=False), request(1, 20, 900, ignore_eos=False)]
    config = replace(config_of(64), max_total_tokens=1000, max_running_requests=8)
    found = trial(requests, config, LinearCost(), ends={0: 5})
    assert np.bincount(found.gap_rids).tolist() == [4, 899]
    assert trial(requests, config, LinearCost()).output_tokens == 1800
    # The first forward holds both prompts only where both may be expected to fit.
    sooner = [request(0, 20, 5), request(1, 20, 900, ignore_eos=False)]
    tight = replace(config, max_total_tokens=950)
    assert (
        trial(sooner, tight, LinearCost()).ttft_ns[1]
        < trial(requests, tight, LinearCost(), ends={0: 5}).ttft_ns[1]
    )


def test_all_is_over_with_the_end_of_the_request_it_is_tried_until() -> None:
    requests = [request(0, 30, 400), request(1, 900, 4, 300_000), request(2, 30, 400, 10**9)]
    for config in (config_of(64, mixed=True), config_of(None), config_of(64, disable_overlap_schedule=True)):
        everything, found = (
            trial(requests, config, LinearCost()),
            trial(requests, config, LinearCost(), until=1),
        )
        ended_ns = 300_000 + found.ttft_ns[1] + found.gaps_ns[found.gap_rids == 1].sum()
        assert found.span_ns == ended_ns
        assert found.ttft_ns == {rid: everything.ttft_ns[rid] for rid in (0, 1)}
        mine, all_mine = (each.gaps_ns[each.gap_rids == 0] for each in (found, everything))
        assert 4 < len(mine) < len(all_mine)
        assert mine.tolist() == all_mine[: len(mine)].tolist()
        assert found.ttft_ns[0] + mine.sum() <= ended_ns
        assert found.output_tokens == len(mine) + 1 + 4
    assert trial(requests, config_of(64), LinearCost(), until=99).output_tokens == 804


def test_the_hosts_time_stands_between_forwards_of_the_plain_loop() -> None:
    requests = [request(0, 10, 11)]
    plain = config_of(64, disable_overlap_schedule=True)
    found = trial(requests, plain, LinearCost(), host_overhead_ns=7_000)
    assert (found.gaps_ns - trial(requests, plain, LinearCost()).gaps_ns).tolist() == [7_000] * 10
    hidden = trial(requests, config_of(64), LinearCost(), host_overhead_ns=7_000)
    assert hidden.gaps_ns.tolist() == trial(requests, config_of(64), LinearCost()).gaps_ns.tolist()


def test_percentiles_interpolate_over_all_gaps() -> None:
    found = TrialResult(
        gaps_ns=np.array([10, 20, 30, 40]),
        gap_rids=np.array([0, 0, 1, 1]),
        ttft_ns={0: 100, 1: 200},
        output_tokens=6,
        span_ns=60,
        forwards=4,
        largest_forward_tokens=3,
        longest_prompt_forwards=1,
        longest_ns={},
    )
    assert found.gap_s(0.5) == pytest.approx(25e-9)
    assert found.ttft_s(0.99) == pytest.approx(199e-9)
    assert found.output_tokens_per_s == pytest.approx(1e8)


def test_one_token_leaves_no_gap() -> None:
    found = trial([request(0, 10, 1)], config_of(64), LinearCost())
    assert (found.longest_wait_s, found.gap_s(0.99)) == (None, None)
    assert found.ttft_ns == {0: 30_000}


def test_what_can_never_be_served_is_refused() -> None:
    with pytest.raises(WorkloadError, match="'r0'"):
        trial([request(0, LARGE_POOL, 1)], config_of(64), LinearCost())
