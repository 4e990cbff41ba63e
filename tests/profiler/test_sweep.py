"""Sweep sizes, and a sweep of a device whose speed is known, through recorder, trace and fit."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batch import ForwardBatch, ForwardMode
from engine.clock import VirtualClock
from engine.engine import Engine
from engine.errors import ConfigError
from engine.executors.protocol import FinishedForward, ForwardResult
from engine.observer import EngineObserver, ForwardRecord, NullObserver
from profiler.points import prefill_points
from profiler.recorder import Recorder
from profiler.saturation import saturation
from profiler.sweep import Sweep, run_sweep, sweep_config, sweep_sizes
from profiler.sweep_plan import SweepPlan
from traces.reader import open_trace
from traces.writer import TraceWriter

KNEE_TOKENS = 100


class KneeExecutor:
    """Takes 1 ms up to KNEE_TOKENS tokens and in proportion above; ten times as long on pages never used."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.sizes: list[int] = []
        self.touched: set[int] = set()

    def launch(self, batch: ForwardBatch) -> FinishedForward:
        tokens = int(batch.extend_lens.sum())
        pages = set(batch.pages[0])
        cold = 1 if pages <= self.touched else 10
        self.touched |= pages
        self.sizes.append(tokens)
        start_ns = self.clock.now_ns()
        self.clock.wait_until(start_ns + round(max(1.0, tokens / KNEE_TOKENS) * 1e6) * cold)
        return FinishedForward(ForwardResult([1] * batch.num_rows, start_ns, self.clock.now_ns()))


class Watcher(NullObserver):
    """Keeps what it is told of forwards."""

    def __init__(self) -> None:
        self.records: list[ForwardRecord] = []

    def on_forward(self, record: ForwardRecord) -> None:
        self.records.append(record)


def swept(sizes: list[int], observer: EngineObserver, clock: VirtualClock, **options: int) -> KneeExecutor:
    executor = KneeExecutor(clock)
    config = sweep_config(max(sizes))

    def build(watching: EngineObserver | None) -> Engine:
        return Engine(config, executor, clock=clock, observer=watching)

    run_sweep(build, observer, sizes, vocab_size=100, **options)  # type: ignore[arg-type]
    return executor


def test_ten_sizes_grow_by_the_same_factor() -> None:
    assert sweep_sizes("8:1024") == [8, 14, 24, 41, 70, 120, 205, 350, 599, 1024]
    assert sweep_sizes("512:512") == [512]
    assert sweep_sizes("3:7") == [3, 4, 5, 6, 7]
    assert sweep_sizes("1:4096", 13) == [2**k for k in range(13)]


@given(st.integers(1, 5_000), st.integers(0, 10_000), st.integers(1, 30))
def test_sizes_are_distinct_and_span_the_range(low: int, more: int, count: int) -> None:
    sizes = sweep_sizes(f"{low}:{low + more}", count)
    assert len(sizes) == min(count, more + 1)
    assert sizes == sorted(set(sizes))
    assert sizes[0] == low
    assert sizes[-1] == low + more or count == 1


