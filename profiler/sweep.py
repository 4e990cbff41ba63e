"""Measures forward time against tokens: prompts of chosen lengths, one a forward, in an ordinary engine."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from engine.config import CHUNKING_OFF, EngineConfig
from engine.engine import Engine
from engine.observer import EngineObserver, ForwardRecord
from engine.request import Request, SamplingParams
from engine.workload import random_ids
from profiler.sweep_cases import SweepCase, geometric_sizes, parse_range
from profiler.sweep_order import Timings, budgeted, repeated, sizes_for

__all__ = ["BuildEngine", "prepare", "run_budget", "run_sweep", "sweep_config", "sweep_sizes"]

BuildEngine = Callable[[EngineObserver | None], Engine]
StepHook = Callable[[ForwardRecord], None]

PROBE_SHARE = 0.01  # of the budget: the most that one forward of the probe may take
WARM_UP_SHARE = 0.05  # of the budget, for the warm-up in all
PROBE_STEP = 4


def sweep_sizes(spec: str, count: int = 10) -> list[int]:
    """`count` different sizes from `"LOW:HIGH"` tokens in geometric steps, both ends included.

    All sizes of a range that holds fewer. Raises ConfigError when `spec` is no such range.
    """
    return geometric_sizes(*parse_range(spec, "--tokens", "tokens"), count)


def sweep_config(largest: int, page_size: int = 1) -> EngineConfig:
    """Options for a sweep up to `largest` tokens: prompts whole, no prefix cache, one request at a time.

    The KV pool is just large enough, so that the warm-up has touched all of it.
    """
    pool = -(-largest // page_size) * page_size + 3 * page_size
    return EngineConfig(
        chunked_prefill_size=CHUNKING_OFF,
        max_prefill_tokens=largest,
        page_size=page_size,
        disable_overlap_schedule=True,  # one forward at a time: nothing to overlap
        disable_radix_cache=True,
        max_running_requests=1,
    ).resolve(max_total_tokens=pool, context_length=pool)


class CaseRunner:
    """Runs cases one after another on an engine that has nothing else to do, and times them."""

    def __init__(
        self, engine: Engine, vocab_size: int, timings: Timings, *, seed: int, on_step: StepHook | None = None
    ) -> None:
        self.engine = engine
        self._vocab_size = vocab_size
        self._timings = timings
        self._seed = seed
        self._on_step = on_step
        self._next_rid = 0

    def warm_up(self, case: SweepCase) -> None:
        """Run a case for what comes after it: its cost is noted, its time is no measurement."""
        start_ns = self.engine.clock.now_ns()
        self._forward(case)
        self._timings.note(case, (self.engine.clock.now_ns() - start_ns) / 1e9)

    def measure(self, case: SweepCase) -> None:
        """Run a case and note its cost and its device time."""
        start_ns = self.engine.clock.now_ns()
        device_s = self._forward(case)
        self._timings.note(case, (self.engine.clock.now_ns() - start_ns) / 1e9, [device_s])

    def _forward(self, case: SweepCase) -> float:
        """Device seconds of a prompt of random token ids, which arrives now and ends with its first token."""
        rid, self._next_rid = self._next_rid, self._next_rid + 1
        once = SamplingParams(max_new_tokens=1, ignore_eos=True)
        prompt = random_ids(case.tokens, self._vocab_size, self._seed, rid)
        arrival_ns = self.engine.clock.now_ns()
        self.engine.submit(Request(rid, f"{case.tokens}-{rid}", prompt, once, arrival_ns))
        device_ns = 0
        while self.engine.has_work:
            record = self.engine.step()
            if record is not None:
                device_ns += record.result.end_ns - record.result.start_ns
                if self._on_step is not None:
                    self._on_step(record)
        return device_ns / 1e9


def run_sweep(
    build: BuildEngine,
    recorder: EngineObserver,
    sizes: Sequence[int],
    *,
    vocab_size: int,
    repeats: int = 3,
    seed: int = 0,
    on_step: StepHook | None = None,
) -> Engine:
    """Record `repeats` forwards of each size, in an order shuffled anew for each repeat.

    `build` makes an engine on the same executor and clock every time; it is called without an observer for
    the warm-up, which runs every size once, the largest first and twice, and is recorded nowhere. Prompts are
    random token ids. Returns the recorded engine; the caller closes the recorder.
    """
    cases, timings = [SweepCase(size) for size in sizes], Timings()
    largest_first = sorted(cases, reverse=True)
    runner = CaseRunner(build(None), vocab_size, timings, seed=seed)
    for case in [*largest_first[:1], *largest_first]:
        runner.warm_up(case)
    runner = CaseRunner(build(recorder), vocab_size, timings, seed=seed, on_step=on_step)
    for case in repeated(cases, timings, np.random.default_rng(seed), repeats):
        runner.measure(case)
    return runner.engine


def prepare(
    build: BuildEngine, low: int, high: int, budget_s: float, *, vocab_size: int
) -> tuple[list[int], Timings]:
    """Warm up, recording nothing, and choose as many sizes from `low` to `high` as the budget has time for.

    A probe goes up from `low` in steps of four; then the chosen sizes run once each, the smallest first, as
    far as a twentieth of the budget goes. The largest are not warmed up: what a first forward pays for is
    little beside the time that they take.
    """
    timings = Timings()
    runner = CaseRunner(build(None), vocab_size, timings, seed=0)
    clock = runner.engine.clock
    end_ns = clock.now_ns() + round(budget_s * 1e9)
    for size in (low, *_steps(low, high)):
        if timings.cost_s(SweepCase(size)) > PROBE_SHARE * budget_s:
            break
        runner.warm_up(SweepCase(size))
    left_s = (end_ns - clock.now_ns()) / 1e9
    count = sizes_for(low, high, lambda size: timings.cost_s(SweepCase(size)), left_s)
    sizes = geometric_sizes(low, high, count)
    warm_ns = end_ns - round((1 - WARM_UP_SHARE) * budget_s * 1e9)
    for size in sizes:
        if clock.now_ns() + timings.cost_s(SweepCase(size)) * 1e9 > warm_ns:
            break
        runner.warm_up(SweepCase(size))
    return sizes, timings


def run_budget(
    build: BuildEngine,
    recorder: EngineObserver,
    sizes: Sequence[int],
    timings: Timings,
    *,
    vocab_size: int,
    budget_s: float,
    seed: int = 0,
    on_step: StepHook | None = None,
) -> Engine:
    """Record forwards of the sizes that `prepare` chose until each is known well or the time is over.

    `budget_s` is what `prepare` left of it. No forward is begun that is expected to end later, so the budget
    is exceeded by less than one forward. Returns the recorded engine.
    """
    runner = CaseRunner(build(recorder), vocab_size, timings, seed=seed, on_step=on_step)
    clock = runner.engine.clock
    end_ns = clock.now_ns() + round(budget_s * 1e9)
    cases = [SweepCase(size) for size in sizes]
    order = budgeted(cases, timings, np.random.default_rng(seed), lambda: (end_ns - clock.now_ns()) / 1e9)
    for case in order:
        runner.measure(case)
    return runner.engine


def _steps(low: int, high: int) -> Iterator[int]:
    while low <= high:
        yield low
        low *= PROBE_STEP
