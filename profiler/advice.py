"""`advise`: one set of scheduling options for a trace's workload, with what every alternative costs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.cache.allocator import ceil_page
from engine.config import EngineConfig
from engine.errors import ConfigError
from profiler.advice_choice import NO_LIMITS, Binding, Choice, Margins, choose, pays
from profiler.advice_cost import CostBasis, Slower, cost_of
from profiler.advice_point import Point, point_by_model, point_by_points
from profiler.advice_workload import TriedWorkload, base_config, tried_workload
from profiler.memory import MemoryModel, memory_model
from profiler.price_list import chunk_ladder, options_of, price_list
from profiler.price_rows import ForwardCostModel, Limits, PriceRow
from profiler.saturation import Saturation
from profiler.tables import TraceLike
from profiler.trial import longest_prompt
from profiler.trial_requests import has_arrivals, requests_of
from profiler.trial_standard import standard_requests

__all__ = ["Advice", "advise"]

BUDGET_S = 15.0
LARGEST_FORWARD = 8192  # tokens that a point of the cost model is looked for among, if no prompt is longer
SMALLER_SIZES = 4  # at most, below the ladder of chunk sizes


@dataclass(frozen=True, slots=True)
class Advice:
    """A choice among the rows of a price list, and all that it rests on."""

    choice: Choice
    rows: tuple[PriceRow, ...]
    point: Point
    measured: Saturation  # of the points, whether they tell the point or not
    basis: CostBasis
    margins: Margins
    workload: TriedWorkload
    config: EngineConfig  # that the rows' options are put into
    memory: MemoryModel | None
    num_traces: int = 1  # whose forwards tell times and point

    @property
    def enough_tokens(self) -> int:
        """The saturation point as a chunk size: rounded up to whole pages."""
        return ceil_page(self.point.tokens, self.config.page_size)

    def choose(self, limits: Limits) -> Choice:
        """The choice under other limits, without a new trial."""
        return choose(self.rows, limits, margins=self.margins, enough_tokens=self.enough_tokens)

    def under(self, limits: Limits) -> "Advice":
        """The same advice under other limits."""
        return replace(self, choice=self.choose(limits))

    def decodes_break(self, binding: Binding) -> bool:
        """Whether a decode forward alone, with its margin, is longer than a limit on waits."""
        least_s = (binding.best.decode_forward_s or 0.0) * (1 + self.margins.decode)
        return binding.limit != "ttft_p99_s" and least_s > binding.limit_s

    @property
    def smaller_may_help(self) -> bool:
        """Whether the smallest chunk comes nearest to a limit on waits that a smaller one may keep."""
        return any(
            each.alone
            and each.limit != "ttft_p99_s"
            and each.best.options.chunk_tokens == self.smallest
            and not self.decodes_break(each)
            for each in self.choice.bindings
        )

    @property
    def smallest(self) -> int:
        """The smallest chunk of the list, in tokens; without chunks the longest prompt."""
        return min(row.options.chunk_tokens or self.workload.longest_prompt for row in self.rows)

    def interval(self) -> tuple[int, int] | None:
        """Chunk sizes as good as the one chosen, in whole pages; None without a choice or for whole prompts.

        Of the saturation point its 95 % interval; of any other size the tried ones beside it, without a
        break, whose rows of the same policy keep the limits too, and pay if this one does. Below the point
        none is as good as one above.
        """
        row = self.choice.row
        if row is None or row.options.chunk_tokens is None:
            return None
        page, chosen = self.config.page_size, row.options.chunk_tokens
        if chosen == self.enough_tokens:
            return ceil_page(self.point.low, page), ceil_page(self.point.high, page)
        policy = [each for each in self.rows if replace(each.options, chunk_tokens=chosen) == row.options]
        sizes = sorted(each.options.chunk_tokens for each in policy if each.options.chunk_tokens is not None)
        least = self.enough_tokens if chosen > self.enough_tokens else 0
        keeping = {
            each.options.chunk_tokens
            for each in self.choice.keeping
            if each in policy
            and (each.options.chunk_tokens or 0) >= least
            and (pays(each, self.rows) or not pays(row, self.rows))
        }
        low = high = sizes.index(chosen)
        while low > 0 and sizes[low - 1] in keeping:
            low -= 1
        while high + 1 < len(sizes) and sizes[high + 1] in keeping:
            high += 1
        return sizes[low], sizes[high]


def advise(
    traces: TraceLike | Sequence[TraceLike],
    limits: Limits = NO_LIMITS,
    *,
    costs: Sequence[TraceLike] = (),
    page_size: int | None = None,
    chunks: Sequence[int] = (),
    budget_s: float = BUDGET_S,
) -> Advice:
    """Advice for the workload of the first of `traces` that has arrivals, under that run's other options.

    How long forwards take is fitted to those of all traces and of `costs`, of which no workload is taken.
    `chunks` are the sizes to compare; a ladder of them where none are given, which goes on downwards while
    smaller chunks may keep a limit on waits. Workloads that take longer to try than `budget_s`, about, are
    cut. Raises ConfigError and WorkloadError as what it calls does.
    """
    own = [*traces] if isinstance(traces, Sequence) else [traces]
    everything = [*own, *costs]
    basis = cost_of(everything)
    source = next((trace for trace in own if has_arrivals(trace)), own[0])
    base = base_config(source, page_size)
    told = requests_of(source) if has_arrivals(source) else None
    standard = standard_requests(basis.cost, base)
    longest = longest_prompt(told.requests if told and told.requests else standard).prompt_len
    by_points, measured = point_by_points(everything)
    assert base.context_length is not None
    largest = max(longest, min(LARGEST_FORWARD, base.context_length))
    point = by_points or point_by_model(basis.cost, largest, basis.model)
    sizes = tuple(sorted({*chunks})) or _ladder(source, point, longest, base)
    intervals = _intervals(source)
    trials = len(options_of(sizes, intervals)) * (2 if basis.model else 1)
    forwards = source.table("forwards").num_rows
    workload = tried_workload(told, forwards, standard, trials=trials, budget_s=budget_s)
    lists = _Lists(
        basis, workload, base, _memory(source, workload), intervals, ceil_page(point.tokens, base.page_size)
    )
    rows, margins = lists.priced(sizes)
    advice = Advice(
        choose(rows),
        rows,
        point,
        measured,
        basis,
        margins,
        workload,
        base,
        lists.memory,
        num_traces=len(everything),
    ).under(limits)
    return advice if chunks else _with_smaller(advice, lists)


@dataclass(frozen=True, slots=True)
class _Lists:
    """Prices chunk sizes, all on the same ground."""

    basis: CostBasis
    workload: TriedWorkload
    base: EngineConfig
    memory: MemoryModel | None
    intervals: tuple[int, ...]
    typical_tokens: int  # the chunk size whose margin a slower machine is made of

    def priced(self, sizes: Sequence[int]) -> tuple[tuple[PriceRow, ...], Margins]:
        """Rows of whole prompts and of these sizes, and how far a run may lie above them."""
        rows = self._rows(self.basis.cost, sizes)
        if self.basis.model is None:
            return rows, Margins()
        longest = self.workload.longest_prompt
        alone = self.basis.margins([None, *sizes], longest)
        typical = self.basis.margins([self.typical_tokens], longest).sums[self.typical_tokens]
        slower = self._rows(Slower(self.basis.cost, 1 + typical), sizes)
        return rows, replace(alone, slower={row.options: row for row in slower})

    def _rows(self, cost: ForwardCostModel, sizes: Sequence[int]) -> tuple[PriceRow, ...]:
        return price_list(
            cost,
            self.workload.requests,
            self.base,
            options_of(sizes, self.intervals),
            memory=self.memory,
            ends=self.workload.ends,
            until=self.workload.until,
            host_overhead_ns=self.basis.host_overhead_ns,
        )


def _with_smaller(advice: Advice, lists: _Lists) -> Advice:
    """The advice with ever smaller chunks, while no row keeps a limit on waits and a smaller one may."""
    page, align = advice.config.page_size, advice.config.truncation_align_size or 1
    for _ in range(SMALLER_SIZES):
        size = ceil_page(max(advice.smallest // 2, align), page)
        if size >= advice.smallest or not advice.smaller_may_help:
            return advice
        (whole, *smaller), margins = lists.priced([size])
        advice = replace(
            advice,
            rows=(whole, *smaller, *advice.rows[1:]),
            margins=advice.margins.joined(margins),
        ).under(advice.choice.limits)
    return advice


def _memory(trace: TraceLike, workload: TriedWorkload) -> MemoryModel | None:
    try:
        return memory_model(trace).with_prompts(workload.longest_prompt, workload.prompt_tokens)
    except ConfigError:
        return None


def _engine(trace: TraceLike, name: str) -> Any:
    told = trace.meta.get("engine")
    return told.get(name) if isinstance(told, dict) else None


def _intervals(trace: TraceLike) -> tuple[int, ...]:
    """One decode round between two prefill forwards, and the run's own number of them."""
    own = _engine(trace, "prefill_decode_interval")
    return tuple(sorted({1, own})) if isinstance(own, int) and own > 0 else (1,)


def _ladder(trace: TraceLike, point: Point, longest: int, base: EngineConfig) -> tuple[int, ...]:
    own = _engine(trace, "chunked_prefill_size") if has_arrivals(trace) else None
    also = [point.tokens, *([own] if isinstance(own, int) and own > 0 else [])]
    least = base.truncation_align_size or 1
    return chunk_ladder(longest, page_size=base.page_size, least=least, also=also)
