"""The workload that stands for everyday use where there is no trace's own: decodes, and a long prompt."""

from engine.config import EngineConfig
from engine.request import Request, SamplingParams
from profiler.price_rows import ForwardCostModel
from profiler.price_sums import chunk_sums, decode_sums
from profiler.trial_prompts import made_prompt

__all__ = ["STANDARD_TOKENS", "standard_requests"]

DECODES, DECODE_PROMPT, DECODE_OUTPUT = 6, 64, 256
LONG_PROMPT, LONG_OUTPUT = 32_768, 8
DECODED = 10  # tokens that the decodes have given when the long prompt comes
LEAST_STEP = 4  # tokens of the long prompt, at least, that a forward computes for a token of a decode

STANDARD_TOKENS = DECODE_PROMPT + DECODE_OUTPUT
"""Prompt and output of a decode in everyday use; it goes on for longer only to outlast the long prompt."""


def standard_requests(cost: ForwardCostModel, config: EngineConfig) -> tuple[Request, ...]:
    """Six requests that decode, and a prompt of 32K tokens, or of what context and pool of `config` allow.

    The long prompt comes when the decodes have given some tokens, and as far as context and pool allow it
    they do not end before it has been served: try them until the last request's end. `config` must be
    resolved.
    """
    assert config.context_length is not None
    assert config.max_total_tokens is not None
    page, pool = config.page_size, config.max_total_tokens
    held = DECODES * (STANDARD_TOKENS + page)
    room = min(config.context_length, pool - 2 * held) - LONG_OUTPUT
    long_prompt = max(1, min(LONG_PROMPT, room - 2 * page))
    output = min(_outlasting(long_prompt), config.context_length - DECODE_PROMPT)
    each = (pool - long_prompt - LONG_OUTPUT - 2 * page) // DECODES  # tokens of the pool, a decode
    output = max(min(output, each - DECODE_PROMPT - 2 * page), min(output, DECODE_OUTPUT))
    decoded = decode_sums(DECODES, DECODE_PROMPT)
    first_s = cost.seconds(chunk_sums(DECODES * DECODE_PROMPT))
    arrival_s = first_s + DECODED * cost.seconds(decoded)
    decode = (DECODE_PROMPT, output, 0.0)
    lengths = [(f"decode-{i + 1}", *decode) for i in range(DECODES)]
    lengths.append(("long", long_prompt, LONG_OUTPUT, arrival_s))
    return tuple(
        Request(
            rid, name, made_prompt(rid, prompt), SamplingParams(output, ignore_eos=True), round(at_s * 1e9)
        )
        for rid, (name, prompt, output, at_s) in enumerate(lengths)
    )


def _outlasting(long_prompt: int) -> int:
    """Output tokens of a decode that still decodes when the long prompt has been served."""
    return DECODED + max(DECODE_OUTPUT, -(-long_prompt // LEAST_STEP) + LONG_OUTPUT)
