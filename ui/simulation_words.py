"""What a simulated run is made of, in lines for the person who starts it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.config import EngineConfig
from profiler.cost_table import EFFICIENCIES, OVERHEADS
from profiler.gpu_memory import reserved_bytes
from ui.si_words import bandwidth, dtype_word, flop_rate
from ui.words import UNKNOWN, binary_bytes, count, plural

if TYPE_CHECKING:
    from ui.simulating import SimulatedDevice

__all__ = ["assumption_lines", "stop_token_lines"]


def assumption_lines(device: "SimulatedDevice", config: EngineConfig, asked: EngineConfig) -> Iterator[str]:
    """Choices made, peaks, KV pool, chunk size, efficiencies, overheads.

    `config` is what `asked` became when it was resolved.
    """
    yield from device.notes
    peaks = device.peaks
    link = f", link {bandwidth(peaks.link_bytes_per_s)}" if peaks.num_devices > 1 else ""
    yield (
        f"Simulated {device.label}: {dtype_word(peaks.dtype)} {flop_rate(peaks.flops_per_s)}, memory "
        f"{binary_bytes(peaks.memory_bytes)} at {bandwidth(peaks.bytes_per_s)}{link}"
    )
    if asked.max_total_tokens is None:
        yield f"KV pool: {count(config.max_total_tokens)} tokens, {_pool_rule(device, config)}"
    if asked.chunked_prefill_size is None:
        yield (
            f"Chunk size: {count(config.chunked_prefill_size)} tokens, SGLang's for this memory "
            "(--chunked-prefill-size)"
        )
    yield f"Assumed shares of the peak FLOP/s and bytes/s: {'; '.join(_shares(device))}"
    if device.profile is not None:
        group, shares = device.profile.group, device.profile.shares
        sizes = f"{plural(len(shares), 'size')} with {min(shares):.2g} to {max(shares):.2g} of its peak"
        yield (
            f"GEMMs of the layers by {device.profile.path} instead: {group.gpu}, {group.model}, "
            f"tp {group.tp}, {sizes}"
        )
    yield (
        f"Overheads: {OVERHEADS.layer_ns / 1e3:g} us a layer and {OVERHEADS.forward_ns / 1e3:g} us a forward "
        f"on the GPU, {device.host_overhead_ns / 1e3:g} us a forward on the host"
    )


def stop_token_lines(requests: int) -> Iterator[str]:
    """That stop tokens of so many requests end nothing, if there are any."""
    if requests:
        yield f"stop_token_ids of {plural(requests, 'request')} ignored: no token ends a simulated output"


def _pool_rule(device: "SimulatedDevice", config: EngineConfig) -> str:
    if config.max_total_tokens != device.fitting_tokens(config):
        return "the most that is simulated unless --max-total-tokens asks for more"
    weights = binary_bytes(device.shard.num_params * device.element_bytes)
    reserved = reserved_bytes(device.peaks.memory_bytes, config, device.peaks.num_devices)
    return f"what {weights} of weights and {binary_bytes(reserved)} kept free leave"


def _shares(device: "SimulatedDevice") -> Iterator[str]:
    for kind, efficiency in EFFICIENCIES.items():
        if kind != "COLLECTIVE" or device.peaks.num_devices > 1:
            compute = UNKNOWN if efficiency.compute is None else f"{efficiency.compute:g}"
            yield f"{kind} {compute} and {efficiency.memory:g}"
