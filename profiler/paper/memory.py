"""`PaperMemory`: what weights, activations and KV take of one device, and how many requests fit."""

from dataclasses import dataclass

from engine.cache.allocator import ceil_page
from engine.config import CHUNKING_OFF, EngineConfig
from profiler.gpu_memory import reserved_bytes
from profiler.paper.elements import ACTIVATION_BYTES, ElementBytes
from profiler.paper.model import PaperModel

__all__ = ["PaperMemory", "activation_bytes", "sequence_bytes"]

LOGIT_BYTES = 4


def sequence_bytes(model: PaperModel, tokens: int, size: ElementBytes) -> int:
    """Bytes that a sequence of so many tokens keeps: a window keeps its own tokens, a state no tokens."""
    kept = 0
    for layer, count in model.layers:
        attention = layer.attention
        seen = tokens if attention.window is None else min(tokens, attention.window)
        kept += count * (seen * attention.token_bytes(size) + attention.state_bytes())
    return kept


def activation_bytes(model: PaperModel, tokens: int, rows_with_logits: int = 1) -> int:
    """The most of activations alive at once, as `engine.arithmetic.activation_estimate_bytes` has it."""
    hidden = model.hidden_size
    widest = max(max(layer.attention.alive(), layer.feed_forward.alive(hidden)) for layer, _ in model.layers)
    head = (tokens + rows_with_logits) * hidden * ACTIVATION_BYTES
    head += rows_with_logits * model.vocab_size * LOGIT_BYTES
    return max(tokens * (2 * hidden + widest) * ACTIVATION_BYTES, head)


@dataclass(frozen=True, slots=True)
class PaperMemory:
    """Bytes of one device that holds `model`, its part; a `MemoryRoom` of `profiler.price_list`.

    KV tokens are those of requests of `request_tokens`, since what a token keeps may depend on how long its
    request is; whole prompts have `longest_prompt` tokens.
    """

    model: PaperModel
    size: ElementBytes
    memory_bytes: int
    tp: int
    page_size: int
    request_tokens: int
    longest_prompt: int

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights."""
        return self.model.weight_bytes(self.size)

    @property
    def kv_token_bytes(self) -> int:
        """Bytes that one more token of a short sequence keeps."""
        stateless = sequence_bytes(self.model, 0, self.size)
        return sequence_bytes(self.model, 1, self.size) - stateless

    @property
    def full_token_bytes(self) -> int:
        """Bytes that one more token of an endless sequence keeps: those of layers without a window."""
        return sum(
            count * layer.attention.token_bytes(self.size)
            for layer, count in self.model.layers
            if layer.attention.window is None
        )

    @property
    def state_bytes(self) -> int:
        """Bytes that a sequence keeps whatever its length."""
        return sequence_bytes(self.model, 0, self.size)

    @property
    def request_bytes(self) -> int:
        """Bytes that a request of `request_tokens`, in whole pages, keeps."""
        return sequence_bytes(self.model, ceil_page(self.request_tokens, self.page_size), self.size)

    def activation_bytes(self, chunk_tokens: int | None) -> int:
        """Activations of a forward of one chunk."""
        return activation_bytes(self.model, chunk_tokens or self.longest_prompt)

    def kept_free_bytes(self, chunk_tokens: int | None) -> int:
        """What SGLang lets neither weights nor KV take at this chunk size."""
        size = CHUNKING_OFF if chunk_tokens is None else chunk_tokens
        config = EngineConfig(chunked_prefill_size=size)
        if chunk_tokens is None:
            budget = max(config.max_prefill_tokens, self.longest_prompt)
            config = EngineConfig(chunked_prefill_size=size, max_prefill_tokens=budget)
        return reserved_bytes(self.memory_bytes, config, self.tp)

    def kv_bytes(self, chunk_tokens: int | None) -> int:
        """What is left for KV; below 0 where weights and what is kept free are more than there is."""
        return self.memory_bytes - self.weight_bytes - self.kept_free_bytes(chunk_tokens)

    def kv_tokens(self, chunk_tokens: int | None) -> int:
        """Tokens, in whole pages, of requests of `request_tokens`."""
        tokens = ceil_page(self.request_tokens, self.page_size)
        free = max(0, self.kv_bytes(chunk_tokens))
        return free * tokens // self.request_bytes // self.page_size * self.page_size

    def requests(self, chunk_tokens: int | None) -> int:
        """Requests of `request_tokens` whose KV fits at once."""
        return max(0, self.kv_bytes(chunk_tokens)) // self.request_bytes