@pytest.mark.parametrize("spec", ["", "8", "8-1024", "0:10", "10:8", "8:1e3", "-8:16", "8:1024:2", "٨:١٠٢٤"])
def test_a_bad_range_is_named_with_the_mend(spec: str) -> None:
    with pytest.raises(ConfigError, match="is no range of tokens: give LOW:HIGH, like 8:1024") as caught:
        sweep_sizes(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("page_size", [1, 16])
def test_every_forward_is_one_whole_prompt_without_prefix(page_size: int) -> None:
    sizes, clock, watcher = [5, 16, 17, 64], VirtualClock(), Watcher()
    executor = KneeExecutor(clock)
    config = sweep_config(64, page_size)
    run_sweep(
        lambda o: Engine(config, executor, clock=clock, observer=o), watcher, sizes, vocab_size=50, repeats=2
    )
    assert Counter(int(r.batch.extend_lens[0]) for r in watcher.records) == dict.fromkeys(sizes, 2)
    for record in watcher.records:
        assert record.batch.mode is ForwardMode.EXTEND
        assert record.batch.num_rows == 1
        assert record.batch.prefix_lens[0] == 0


def test_each_repeat_has_every_size_in_a_seeded_order_of_its_own() -> None:
    sizes = sweep_sizes("8:1024")

    def order(seed: int) -> list[int]:
        watcher = Watcher()
        swept(sizes, watcher, VirtualClock(), seed=seed)
        return [int(r.batch.extend_lens[0]) for r in watcher.records]

    first = order(0)
    passes = [first[i : i + 10] for i in (0, 10, 20)]
    assert [sorted(p) for p in passes] == [sizes] * 3
    assert passes[0] != sizes
    assert passes[0] != passes[1]
    assert first == order(0) != order(1)


def test_the_warm_up_runs_every_size_first_and_is_not_recorded() -> None:
    sizes, watcher = [4, 9, 30], Watcher()
    executor = swept(sizes, watcher, VirtualClock(), repeats=1)
    assert executor.sizes[:4] == [30, 30, 9, 4]
    assert len(executor.sizes) == 4 + len(watcher.records)


def test_no_recorded_forward_touches_kv_for_the_first_time() -> None:
    watcher = Watcher()
    swept([3, 50, 64], watcher, VirtualClock(), repeats=20)
    for record in watcher.records:
        tokens = int(record.batch.extend_lens[0])
        assert record.result.end_ns - record.result.start_ns == max(10**6, tokens * 10**4)


def test_progress_is_told_of_recorded_forwards() -> None:
    told: list[ForwardRecord] = []
    clock = VirtualClock()
    executor = KneeExecutor(clock)
    engine = run_sweep(
        lambda o: Engine(sweep_config(9), executor, clock=clock, observer=o),
        NullObserver(),
        [2, 9],
        vocab_size=10,
        on_step=told.append,
    )
    assert len(told) == 6
    assert not engine.has_work
    assert engine.cache.pool_state().free == engine.cache.pool_state().total


def test_a_recorded_sweep_has_the_knee_of_its_device(tmp_path: Path) -> None:
    clock, path = VirtualClock(), tmp_path / "sweep.chunkscope"
    recorder = Recorder(TraceWriter(path, {"provenance": "simulated"}), None, clock=clock)
    swept(sweep_sizes("8:1024"), recorder, clock)
    recorder.close()
    trace = open_trace(path)
    assert prefill_points(trace).points.height == 30
    found = saturation(trace)
    assert found.status == "ok"
    assert found.tokens == pytest.approx(0.95 * KNEE_TOKENS, abs=2)


@pytest.mark.parametrize("budget_s", [0.05, 0.5, 5.0])
def test_a_sweep_for_a_time_ends_within_it(budget_s: float) -> None:
    clock, watcher = VirtualClock(), Watcher()
    executor, config = KneeExecutor(clock), sweep_config(2048)

    def build(watching: EngineObserver | None) -> Engine:
        return Engine(config, executor, clock=clock, observer=watching)

    plan = SweepPlan((1, 2048), repeats=None, budget_s=budget_s)
    sweep = Sweep(plan, vocab_size=100, now_s=lambda: clock.now_ns() / 1e9)
    sweep.prepare(build)
    sizes = [case.tokens for case in sweep.cases]
    assert (sizes[0], sizes[-1]) == (1, 2048)
    assert 16 <= len(sizes) <= 24
    warm_up = len(executor.sizes)
    assert sweep.left_s > 0.9 * budget_s or budget_s < 0.5
    sweep.record(build, watcher)
    recorded = [int(r.batch.extend_lens[0]) for r in watcher.records]
    assert recorded == executor.sizes[warm_up:]
    assert clock.now_ns() / 1e9 <= budget_s + 0.205  # the longest forward on pages never used
    if budget_s > 1:
        assert set(recorded) == set(sizes)
        assert not sweep.uncovered
