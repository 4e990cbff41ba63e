"""Requests made anew from a trace: what they keep, and that trying them again is the run they came from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.arithmetic import ForwardSums, forward_sums
from engine.batch import ForwardBatch
from engine.config import EngineConfig
from engine.request import FinishReason, Request, SamplingParams
from profiler.latency import first_token_times, gaps
from profiler.prefix_hashes import prefix_hashes
from profiler.tables import frame
from profiler.trial import trial
from profiler.trial_requests import busiest, has_arrivals, requests_of
from profiler.trial_standard import standard_requests
from tests.support.simulated_trace import record_simulated
from tests.support.traces import MemoryTrace
from tests.support.traces import request as row
from traces.reader import Trace

MS = 1_000_000
SHARED = [7] * 192


class Cost:
    """50 us a forward, 1 us a token."""

    def seconds(self, sums: ForwardSums) -> float:
        return 50e-6 + 1e-6 * sums.tokens

    def forward_ns(self, batch: ForwardBatch) -> int:
        return round(self.seconds(forward_sums(batch)) * 1e9)


def config(**options: Any) -> EngineConfig:
    return EngineConfig(page_size=16, **options).resolve(max_total_tokens=40_000, context_length=8192)


def workload() -> list[Request]:
    """Three decodes, two prompts with a common start, one of them urgent, and a long one."""
    sampling = SamplingParams(120, ignore_eos=True)
    decodes = [Request(i, f"d{i}", [i + 1] * 30, sampling) for i in range(3)]
    few = SamplingParams(6, ignore_eos=True)
    return [
        *decodes,
        Request(3, "first", SHARED + [3] * 300, few, 2 * MS),
        Request(4, "long", [4] * 3000, few, 4 * MS),
        Request(5, "again", SHARED + [5] * 100, few, 9 * MS, priority=3),
    ]


def felt(trace: Trace) -> tuple[list[int], list[int]]:
    return gaps(trace)["gap_ns"].to_list(), first_token_times(trace)["ttft_ns"].to_list()


@pytest.mark.parametrize("options", [{}, {"enable_mixed_chunk": True}, {"disable_overlap_schedule": True}])
def test_trying_a_traces_requests_is_its_run(options: dict[str, Any], tmp_path: Path) -> None:
    resolved = config(chunked_prefill_size=512, **options)
    trace = record_simulated(tmp_path / "t.chunkscope", workload(), resolved, Cost())
    told = requests_of(trace)
    found = trial(told.requests, resolved, Cost(), ends=told.ends)
    assert (found.gaps_ns.tolist(), [*found.ttft_ns.values()]) == felt(trace)
    assert (told.ends, told.left_out, told.open_ended, told.shared_prefixes) == ({}, 0, 0, True)
    cached = dict(frame(trace, "requests").select("name", "cached_tokens").iter_rows())
    assert cached["again"] == 192


def test_outputs_that_ended_early_end_there_again(tmp_path: Path) -> None:
    requests = [Request(i, f"r{i}", [i + 1] * 40, SamplingParams(400), i * MS) for i in range(12)]
    resolved = replace(config(chunked_prefill_size=64), max_running_requests=4)
    eos = frozenset(range(0, 50, 9))
    trace = record_simulated(tmp_path / "t.chunkscope", requests, resolved, Cost(), eos_token_ids=eos)
    told = requests_of(trace)
    assert len(told.ends) == 12
    found = trial(told.requests, resolved, Cost(), ends=told.ends)
    assert (found.gaps_ns.tolist(), [*found.ttft_ns.values()]) == felt(trace)


def test_names_lengths_and_priorities_are_kept(tmp_path: Path) -> None:
    trace = record_simulated(tmp_path / "t.chunkscope", workload(), config(), Cost())
    told = requests_of(trace)
    kept = [(r.name, r.prompt_len, r.max_new_tokens, r.arrival_ns, r.priority) for r in told.requests]
    assert kept == [(r.name, r.prompt_len, r.max_new_tokens, r.arrival_ns, r.priority) for r in workload()]
    assert all(r.sampling.ignore_eos for r in told.requests)


def test_prompts_share_blocks_where_they_share_hashes(tmp_path: Path) -> None:
    trace = record_simulated(tmp_path / "t.chunkscope", workload(), config(), Cost())
    first, again = (
        list(r.prompt_token_ids) for r in requests_of(trace).requests if r.name in ("first", "again")
    )
    assert first[:192] == again[:192]
    assert not set(first[192:]) & set(again[192:])
    assert list(prefix_hashes(first)[:3]) == list(prefix_hashes(again)[:3])


def test_what_the_trace_lacks_is_left_out_and_counted() -> None:
    lengths = {"prompt_tokens": 80, "max_new_tokens": 100}
    requests = [
        row(2, None, "late", **lengths),  # type: ignore[arg-type]
        row(4, 7, "no prompt"),
        row(5, 9, "cut off", **lengths, output_tokens=50, ignore_eos=True),
        row(7, 3, "aborted", **lengths, output_tokens=0, finish_reason=FinishReason.ABORT.value),
        row(9, 5, **lengths, output_tokens=100, finish_reason=FinishReason.LENGTH.value),
    ]
    told = requests_of(MemoryTrace({"requests": requests}))
    assert (told.left_out, told.open_ended, told.shared_prefixes) == (2, 2, False)
    assert [(r.rid, r.name) for r in told.requests] == [(0, "aborted"), (1, "r9"), (2, "cut off")]
    assert told.ends == {0: 1, 2: 50}


@pytest.mark.parametrize(
    ("kind", "arrivals_ns", "expected"),
    [("open", [0, 5], True), (None, [0, None], True), (None, [None, None], False), ("closed", [0, 5], False)],
)
def test_whether_arrivals_mean_anything(kind: str | None, arrivals_ns: list[Any], expected: bool) -> None:
    requests = [row(rid, at) for rid, at in enumerate(arrivals_ns)]
    assert has_arrivals(MemoryTrace({"requests": requests}, {"workload": {"kind": kind}})) is expected
    assert not has_arrivals(MemoryTrace({}))


def test_the_busiest_stretch_fits_and_has_the_most_prompt_tokens() -> None:
    requests = [Request(i, f"r{i}", [1] * tokens) for i, tokens in enumerate((10, 90, 80, 5, 100, 1))]
    work = [1.0] * 6
    assert busiest(requests, work, 6) == slice(0, 6)
    assert busiest(requests, work, 2) == slice(1, 3)
    assert busiest(requests, [1, 1, 9, 1, 1, 1], 3) == slice(3, 6)
    assert busiest(requests, [9.0] * 6, 1) == slice(4, 5)


@pytest.mark.parametrize(("context", "pool", "long"), [(131_072, 400_000, 32_768), (4096, 400_000, 4056)])
def test_the_standard_workload_is_a_long_prompt_while_six_decode(context: int, pool: int, long: int) -> None:
    resolved = EngineConfig(page_size=16).resolve(max_total_tokens=pool, context_length=context)
    requests = standard_requests(Cost(), resolved)
    assert [r.prompt_len for r in requests] == [64] * 6 + [long]
    found = trial(requests, resolved, Cost(), until=6)
    assert found.longest_wait_s is not None
    assert found.longest_wait_s > long * 1e-6
    assert (found.gap_rids == 6).sum() == 7


@pytest.mark.parametrize("options", [{"enable_mixed_chunk": True}, {"prefill_decode_interval": 1}])
def test_the_standard_decodes_outlast_the_long_prompt(options: dict[str, Any]) -> None:
    """So the longest wait of mixed chunks is that behind the last of them, however small they are."""
    for chunk in (16, 64, 1024):
        resolved = EngineConfig(chunked_prefill_size=chunk, **options).resolve(
            max_total_tokens=400_000, context_length=4096
        )
        requests = standard_requests(Cost(), resolved)
        found = trial(requests, resolved, Cost(), until=6)
        given = [int((found.gap_rids == rid).sum()) + 1 for rid in range(6)]
        assert all(10 < each < request.max_new_tokens for each, request in zip(given, requests, strict=False))
        everything = trial(requests, resolved, Cost(), until=None)
        assert everything.ttft_ns[6] == found.ttft_ns[6]
        assert everything.longest_wait_s == found.longest_wait_s


def test_the_standard_workload_fits_a_small_pool() -> None:
    resolved = EngineConfig(page_size=16).resolve(max_total_tokens=6000, context_length=8192)
    requests = standard_requests(Cost(), resolved)
    assert len(trial(requests, resolved, Cost(), until=6).ttft_ns) == 7
    assert sum(r.prompt_len + r.max_new_tokens + 16 for r in requests) <= 6000
    assert all(r.max_new_tokens >= 256 for r in requests[:6])
