"""Measures forward time against tokens, prefixes and decode rows, in an ordinary engine."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from engine.config import CHUNKING_OFF, EngineConfig
from engine.engine import Engine
from engine.observer import EngineObserver
from profiler.sweep_cases import SweepCase, geometric_sizes, parse_range
from profiler.sweep_order import Timings, budgeted, num_sizes_for, repeated
from profiler.sweep_plan import DECODE_FORWARDS, SweepPlan
from profiler.sweep_runner import CaseRunner, StepHook
from profiler.sweep_stock import KVStock

if TYPE_CHECKING:
    from profiler.sweep_halfway import Halfway  # which loads polars, for the analysis of a trace

__all__ = ["NUM_SIZES", "SIMULATED_SIZES", "BuildEngine", "Sweep", "run_sweep", "sweep_config", "sweep_sizes"]

BuildEngine = Callable[[EngineObserver | None], Engine]

NUM_SIZES, SIMULATED_SIZES = 10, 24  # of a range, without a budget
PROBE_SHARE = 0.01  # of the budget: the most that one forward of the probe may take
WARM_UP_SHARE = 0.05  # of the budget, for the warm-up in all
PROBE_STEP = 4
FEW_TOKENS = 16  # of prefix and KV in the warm-up


def sweep_sizes(spec: str, count: int = NUM_SIZES) -> list[int]:
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


class Sweep:
    """One sweep: what is measured, how it stands, and the engine runs that bring it on."""

    def __init__(
        self,
        plan: SweepPlan,
        *,
        vocab_size: int,
        seed: int = 0,
        num_sizes: int = NUM_SIZES,
        simulated: bool = False,
        halfway: "Halfway | None" = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`num_sizes` in each range, unless a budget chooses. Simulated forwards need no warm-up.

        `halfway` is what a sweep of the same plan had measured before it was broken off. `now_s` is the clock
        of the budget.
        """
        self.plan = plan
        self.cases = halfway.cases if halfway else plan.cases(num_sizes)
        self.timings = halfway.timings if halfway else Timings()
        self._vocab_size = vocab_size
        self._seed = seed
        self._simulated = simulated
        self._decode_forwards = 1 if simulated else DECODE_FORWARDS
        self._halfway = halfway
        self._now_s = now_s
        self._start_s: float | None = None  # when the first of the engine runs began

    @property
    def uncovered(self) -> list[SweepCase]:
        """Cases of which no forward was measured."""
        return [case for case in self.cases if not self.timings.repeats(case)]

    @property
    def open_forwards(self) -> int | None:
        """Forwards that are still to be measured; None where a budget decides."""
        if self.plan.repeats is None:
            return None
        open_ = ((case, self.plan.repeats - self.timings.repeats(case)) for case in self.cases)
        return sum(max(visits, 0) * (self._decode_forwards if case.decode else 1) for case, visits in open_)

    @property
    def complete(self) -> bool:
        """Whether nothing is left to measure."""
        return self.open_forwards == 0 or self.left_s <= 0

    @property
    def left_s(self) -> float:
        """What is left of the budget: the warm-up counts, and what was recorded before a resume."""
        if self.plan.budget_s is None:
            return math.inf
        before_s = self._halfway.end_ns / 1e9 if self._halfway else 0.0
        since_s = 0.0 if self._start_s is None else self._now_s() - self._start_s
        return self.plan.budget_s - before_s - since_s

    def prepare(self, build: BuildEngine) -> None:
        """Warm up, recording nothing, and choose as many sizes as the budget has time for.

        Without a budget every size runs once, without a prefix, the largest first and twice. With one a probe
        goes up from the lowest size in steps of four; then the chosen sizes run once each, smallest first, as
        far as a twentieth of the budget goes. The largest are not warmed up: what a first forward pays for is
        little beside the time that they take.
        """
        self._start_s = self._now_s()
        if self._simulated:
            return
        runner = self._runner(build(None))
        if self.plan.budget_s is None:
            sizes = self._sizes()
            for case in [*sizes[-1:], *reversed(sizes)]:
                runner.warm_up(case)
        else:
            self._probe(runner, self.plan.budget_s)
        self._try_stock(build)

    def record(self, build: BuildEngine, recorder: EngineObserver, on_step: StepHook | None = None) -> Engine:
        """Measure until each case has its repeats or the time is over; returns the recorded engine.

        No forward is begun that is expected to end after the budget, so that it is exceeded by less than one.
        The caller closes the recorder.
        """
        stock = KVStock(self.plan, self._vocab_size, self._seed) if self.plan.needs_stock else None
        runner = self._runner(build(recorder), stock, on_step)
        cases = self.cases
        if stock is not None:
            runner.lay_in(lambda: self.left_s)
            cases = [case for case in cases if stock.covers(case)]
        for case in self._order(cases):
            runner.measure(case)
        runner.give_up()
        return runner.engine

    def _order(self, cases: Sequence[SweepCase]) -> Iterator[SweepCase]:
        rid = self._first_rid
        rng = np.random.default_rng([self._seed, rid] if rid else self._seed)
        if self.plan.repeats is None:
            return budgeted(cases, self.timings, rng, lambda: self.left_s)
        return repeated(cases, self.timings, rng, self.plan.repeats)

    @property
    def _first_rid(self) -> int:
        return self._halfway.next_rid if self._halfway else 0

    def _runner(
        self, engine: Engine, stock: KVStock | None = None, on_step: StepHook | None = None
    ) -> CaseRunner:
        return CaseRunner(
            engine,
            self.timings,
            vocab_size=self._vocab_size,
            seed=self._seed,
            stock=stock,
            decode_forwards=self._decode_forwards,
            first_rid=self._first_rid,
            on_step=on_step,
        )

    def _sizes(self) -> list[SweepCase]:
        """The sizes of prompts without a prefix, the smallest first."""
        return sorted({SweepCase(case.tokens) for case in self.cases if not case.decode})

    def _probe(self, runner: CaseRunner, budget_s: float) -> None:
        """Learn what sizes cost, choose them if they are open, and warm up the cheap ones."""
        for case in _steps(self.plan):
            if self.timings.cost_s(case) > PROBE_SHARE * budget_s:
                break
            runner.warm_up(case)
        if self._halfway is None:
            stock_tokens = self.plan.stock_tokens if self.plan.needs_stock else 0
            left_s = self.left_s - self.timings.cost_s(SweepCase(stock_tokens))
            count = num_sizes_for(self.plan.cases, self.timings, left_s, layouts=self.plan.num_layouts)
            self.cases = self.plan.cases(count)
        assert self._start_s is not None
        end_s = self._start_s + WARM_UP_SHARE * budget_s
        for case in self._sizes():
            if self._now_s() + self.timings.cost_s(case) > end_s:
                break
            runner.warm_up(case)

    def _try_stock(self, build: BuildEngine) -> None:
        """A forward behind a prefix, and decodes, so that no recorded one is the first of its kind."""
        plan = self.plan
        if not plan.needs_stock:
            return
        prefix, rows = min(max(plan.prefixes), FEW_TOKENS), min(plan.most_rows, 2)
        small = replace(
            plan,
            prefixes=(prefix,),
            batch=(1, rows) if rows else None,
            kv_tokens=min(plan.kv_tokens, FEW_TOKENS),
        )
        stock = KVStock(small, self._vocab_size, self._seed)
        runner = CaseRunner(build(None), Timings(), vocab_size=self._vocab_size, seed=self._seed, stock=stock)
        runner.lay_in(lambda: math.inf)
        if prefix:
            runner.warm_up(SweepCase(1, prefix))
        if rows:
            runner.warm_up(SweepCase(rows, small.kv_tokens, decode=True))


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
    the warm-up, which is recorded nowhere. Prompts are random token ids. Returns the recorded engine; the
    caller closes the recorder.
    """
    plan = SweepPlan((min(sizes), max(sizes)), repeats=repeats)
    sweep = Sweep(plan, vocab_size=vocab_size, seed=seed)
    sweep.cases = plan.cases_of(sizes, [])
    sweep.prepare(build)
    return sweep.record(build, recorder, on_step)


def _steps(plan: SweepPlan) -> Iterator[SweepCase]:
    """The lowest size twice, then steps up to the highest."""
    if plan.tokens is None:
        return
    size, high = plan.tokens
    yield SweepCase(size)
    while size <= high:
        yield SweepCase(size)
        size *= PROBE_STEP
