"""The workload that stands for everyday use where there is no trace's own: decodes, and a long prompt."""

from engine.config import EngineConfig
from engine.request import Request, SamplingParams
from profiler.price_rows import ForwardCostModel
from profiler.price_sums import chunk_sums, decode_sums
from profiler.trial_prompts import made_prompt

__all__ = ["standard_requests"]

DECODES, DECODE_PROMPT, DECODE_OUTPUT = 6, 64, 256
LONG_PROMPT, LONG_OUTPUT = 32_768, 8
DECODED = 10  # tokens that the decodes have given when the long prompt comes


def standard_requests(cost: ForwardCostModel, config: EngineConfig) -> tuple[Request, ...]:
    """Six requests that decode, and a prompt of 32K tokens, or of what context and pool of `config` allow.

    The long prompt comes when the decodes have given some tokens; `config` must be resolved.
    """
    assert config.context_length is not None
    assert config.max_total_tokens is not None
    held = DECODES * (DECODE_PROMPT + DECODE_OUTPUT + config.page_size)
    room = min(config.context_length, config.max_total_tokens - 2 * held) - LONG_OUTPUT
    long_prompt = max(1, min(LONG_PROMPT, room - 2 * config.page_size))
    decoded = decode_sums(DECODES, DECODE_PROMPT)
    first_s = cost.seconds(chunk_sums(DECODES * DECODE_PROMPT))
    arrival_s = first_s + DECODED * cost.seconds(decoded)
    decode = (DECODE_PROMPT, DECODE_OUTPUT, 0.0)
    lengths = [(f"decode-{i + 1}", *decode) for i in range(DECODES)]
    lengths.append(("long", long_prompt, LONG_OUTPUT, arrival_s))
    return tuple(
        Request(
            rid, name, made_prompt(rid, prompt), SamplingParams(output, ignore_eos=True), round(at_s * 1e9)
        )
        for rid, (name, prompt, output, at_s) in enumerate(lengths)
    )
