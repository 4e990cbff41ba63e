"""Room for one more token of every running request: eviction, retraction, and abort as the last resort."""

from collections.abc import Sequence

from engine.cache import KVCache
from engine.cache.allocator import ceil_page, floor_page
from engine.config import EngineConfig
from engine.new_token_ratio import RETRACT_DECODE_STEPS
from engine.request import Request

__all__ = ["check_decode_mem", "choose_kept", "clip_max_new_tokens", "reset_for_retract"]


def clip_max_new_tokens(request: Request, config: EngineConfig) -> int:
    """`max_new_tokens` lowered so that the request fits an empty pool and the context. Never below 0.

    SGLang: at most pool - ceil_page(prompt) - page_size - 1 tokens. Its admission by drain (no radix cache,
    EOS ignored) wants one token more to spare and would never admit what that leaves: there it is one less.
    """
    assert config.max_total_tokens is not None
    assert config.context_length is not None
    page_size, context_length = config.page_size, config.context_length
    by_drain = config.disable_radix_cache and request.sampling.ignore_eos
    paged_prompt = ceil_page(request.prompt_len, page_size)
    in_pool = floor_page(config.max_total_tokens, page_size) - paged_prompt - page_size - 1 - by_drain
    in_context = context_length - request.prompt_len
    return max(0, min(request.sampling.max_new_tokens, in_pool, in_context))


def check_decode_mem(cache: KVCache, requests: Sequence[Request]) -> bool:
    """Whether each request can grow by one token; evicts what is unlocked if need be."""
    return cache.make_room(cache.decode_need_tokens(requests))


def choose_kept(requests: Sequence[Request]) -> list[Request]:
    """The requests in the order in which they are kept: most output first, ties by shorter prompt.

    Victims are taken from the end, so among equals the later row goes first.
    """
    return sorted(requests, key=lambda r: (-r.output_len, r.prompt_len))


def reset_for_retract(cache: KVCache, request: Request, remaining: int) -> None:
    """Take a request's KV away, keeping its output; what remains gets room for some steps more."""
    cache.release(request, keep=False)
    cache.make_room(remaining * RETRACT_DECODE_STEPS)
    request.prefix_len = request.extend_end = request.inflight_middle_chunks = 0
    request.attempt += 1
    request.retractions += 1
