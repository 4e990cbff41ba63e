"""Good traces raise nothing, however unusual the options they were recorded under."""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.batch import ForwardBatch
from engine.clock import VirtualClock
from engine.config import EngineConfig
from engine.executors.simulated import SimulatedExecutor
from engine.observer import EventKind
from engine.request import SamplingParams
from profiler.invariants import CheckReport, Status
from profiler.invariants.live import EngineCheck
from tests.support.corrupt_traces import checked_run
from tests.support.workloads import Arrival

VOCAB = 50
UNTRIED = {"middle_never_emits"}  # what some of these runs give nothing to check for


def resolved(pool: int, **options: Any) -> EngineConfig:
    return EngineConfig(max_total_tokens=pool, **options).resolve(max_total_tokens=pool, context_length=4096)


def arrivals(*, most: int = 12, every: int = 2, abort_after: int | None = None) -> list[Arrival]:
    """Short and long prompts, some with a common beginning, every few rounds."""
    lengths = (3, 70, 16, 33, 1, 64, 20, 45)
    return [
        Arrival(
            every * at,
            (9,) * (length // 2 if at % 2 else 0) + tuple((at * 7 + i) % VOCAB for i in range(length)),
            SamplingParams(max_new_tokens=most, ignore_eos=at % 3 != 0),
            abort_after=abort_after if at % 3 == 1 else None,
            priority=at,
        )
        for at, length in enumerate(lengths)
    ]


def checked(config: EngineConfig, todo: Sequence[Arrival]) -> tuple[EngineCheck, CheckReport]:
    check = checked_run(config, todo)
    return check, check.finish()


def sound(report: CheckReport) -> bool:
    unchecked = {rule.name for rule in report.having(Status.NOT_CHECKABLE)}
    return report.ok and report.clean_end and unchecked <= UNTRIED


OPTIONS: dict[str, dict[str, Any]] = {
    "page 1": {"chunked_prefill_size": 16},
    "page 16, mixed": {"page_size": 16, "chunked_prefill_size": 32, "enable_mixed_chunk": True},
    "page 64": {"page_size": 64, "chunked_prefill_size": 64},
    "plain loop": {"chunked_prefill_size": 16, "disable_overlap_schedule": True},
    "plain loop, mixed": {
        "page_size": 4,
        "chunked_prefill_size": 8,
        "enable_mixed_chunk": True,
        "disable_overlap_schedule": True,
    },
    "chunking off": {"chunked_prefill_size": -1},
    "an input budget below the chunk": {"chunked_prefill_size": 64, "max_prefill_tokens": 8},
    "interval": {"chunked_prefill_size": 8, "prefill_decode_interval": 3},
    "interval, mixed, from two on": {
        "chunked_prefill_size": 8,
        "enable_mixed_chunk": True,
        "prefill_decode_interval": 2,
        "prefill_decode_interval_min_bs": 2,
    },
    "no prefix cache": {"page_size": 4, "chunked_prefill_size": 8, "disable_radix_cache": True},
    "aligned cuts": {"page_size": 4, "chunked_prefill_size": 32, "truncation_align_size": 12},
    "shortest prefill first": {"chunked_prefill_size": 16, "schedule_policy": "shortest-prefill-first"},
    "longest prefix match": {"chunked_prefill_size": 16, "schedule_policy": "lpm"},
    "one prompt a forward": {"chunked_prefill_size": 64, "prefill_max_requests": 1},
    "one slot": {"chunked_prefill_size": 16, "max_running_requests": 1},
    "a chunk of one token": {"chunked_prefill_size": 1},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_options(options: dict[str, Any]) -> None:
    _, report = checked(resolved(600, **options), arrivals())
    assert sound(report)


def test_decode_rows_that_eat_the_chunk() -> None:
    """More decodes than a chunk has tokens: the half-done prompt still gets a page a round."""
    config = resolved(600, page_size=4, chunked_prefill_size=4, enable_mixed_chunk=True)
    _, report = checked(config, arrivals(most=40, every=1))
    assert sound(report)


@pytest.mark.parametrize("conservativeness", [0.001, 100.0])
def test_a_tiny_pool(conservativeness: float) -> None:
    config = resolved(110, chunked_prefill_size=16, schedule_conservativeness=conservativeness)
    todo = [
        Arrival(at, tuple(range(20)), SamplingParams(max_new_tokens=40, ignore_eos=False)) for at in range(6)
    ]
    check, report = checked(config, todo)
    assert sound(report)
    kinds = check.trace.table("events").column("kind").to_pylist()
    assert (EventKind.RETRACT in kinds) == (conservativeness < 1)


def test_priorities_with_preemption() -> None:
    config = resolved(
        600,
        chunked_prefill_size=16,
        max_running_requests=2,
        enable_priority_scheduling=True,
        priority_scheduling_preemption_threshold=1,
    )
    check, report = checked(config, arrivals(every=5))
    assert sound(report)
    assert EventKind.PREEMPT in check.trace.table("events").column("kind").to_pylist()


@pytest.mark.parametrize("overlap", [True, False])
def test_aborts_in_mid_chunk(overlap: bool) -> None:
    config = resolved(600, chunked_prefill_size=8, disable_overlap_schedule=not overlap)
    _, report = checked(config, arrivals(every=3, abort_after=5))
    assert sound(report)


@pytest.mark.parametrize("most", [0, 1, 2])
def test_next_to_no_output(most: int) -> None:
    _, report = checked(resolved(600, chunked_prefill_size=16), arrivals(most=most))
    assert sound(report)


def test_a_long_run_that_only_decodes() -> None:
    _, report = checked(
        resolved(600, chunked_prefill_size=64), [Arrival(0, (1, 2, 3), SamplingParams(200, ignore_eos=True))]
    )
    assert sound(report)


class TokenTime:
    """A cost model: so many nanoseconds a token, and some for each forward."""

    def __init__(self, token_ns: int) -> None:
        self._token_ns = token_ns

    def forward_ns(self, batch: ForwardBatch) -> int:
        return 5_000 + self._token_ns * len(batch.input_ids)


@pytest.mark.parametrize("abort", [False, True])
@pytest.mark.parametrize("overlap", [True, False])
def test_a_simulated_run(overlap: bool, abort: bool) -> None:
    """Planning takes no time, so that many things happen in one nanosecond."""
    clock = VirtualClock()
    config = resolved(
        150,
        page_size=2,
        chunked_prefill_size=8,
        enable_mixed_chunk=True,
        disable_overlap_schedule=not overlap,
    )
    check = EngineCheck(
        config, SimulatedExecutor(TokenTime(1_000), clock, VOCAB), clock=clock, provenance="simulated"
    )
    engine = check.engine
    requests = [each.request(rid, rid * 20_000) for rid, each in enumerate(arrivals(most=30))]
    engine.run(requests, on_step=lambda _: engine.abort(3) if abort else None)
    report = check.finish()
    assert sound(report)
    assert check.trace.meta["provenance"] == "simulated"
