"""How SGLang shares a GPU's memory when its options are left open: the chunk size and the KV pool."""

from engine.arithmetic import kv_bytes_per_token
from engine.config import CHUNKING_OFF, EngineConfig
from engine.errors import ConfigError
from engine.peaks import Peaks
from engine.shapes import ModelShape

__all__ = ["default_chunk_tokens", "pool_tokens", "reserved_bytes"]

MIB, GIB = 2**20, 2**30
CHUNKS = ((20, 2048), (60, 4096), (160, 8192))  # below so many GiB
LARGEST_CHUNK = 16384
GRAPH_ROWS = ((20, (8, 8)), (35, (48, 160)), (60, (32, 160)), (160, (256, 512)))
MOST_GRAPH_ROWS = (512, 512)  # with fewer than 4 ranks, and with more
LARGE_GIB, LARGE_RESERVE_MIB = 60, 10240


def default_chunk_tokens(memory_bytes: int) -> int:
    """`chunked_prefill_size` by the size of one device's memory."""
    return next((chunk for below, chunk in CHUNKS if memory_bytes < below * GIB), LARGEST_CHUNK)


def reserved_bytes(memory_bytes: int, config: EngineConfig, tp: int) -> int:
    """What neither weights nor KV may take: activations, decode graphs, communication.

    512 + 1.5 · max(chunk, 2048) + tp / 8 · 1024 + 2 · rows of the largest decode graph, in MiB, and at least
    10,240 above 60 GiB; the chunk of a run without chunking is `max_prefill_tokens`. SGLang adds 8 MiB for
    each prefill graph, which are not counted here.
    """
    chunk = config.chunked_prefill_size
    assert chunk is not None, "the chunk size must be resolved"
    tokens = max(config.max_prefill_tokens if chunk == CHUNKING_OFF else chunk, 2048)
    by_ranks = next((rows for below, rows in GRAPH_ROWS if memory_bytes < below * GIB), MOST_GRAPH_ROWS)
    mib = 512 + 1.5 * tokens + tp / 8 * 1024 + 2 * by_ranks[tp >= 4]
    if memory_bytes > LARGE_GIB * GIB:
        mib = max(mib, LARGE_RESERVE_MIB)
    return round(mib * MIB)


def pool_tokens(shape: ModelShape, peaks: Peaks, config: EngineConfig, element_bytes: int) -> int:
    """Tokens, whole pages, that fit beside the weights; `shape` is one rank's part of the model.

    Raises ConfigError when not even one page does.
    """
    weights = shape.num_params * element_bytes
    reserved = reserved_bytes(peaks.memory_bytes, config, peaks.num_devices)
    free = peaks.memory_bytes - reserved - weights
    tokens = free // kv_bytes_per_token(shape, element_bytes) // config.page_size * config.page_size
    if tokens < config.page_size:
        raise ConfigError(
            f"--gpu {peaks.name}: of {peaks.memory_bytes / GIB:.1f} GiB, {weights / GIB:.1f} GiB of weights "
            f"and {reserved / GIB:.1f} GiB kept free leave no KV page: give a larger GPU or a larger --tp"
        )
    return tokens
