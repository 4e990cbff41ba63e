"""What a plan means, in words chosen from its numbers: what to start with, then why and against what."""

import math

from profiler.paper.feed_forward import Experts
from profiler.paper.latent import LatentAttention
from profiler.paper.plan import PaperPlan
from profiler.price_rows import PriceRow
from profiler.wording import count, duration, tokens

__all__ = ["answer", "reasons"]

NONE_LOST = 0.005  # a share of throughput that rounds to 0 %
NOTHING = "nothing"
MOST_EXPERTS = 0.95
GIB = 2**30


def answer(plan: PaperPlan) -> str:
    """What to start with."""
    return f"Start with {' '.join(plan.start.options.arguments())}."


def reasons(plan: PaperPlan) -> list[str]:
    """Why, a sentence or two each: the point, SGLang's default, what binds, memory, and the source."""
    return [_point(plan), _against_sglang(plan), _bound(plan), _memory(plan), _source(plan)]


def _point(plan: PaperPlan) -> str:
    point, start = plan.point, plan.start
    span = f"of forwards of 1 to {tokens(point.largest)}"
    price = (
        f"A chunk of {count(_chunk(start))} loses {_lost(start)} of a long prompt's best throughput "
        f"and takes {_times(plan, start)}.{_latents(plan)}"
    )
    if point.tokens is None:
        return f"Throughput still rises at the end {span}: there is no saturation point. {price}"
    return (
        f"On paper {tokens(point.tokens)} fill a forward: {point.q * 100:g} % of the best prefill "
        f"throughput {span}. {price}"
    )


def _latents(plan: PaperPlan) -> str:
    """Why a chunk at the point loses more than the point's forward, if attention is latent."""
    latent = any(isinstance(layer.attention, LatentAttention) for layer, _ in plan.model.layers)
    if not latent or plan.start.forwards == 1 or _lost(plan.start) == NOTHING:
        return ""
    return " Behind a prefix every chunk expands the latents of its prefix again: smaller chunks lose more."


def _against_sglang(plan: PaperPlan) -> str:
    memory = plan.memory.memory_bytes / GIB
    theirs = plan.row(plan.sglang_chunk)
    start = plan.start
    assert theirs is not None, "the list holds SGLang's chunk"
    waits = _waits(plan, start)
    if theirs.options.chunk_tokens == start.options.chunk_tokens:
        return f"That is the chunk SGLang takes for {memory:,.0f} GiB by itself. {waits}"
    return (
        f"SGLang takes {count(plan.sglang_chunk)} for {memory:,.0f} GiB by itself: it loses {_lost(theirs)} "
        f"and takes {_times(plan, theirs)}. {waits}"
    )


def _waits(plan: PaperPlan, start: PriceRow) -> str:
    """How long decodes wait behind the long prompt, by policy and chunk."""
    chunk = _chunk(start)
    names = {
        (chunk, True): f"{count(chunk)} mixed",
        (chunk, False): f"{count(chunk)} prefill first",
        (plan.sglang_chunk, True): f"{count(plan.sglang_chunk)} mixed",
    }
    waits = [
        f"{name} {duration(row.longest_wait_s)}"
        for (size, mixed), name in names.items()
        if (row := plan.row(size, mixed=mixed)) is not None and row.longest_wait_s is not None
    ]
    return f"Longest decode wait behind a prompt of {tokens(plan.prompt_tokens)}: {', '.join(waits)}."


def _bound(plan: PaperPlan) -> str:
    ridge, largest = plan.point.ridge_tokens, plan.point.largest
    experts = _experts(plan)
    if ridge is None:
        return (
            f"Up to {tokens(largest)} the layers' weights take longer to read than to multiply: forwards "
            f"are memory-bound, and more tokens cost little.{experts}"
        )
    return (
        f"Below {tokens(ridge)} the layers' weights take longer to read than to multiply: forwards are "
        f"memory-bound, and more tokens almost free. Above they are compute-bound.{experts}"
    )


def _experts(plan: PaperPlan) -> str:
    """When a mixture's experts are read, if there is one."""
    mixture = next((experts for _, experts, _ in plan.model.mixtures()), None)
    if mixture is None:
        return ""
    return (
        f" A token takes {mixture.per_token} of {mixture.num_experts} experts: from "
        f"{tokens(_covering(mixture))} on 95 % of a layer's are read, each for few of them."
    )


def _covering(experts: Experts) -> int:
    """The least tokens that take MOST_EXPERTS of them, on average."""
    if experts.per_token == experts.num_experts:
        return 1
    return math.ceil(math.log(1 - MOST_EXPERTS) / math.log1p(-experts.per_token / experts.num_experts))


def _memory(plan: PaperPlan) -> str:
    memory, chunk = plan.memory, _chunk(plan.start)
    each = " a GPU" if plan.device.tp > 1 else ""
    return (
        f"Weights take {memory.weight_bytes / GIB:,.1f} of {memory.memory_bytes / GIB:,.1f} GiB{each}. "
        f"Beside such chunks {_requests(memory.requests(chunk))} of {tokens(memory.request_tokens)} fit at "
        "once."
    )


def _source(plan: PaperPlan) -> str:
    card = plan.device.card.name
    if plan.device.profile is None:
        return (
            f"All of this is derived from the configuration and the data sheet of {card}; nothing was "
            "measured. Measured forwards often saturate at several times as many tokens: give a --profile of "
            "GEMMs, or measure a sweep."
        )
    return (
        f"All of this is derived from the configuration, the data sheet of {card} and GEMM times measured by "
        "others; no forward was measured. A sweep does."
    )


def _times(plan: PaperPlan, row: PriceRow) -> str:
    """Its first and its last forward of the long prompt."""
    assert row.first_forward_s is not None
    assert row.last_forward_s is not None
    first = duration(row.first_forward_s)
    if row.forwards == 1:
        return first
    return f"{first}, at the end of a prompt of {tokens(plan.prompt_tokens)} {duration(row.last_forward_s)}"


def _chunk(row: PriceRow) -> int:
    assert row.options.chunk_tokens is not None
    return row.options.chunk_tokens


def _lost(row: PriceRow) -> str:
    lost = 1 - (row.plateau_share or 0.0)
    return NOTHING if lost < NONE_LOST else f"{lost * 100:.0f} %"


def _requests(number: int) -> str:
    return f"{count(number)} request{'' if number == 1 else 's'}"
