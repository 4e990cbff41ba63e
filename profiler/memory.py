"""`MemoryModel`: what forwards need beside weights and KV, and what a chunk size leaves for KV."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.arithmetic import activation_estimate_bytes, kv_bytes_per_token
from engine.config import CHUNKING_OFF, EngineConfig
from engine.errors import ConfigError
from profiler.forward_fit_setting import Setting, setting_of
from profiler.gpu_memory import reserved_bytes
from profiler.memory_facts import MemoryFacts, memory_facts
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
    """What a memory holds at one chunk size."""

    chunk_tokens: int | None  # None is whole prompts
    activation_bytes: int  # the most that a forward adds
    extrapolated: bool  # whether no measured forward had as many tokens
    kept_free_bytes: int
    kept_free_by: str  # BY_ACTIVATIONS or BY_RESERVE
    kv_tokens: int  # whole pages beside weights and what is kept free; at least 0
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
    facts: MemoryFacts
    setting: Setting

    def activation_bytes(self, tokens: int, rows_with_logits: int = 1, prefix_tokens: int = 0) -> int:
        """The most that a forward of so many tokens adds to what is held when it begins."""
        estimate = activation_estimate_bytes(
            self.setting.shape, tokens, rows_with_logits, self.setting.element_bytes
        )
        return estimate if self.envelope is None else round(self.envelope.at(estimate, prefix_tokens))

    def chunk_activation_bytes(self, chunk_tokens: int | None) -> int:
        """The most that a forward adds at a chunk size: the longest prompt's last chunk, or all decode rows.

        Without chunking a forward takes `max_prefill_tokens`, or the longest prompt if that is longer.
        """
        tokens = self._prefill_tokens(chunk_tokens)
        prefix = max(0, (self.facts.longest_prompt_tokens or 0) - tokens)
        rows = self.facts.most_decode_rows
        return max(self.activation_bytes(tokens, 1, prefix), self.activation_bytes(rows, rows))

    def row(
        self, chunk_tokens: int | None, memory_bytes: int | None = None, kept_free_by: str | None = None
    ) -> MemoryRow:
        """What the device's memory, or one of `memory_bytes`, holds at a chunk size.

        A simulated run keeps free what SGLang does, since its pool was made so, and a measured one what
        activations need, unless `kept_free_by` says otherwise. Raises ConfigError if no size is known.
        """
        memory = memory_bytes or self.facts.device_bytes
        if memory is None:
            raise ConfigError(f"the memory of {self.setting.hardware} is not known: give its size")
        activations = self.chunk_activation_bytes(chunk_tokens)
        by = kept_free_by or (BY_RESERVE if self.setting.provenance == "simulated" else BY_ACTIVATIONS)
        kept = activations if by == BY_ACTIVATIONS else self._reserve(chunk_tokens, memory)
        page = self.facts.page_size
        free = max(0, memory - self.facts.weight_bytes - kept)
        kv_tokens = free // self.kv_token_bytes // page * page
        request = self.facts.request_tokens
        return MemoryRow(
            chunk_tokens=chunk_tokens,
            activation_bytes=activations,
            extrapolated=self._prefill_tokens(chunk_tokens) > (self.largest_tokens or 0),
            kept_free_bytes=kept,
            kept_free_by=by,
            kv_tokens=kv_tokens,
            requests=kv_tokens // request if request else None,
        )

    def rows(
        self, chunks: Iterable[int | None], memory_bytes: int | None = None, kept_free_by: str | None = None
    ) -> tuple[MemoryRow, ...]:
        """`row` of each chunk size."""
        return tuple(self.row(chunk, memory_bytes, kept_free_by) for chunk in chunks)

    def _prefill_tokens(self, chunk_tokens: int | None) -> int:
        if chunk_tokens is not None:
            return chunk_tokens
        return max(self.facts.max_prefill_tokens or 1, self.facts.longest_prompt_tokens or 1)

    def _reserve(self, chunk_tokens: int | None, memory_bytes: int) -> int:
        size = CHUNKING_OFF if chunk_tokens is None else chunk_tokens
        budget = self.facts.max_prefill_tokens
        config = EngineConfig(chunked_prefill_size=size)
        if budget is not None:
            config = EngineConfig(chunked_prefill_size=size, max_prefill_tokens=budget)
        return reserved_bytes(memory_bytes, config, self.setting.num_devices)


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
        facts=memory_facts(trace, setting),
        setting=setting,
    )
