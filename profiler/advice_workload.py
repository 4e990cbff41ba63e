"""The requests that advice is tried on, and the engine options that it leaves as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any

import polars as pl

from engine.cache.allocator import ceil_page, floor_page
from engine.config import CHUNKING_OFF, EngineConfig
from engine.errors import ConfigError
from engine.request import Request
from profiler.tables import TraceLike, frame
from profiler.trial import longest_prompt
from profiler.trial_requests import TraceRequests, busiest, has_arrivals
from profiler.trial_standard import STANDARD_TOKENS

__all__ = ["TriedWorkload", "base_config", "tried_workload"]

# What trying a workload takes on one core, about; measured by benchmarks/advise.py.
FORWARD_S, ROW_S, TOKEN_S = 150e-6, 10e-6, 0.3e-6
LEAST_CONTEXT = 2048  # of a standard workload where no model says


@dataclass(frozen=True, slots=True)
class TriedWorkload:
    """Requests, and which they are.

    `kind` is "all", the trace's; "stretch", consecutive ones of it with the most prompt tokens that can be
    tried in time; or "standard", where the trace has no arrivals. `of_requests` counts the trace's.
    """

    kind: str
    requests: tuple[Request, ...]
    ends: Mapping[int, int]
    of_requests: int
    left_out: int = 0
    open_ended: int = 0
    shared_prefixes: bool = True

    @property
    def longest_prompt(self) -> int:
        """Tokens."""
        return max(request.prompt_len for request in self.requests)

    @property
    def prompt_tokens(self) -> int:
        """Of all requests."""
        return sum(request.prompt_len for request in self.requests)

    @property
    def until(self) -> int | None:
        """The rid of the request with whose end a standard workload is over; None where all run to theirs."""
        return longest_prompt(self.requests).rid if self.kind == "standard" else None

    @property
    def request_tokens(self) -> int:
        """Median prompt and output of a request; of a standard workload those of everyday use."""
        if self.kind == "standard":
            return STANDARD_TOKENS
        return round(median(r.prompt_len + r.sampling.max_new_tokens for r in self.requests))


def base_config(trace: TraceLike, page_size: int | None = None) -> EngineConfig:
    """The resolved options of a trace's run, with chunking off and another page size if one is given.

    A closed loop asks one request at a time of a pool of its own: it gives way to the model's context and
    whatever pool is needed, as do options that the trace does not tell. Raises ConfigError for options that
    do not go together.
    """
    told = trace.meta.get("engine")
    known = {field.name for field in fields(EngineConfig)}
    given = {name: told[name] for name in known & told.keys()} if isinstance(told, Mapping) else {}
    if not has_arrivals(trace):
        given = {"page_size": given.get("page_size", 1)}
    given |= {"chunked_prefill_size": CHUNKING_OFF, "enable_mixed_chunk": False, "prefill_decode_interval": 0}
    if page_size is not None:
        given["page_size"] = page_size
    try:
        config = EngineConfig(**given)
    except TypeError as error:
        raise ConfigError(f"meta.json: engine is not as recording writes it: {error}") from None
    context = max(_context(trace.meta), _longest_request(trace) + 1)
    config = config.resolve(max_total_tokens=_pool(trace, context, config.page_size), context_length=context)
    assert config.max_total_tokens is not None
    return replace(config, max_total_tokens=floor_page(config.max_total_tokens, config.page_size))


def tried_workload(
    told: TraceRequests | None, forwards: int, standard: Sequence[Request], *, trials: int, budget_s: float
) -> TriedWorkload:
    """As many requests of a trace of so many forwards as can be tried `trials` times in `budget_s`.

    The `standard` ones where the trace has none that arrive by themselves.
    """
    if told is None or not told.requests:
        return TriedWorkload("standard", tuple(standard), {}, len(standard))
    used = busiest(told.requests, _work_s(told, forwards), budget_s / max(1, trials))
    requests = told.requests[used]
    rids = {request.rid for request in requests}
    return TriedWorkload(
        kind="all" if len(requests) == len(told.requests) else "stretch",
        requests=requests,
        ends={rid: end for rid, end in told.ends.items() if rid in rids},
        of_requests=len(told.requests),
        left_out=told.left_out,
        open_ended=told.open_ended,
        shared_prefixes=told.shared_prefixes,
    )


def _work_s(told: TraceRequests, forwards: int) -> list[float]:
    """What trying each request once takes: its rows and prompt tokens, and its share of the forwards."""
    outputs = [told.ends.get(r.rid, r.sampling.max_new_tokens) for r in told.requests]
    share = forwards / max(1, sum(outputs))
    return [
        output * (ROW_S + FORWARD_S * share) + r.prompt_len * TOKEN_S
        for r, output in zip(told.requests, outputs, strict=True)
    ]


def _context(meta: Mapping[str, Any]) -> int:
    model = meta.get("model")
    longest = model.get("max_position_embeddings") if isinstance(model, Mapping) else None
    return longest if isinstance(longest, int) and longest > 0 else LEAST_CONTEXT


def _longest_request(trace: TraceLike) -> int:
    """Tokens of prompt and output; 0 without requests."""
    outputs = pl.max_horizontal("max_new_tokens", "output_tokens").fill_null(0)
    tokens = frame(trace, "requests").select(pl.col("prompt_tokens") + outputs).to_series()
    longest = tokens.max()
    return longest if isinstance(longest, int) else 0


def _pool(trace: TraceLike, context: int, page_size: int) -> int:
    """Tokens of a pool that the trace does not tell: its pages, else some requests of the whole context."""
    pages = frame(trace, "forwards")["pages_total"].max()
    if isinstance(pages, int) and pages and has_arrivals(trace):
        return pages * page_size
    return ceil_page(8 * context, page_size)
