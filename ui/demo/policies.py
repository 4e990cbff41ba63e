"""The three policies that the demo compares."""

from dataclasses import dataclass

from engine.config import CHUNKING_OFF, EngineConfig
from profiler.compare import CHUNKED, MIXED, WHOLE

__all__ = ["NAMES", "Policy", "policies"]

NAMES = (WHOLE, CHUNKED, MIXED)


@dataclass(frozen=True, slots=True)
class Policy:
    """A name, what it does in words, and the engine options that do it."""

    name: str
    words: str
    config: EngineConfig


def policies(chunk_tokens: int, pool_tokens: int) -> tuple[Policy, ...]:
    """Whole prompts; prompts in chunks; chunks that decodes ride along with."""
    return (
        Policy(
            WHOLE,
            "each prompt in one forward",
            EngineConfig(chunked_prefill_size=CHUNKING_OFF, max_total_tokens=pool_tokens),
        ),
        Policy(
            CHUNKED,
            f"prompts in chunks of {chunk_tokens} tokens",
            EngineConfig(chunked_prefill_size=chunk_tokens, max_total_tokens=pool_tokens),
        ),
        Policy(
            MIXED,
            "the same chunks, and decodes ride along",
            EngineConfig(
                chunked_prefill_size=chunk_tokens, max_total_tokens=pool_tokens, enable_mixed_chunk=True
            ),
        ),
    )
