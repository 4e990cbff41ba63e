"""`paper_plan`: a chunk to start with, what each size costs and what fits in memory, before any run."""

import math
from dataclasses import dataclass, replace

from engine.cache.allocator import ceil_page
from engine.config import EngineConfig
from engine.errors import ConfigError
from profiler.advice_choice import Choice, choose
from profiler.gpu_memory import default_chunk_tokens
from profiler.hardware import Card
from profiler.paper.device import PaperDevice, known_cards
from profiler.paper.memory import PaperMemory
from profiler.paper.model import PaperModel
from profiler.paper.point import LARGEST_TOKENS, PaperPoint, paper_point
from profiler.price_list import chunk_ladder, options_of, price_list
from profiler.price_rows import Options, PriceRow
from profiler.trial import longest_prompt
from profiler.trial_standard import standard_requests

__all__ = ["PaperPlan", "paper_plan"]

GIB = 2**30
LEAST_CONTEXT = 128
REQUEST_TOKENS = 4096  # of the requests that are counted into memory
MOST_PAGES = 1 << 22  # of the trials' pool, as of any simulated one
AROUND = 4  # times the chunk that reaches the point, and a part of it: rows between are a power of two apart
LEAST_CHUNK = 128  # of those below it: a prompt has very many smaller ones
MORE_DEVICES = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class PaperPlan:
    """The answer; docs/metrics.md, "On paper", defines every number. All is derived, nothing measured."""

    model: PaperModel  # whole
    device: PaperDevice
    point: PaperPoint
    memory: PaperMemory
    sglang_chunk: int  # that SGLang takes for this memory
    prompt_tokens: int  # longest prompt of the rows' workload
    rows: tuple[PriceRow, ...]
    choice: Choice  # of the rows, the one to start with

    @property
    def start(self) -> PriceRow:
        """The row to start with."""
        assert self.choice.row is not None, "without limits there is always a choice"
        return self.choice.row

    def row(self, chunk: int | None, *, mixed: bool = False) -> PriceRow | None:
        """The row of a chunk size; None where the list has none."""
        return next((row for row in self.rows if row.options == Options(chunk, mixed)), None)


def paper_plan(model: PaperModel, device: PaperDevice, *, page_size: int = 1, q: float = 0.95) -> PaperPlan:
    """The plan of a model on devices that hold `device.part` of it each.

    Raises ConfigError where weights leave no room for KV, naming the least `--tp` and the cards that would,
    and for a context that is too short to try anything in.
    """
    context = model.max_position_embeddings
    if context < LEAST_CONTEXT:
        raise ConfigError(
            f"{model.name}: a context of {context} tokens is too short: give a model with {LEAST_CONTEXT} "
            "or more"
        )
    sglang_chunk = ceil_page(default_chunk_tokens(device.peaks.memory_bytes), page_size)
    memory = PaperMemory(
        device.part,
        device.size,
        device.peaks.memory_bytes,
        device.tp,
        page_size=page_size,
        request_tokens=min(REQUEST_TOKENS, context),
        longest_prompt=context,
    )
    if memory.requests(sglang_chunk) < 1:
        raise ConfigError(_does_not_fit(model, device, memory, sglang_chunk))
    cost = device.cost_model()
    point = paper_point(cost, min(LARGEST_TOKENS, context), q)
    base = _base(memory, sglang_chunk, context)
    requests = standard_requests(cost, base)
    long = longest_prompt(requests)
    prompt = long.prompt_len
    memory = replace(memory, longest_prompt=prompt)
    sizes = _sizes(point, sglang_chunk, prompt, page_size)
    rows = price_list(cost, requests, base, options_of(sizes, intervals=()), memory=memory, until=long.rid)
    chunked = [row for row in rows if row.options.chunk_tokens is not None]
    choice = choose(chunked, enough_tokens=point.tokens)
    return PaperPlan(model, device, point, memory, sglang_chunk, prompt, rows, choice)


def _sizes(point: PaperPoint, sglang_chunk: int, prompt: int, page_size: int) -> list[int]:
    """Powers of two around the least that reaches the point, further apart beyond, and SGLang's chunk."""
    reaches = sglang_chunk if point.tokens is None else 1 << (point.tokens - 1).bit_length()
    start = ceil_page(reaches, page_size)
    least = min(start, max(start // AROUND, LEAST_CHUNK))
    most = max(sglang_chunk, 2 * start)
    ladder = chunk_ladder(prompt, page_size=page_size, also=(start, sglang_chunk))

    def listed(size: int) -> bool:
        near = size <= AROUND * start or round(math.log2(size / start)) % 2 == 0
        return least <= size <= most and (near or size == sglang_chunk)

    return [size for size in ladder if listed(size)]


def _base(memory: PaperMemory, chunk: int, context: int) -> EngineConfig:
    """Options of the trials. Without a prefix cache they go the same way, as no two prompts begin alike."""
    pool = min(memory.kv_tokens(chunk), MOST_PAGES * memory.page_size)
    config = EngineConfig(chunked_prefill_size=chunk, page_size=memory.page_size, disable_radix_cache=True)
    return config.resolve(max_total_tokens=pool, context_length=context)


def _does_not_fit(model: PaperModel, device: PaperDevice, memory: PaperMemory, chunk: int) -> str:
    """What weights and KV of one request want, and the least change that would do."""

    def fits(tp: int, card: Card) -> bool:
        try:
            part = model.split(tp)
        except ConfigError:
            return False
        return replace(memory, model=part, tp=tp, memory_bytes=card.memory_bytes).requests(chunk) > 0

    linked = device.peaks.link_bytes_per_s is not None
    link = "" if linked else " with --link-bandwidth"
    mends = [f"--tp {tp}{link}" for tp in MORE_DEVICES if tp > device.tp and fits(tp, device.card)][:1]
    mends += known_cards(lambda card: fits(device.tp, card), device.card)
    return (
        f"--gpu {device.label}: of {memory.memory_bytes / GIB:.1f} GiB each, {memory.weight_bytes / GIB:.1f} "
        f"GiB of weights and {memory.kept_free_bytes(chunk) / GIB:.1f} GiB kept free leave no KV of "
        f"{memory.request_tokens:,} tokens: give {' or '.join(mends) or 'a smaller model'}"
    )
