"""`price_list`: what each set of scheduling options costs a workload, by a cost model and the real scheduler.

It knows no trace: cost, memory, requests and options are the caller's, measured or from paper.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from engine.batch import ForwardMode
from engine.cache.allocator import ceil_page
from engine.config import CHUNKING_OFF, EngineConfig
from engine.request import Request
from profiler.price_rows import ForwardCostModel, Options, PriceRow
from profiler.price_sums import chunk_sums
from profiler.trial import TrialResult, longest_prompt, trial

__all__ = ["MemoryRoom", "chunk_ladder", "options_of", "price_list", "with_options"]

LEAST_CHUNK, MOST_BELOW = 64, 4
LEAST_LOOKED_AT = 16  # smaller chunks are best nowhere, and a prompt has very many of them


class MemoryRoom(Protocol):
    """What a chunk size takes of the memory and leaves for KV; whole prompts are None, as is the unknown."""

    def activation_bytes(self, chunk_tokens: int | None) -> int | None:
        """The most that a forward holds beside weights and KV."""
        ...

    def kv_tokens(self, chunk_tokens: int | None) -> int | None:
        """Tokens of KV that there is room for beside weights and such forwards."""
        ...


def chunk_ladder(
    longest: int, *, page_size: int = 1, least: int = 1, also: Iterable[int] = ()
) -> tuple[int, ...]:
    """Chunk sizes worth a row, ascending: powers of two below the `longest` prompt, and those of `also`.

    All are page multiples, rounded up, and at least `least`. The powers begin at a quarter of the smallest of
    `also`, or at 64 tokens.
    """
    also = [ceil_page(max(size, least), page_size) for size in also]
    size = 1 << max(0, min(also, default=MOST_BELOW * LEAST_CHUNK) // MOST_BELOW - 1).bit_length()
    sizes = set(also)
    while size < longest:
        sizes.add(ceil_page(max(size, least), page_size))
        size *= 2
    return tuple(sorted(sizes or {ceil_page(max(longest, least), page_size)}))


def options_of(chunks: Iterable[int], intervals: Sequence[int] = (1,)) -> tuple[Options, ...]:
    """Whole prompts, then of each chunk size: prefill first, mixed, and prefill first with each interval."""
    rows = [Options(None)]
    for chunk in chunks:
        rows += [Options(chunk), Options(chunk, mixed=True)]
        rows += [Options(chunk, interval=interval) for interval in intervals if interval > 0]
    return tuple(rows)


def with_options(base: EngineConfig, options: Options) -> EngineConfig:
    """`base` with these scheduling options; ConfigError where they do not go with its others."""
    chunk = CHUNKING_OFF if options.chunk_tokens is None else options.chunk_tokens
    return replace(
        base,
        chunked_prefill_size=chunk,
        enable_mixed_chunk=options.mixed,
        prefill_decode_interval=options.interval,
    )


def price_list(
    cost: ForwardCostModel,
    requests: Sequence[Request],
    base: EngineConfig,
    options: Sequence[Options],
    *,
    memory: MemoryRoom | None = None,
    ends: Mapping[int, int] | None = None,
    until: int | None = None,
    host_overhead_ns: int = 0,
) -> tuple[PriceRow, ...]:
    """A row for each of `options`, in their order; whole prompts are tried too, to compare with.

    `base` must be resolved; `ends`, `until` and `host_overhead_ns` are those of `trial`. docs/metrics.md,
    "Price list and advice", defines every number. Raises ConfigError for options that `base` does not go
    with, and WorkloadError for a request that could never be served.
    """
    longest = longest_prompt(requests)
    shares = _Shares(cost, [longest.prompt_len, *(o.chunk_tokens or longest.prompt_len for o in options)])
    tried = {
        each: trial(
            requests,
            with_options(base, each),
            cost,
            ends=ends,
            until=until,
            host_overhead_ns=host_overhead_ns,
        )
        for each in dict.fromkeys((Options(None), *options))
    }
    whole = tried[Options(None)]
    return tuple(_row(each, tried[each], whole, longest, cost, shares, memory) for each in options)


class _Shares:
    """Throughput of a long prompt in chunks of a size, as a share of the best of any size looked at.

    However a prompt is cut its attention has the same pairs, so only what a size adds to that counts against
    it. The prompt is the longest, or as long as the largest chunk, which short prompts fill together.
    """

    def __init__(self, cost: ForwardCostModel, sizes: Sequence[int]) -> None:
        self._cost = cost
        self._prompt = max(sizes)
        self._seconds = {size: self._prefill_seconds(size) for size in {*self._halvings(), *sizes}}
        self._best = min(self._seconds.values())

    def of(self, tokens: int) -> float:
        return self._best / self._seconds[tokens]

    def _halvings(self) -> list[int]:
        """The prompt whole, its half, its quarter: the best is among these or beside one."""
        sizes = [self._prompt]
        while sizes[-1] > LEAST_LOOKED_AT:
            sizes.append(-(-sizes[-1] // 2))
        return sizes

    def _prefill_seconds(self, chunk: int) -> float:
        whole, rest = divmod(self._prompt, chunk)
        lengths = [chunk] * whole + [rest] * (rest > 0)
        starts = range(0, self._prompt, chunk)
        last = len(lengths) - 1
        return sum(
            self._cost.seconds(chunk_sums(tokens, start, logits=i == last))
            for i, (tokens, start) in enumerate(zip(lengths, starts, strict=True))
        )


def _row(
    options: Options,
    result: TrialResult,
    whole: TrialResult,
    longest: Request,
    cost: ForwardCostModel,
    shares: _Shares,
    memory: MemoryRoom | None,
) -> PriceRow:
    size = min(options.chunk_tokens or longest.prompt_len, longest.prompt_len)
    behind = longest.prompt_len - size
    ttft_ns, whole_ttft_ns = result.ttft_ns.get(longest.rid), whole.ttft_ns.get(longest.rid)
    decode_ns = result.longest_ns.get(ForwardMode.DECODE)
    return PriceRow(
        options=options,
        plateau_share=shares.of(options.chunk_tokens or longest.prompt_len),
        forwards=result.longest_prompt_forwards,
        first_forward_s=cost.seconds(chunk_sums(size, logits=not behind)),
        last_forward_s=cost.seconds(chunk_sums(size, behind)),
        longest_wait_s=result.longest_wait_s,
        itl_p99_s=result.gap_s(0.99),
        ttft_p99_s=result.ttft_s(0.99),
        ttft_long_s=None if ttft_ns is None else ttft_ns / 1e9,
        against_whole=ttft_ns / whole_ttft_ns - 1 if ttft_ns is not None and whole_ttft_ns else None,
        output_tokens_per_s=result.output_tokens_per_s,
        activation_bytes=memory.activation_bytes(options.chunk_tokens) if memory else None,
        kv_tokens=memory.kv_tokens(options.chunk_tokens) if memory else None,
        decode_forward_s=None if decode_ns is None else decode_ns / 1e9,
    )
