"""`MemoryModel`: what forwards need beside weights and KV, and what a chunk size leaves for KV."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from engine.arithmetic import activation_estimate_bytes, kv_bytes_per_token
from engine.config import CHUNKING_OFF, EngineConfig
from profiler.forward_fit_setting import Setting, setting_of
from profiler.gpu_memory import reserved_bytes
from profiler.memory_facts import MemoryFacts, device_bytes, memory_facts
from profiler.memory_fit import Envelope, fit_envelope, measured_activations
from profiler.tables import TraceLike

__all__ = ["BY_ACTIVATIONS", "BY_RESERVE", "MemoryModel", "MemoryRow", "memory_model"]

ESTIMATED = "estimated from the shape"
RESIDENT = "measured as resident memory"
ALLOCATED = "measured as the allocator's peak"

BY_ACTIVATIONS = "activations"
BY_RESERVE = "SGLang's reserve"


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """What the memory holds at one chunk size; None where its size is unknown."""

    chunk_tokens: int | None  # None is whole prompts
    activation_bytes: int  # the most that a forward adds
    extrapolated: bool  # whether no measured forward had as many tokens
    kept_free_bytes: int | None
    kv_tokens: int | None  # whole pages beside weights and what is kept free; at least 0
    requests: int | None  # of the trace's median length that these hold; None without requests


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """Bytes of one device; docs/metrics.md, "Memory", defines every number."""

    kind: str  # where activations are from: ESTIMATED, RESIDENT or ALLOCATED
    envelope: Envelope | None  # of what was measured; None where nothing was
    num_forwards: int  # that were measured
    share_above: float | None  # of these, how many needed more than the envelope
    largest_tokens: int | None  # in one of these
    kv_token_bytes: int
    kept_free_by: str  # BY_ACTIVATIONS, or BY_RESERVE for a simulated run, whose pool was made so
    memory_bytes: int | None  # of the device; None is unknown
    facts: MemoryFacts
    setting: Setting
    on_cpu: bool  # whose memory other programs share

    def with_memory(self, memory_bytes: int) -> "MemoryModel":
        """The same on a device with a memory of this size."""
        return replace(self, memory_bytes=memory_bytes)

    def with_prompts(self, longest_tokens: int, all_tokens: int) -> "MemoryModel":
        """The same for requests whose longest prompt, and all prompts together, have so many tokens."""
        facts = replace(self.facts, longest_prompt_tokens=longest_tokens, prompt_tokens=all_tokens)
        return replace(self, facts=facts)

    def forward_bytes(self, tokens: int, rows_with_logits: int = 1, prefix_tokens: int = 0) -> int:
        """The most that a forward of so many tokens adds to what is held when it begins."""
        estimate = activation_estimate_bytes(
            self.setting.shape, tokens, rows_with_logits, self.setting.element_bytes
        )
        return estimate if self.envelope is None else round(self.envelope.at(estimate, prefix_tokens))

    def activation_bytes(self, chunk_tokens: int | None) -> int:
        """The most that any forward adds at a chunk size; None is whole prompts.

        It is that of the longest prompt's last chunk, or of the decode forward with the most rows.
        """
        tokens = self._prefill_tokens(chunk_tokens)
        prefix = max(0, (self.facts.longest_prompt_tokens or 0) - tokens)
        rows = self.facts.most_decode_rows
        return max(self.forward_bytes(tokens, 1, prefix), self.forward_bytes(rows, rows))

    def kept_free_bytes(self, chunk_tokens: int | None) -> int | None:
        """What neither weights nor KV may take; None where the memory's size is unknown."""
        if self.memory_bytes is None:
            return None
        if self.kept_free_by == BY_ACTIVATIONS:
            return self.activation_bytes(chunk_tokens)
        config = EngineConfig(
            chunked_prefill_size=CHUNKING_OFF if chunk_tokens is None else chunk_tokens,
            max_prefill_tokens=self.facts.max_prefill_tokens,
        )
        return reserved_bytes(self.memory_bytes, config, self.setting.num_devices)

    def kv_tokens(self, chunk_tokens: int | None) -> int | None:
        """KV tokens, whole pages, that fit beside weights and what is kept free; None without a size."""
        kept = self.kept_free_bytes(chunk_tokens)
        if self.memory_bytes is None or kept is None:
            return None
        free = max(0, self.memory_bytes - self.facts.weight_bytes - kept)
        return free // self.kv_token_bytes // self.facts.page_size * self.facts.page_size

    def rows(self, chunks: Iterable[int | None]) -> tuple[MemoryRow, ...]:
        """What each chunk size takes and leaves; None is whole prompts."""
        return tuple(self._row(chunk) for chunk in chunks)

    def _row(self, chunk_tokens: int | None) -> MemoryRow:
        kv_tokens, request = self.kv_tokens(chunk_tokens), self.facts.request_tokens
        return MemoryRow(
            chunk_tokens=chunk_tokens,
            activation_bytes=self.activation_bytes(chunk_tokens),
            extrapolated=self._prefill_tokens(chunk_tokens) > (self.largest_tokens or 0),
            kept_free_bytes=self.kept_free_bytes(chunk_tokens),
            kv_tokens=kv_tokens,
            requests=kv_tokens // request if kv_tokens is not None and request else None,
        )

    def _prefill_tokens(self, chunk_tokens: int | None) -> int:
        """Tokens of the largest prefill forward that this workload can make.

        Without chunking it takes `max_prefill_tokens` of several prompts, or one prompt that is longer.
        """
        facts = self.facts
        budget = max(facts.max_prefill_tokens, facts.longest_prompt_tokens or 1)
        tokens = budget if chunk_tokens is None else chunk_tokens
        return min(tokens, facts.prompt_tokens or tokens)


def memory_model(trace: TraceLike) -> MemoryModel:
    """What a trace tells of memory. Raises ConfigError if meta.json tells no model."""
    setting = setting_of(trace.meta)
    measured = measured_activations(trace)
    known = not measured.is_empty()
    envelope = fit_envelope(measured) if known else None
    hardware = trace.meta.get("hardware")
    on_cpu = isinstance(hardware, Mapping) and hardware.get("device") == "cpu"
    most = measured["tokens"].max()
    return MemoryModel(
        kind=ESTIMATED if not known else RESIDENT if on_cpu else ALLOCATED,
        envelope=envelope,
        num_forwards=len(measured),
        share_above=envelope.share_above(measured) if envelope else None,
        largest_tokens=most if isinstance(most, int) else None,
        kv_token_bytes=kv_bytes_per_token(setting.shape, setting.element_bytes),
        kept_free_by=BY_RESERVE if setting.provenance == "simulated" else BY_ACTIVATIONS,
        memory_bytes=device_bytes(trace.meta),
        facts=memory_facts(trace, setting),
        setting=setting,
        on_cpu=on_cpu,
    )
