"""torch's own attention over the same sequences, dense and in order: what paged kernels are set beside."""

import warnings
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

from benchmarks.gpu.batches import Paged
from engine.shapes import ModelShape

__all__ = ["BACKENDS", "NotThere", "decode_calls", "extend_calls"]

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}

Call = Callable[[], torch.Tensor]


class NotThere(Exception):
    """Says why a backend cannot be measured here."""


def extend_calls(paged: Paged, shape: ModelShape, backend: str) -> list[Call]:
    """A call for each layer, giving (sequences, heads, chunk, head_dim); all rows are alike."""
    seq_len, chunk = int(paged.batch.seq_lens[0]), int(paged.batch.extend_lens[0])
    if backend == "cudnn" and chunk < seq_len:
        raise NotThere("takes a causal mask aligned to the lower right only as a tensor")
    group = shape.num_heads // shape.num_kv_heads
    bias = causal_lower_right(chunk, seq_len) if chunk < seq_len else None

    def call(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        if bias is not None:
            return F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)

    calls = []
    for query, key, value in _dense(paged, shape):
        # Every query head with a key head of its own: it reads more, but computing is what takes the time.
        heads = (query.contiguous(), *(t.repeat_interleave(group, dim=1) for t in (key, value)))
        calls.append(_with(backend, call, heads))
    return _tried(calls, backend)


def decode_calls(paged: Paged, shape: ModelShape, backend: str) -> list[Call]:
    """A call for each layer, giving (rows, kv heads, heads of a group, head_dim); all rows are alike.

    The query heads of a group stand as queries at one key head, so that nothing is read twice.
    """
    calls = []
    for query, key, value in _dense(paged, shape):
        grouped = query.reshape(len(query), shape.num_kv_heads, -1, shape.head_dim).contiguous()
        calls.append(_with(backend, F.scaled_dot_product_attention, (grouped, key, value)))
    return _tried(calls, backend)


def _dense(paged: Paged, shape: ModelShape) -> Iterator[tuple[torch.Tensor, ...]]:
    """Of each layer, queries, keys and values, each (rows, heads, tokens, head_dim)."""
    rows = paged.batch.num_rows
    for qkv, keys_values in zip(paged.qkv, paged.keys_values, strict=True):
        query = qkv[:, : shape.q_size].reshape(rows, -1, shape.num_heads, shape.head_dim).transpose(1, 2)
        key, value = keys_values.view(rows, -1, *keys_values.shape[1:]).permute(2, 0, 3, 1, 4)
        yield query, key.contiguous(), value.contiguous()


def _with(backend: str, call: Callable[..., torch.Tensor], heads: tuple[torch.Tensor, ...]) -> Call:
    def limited() -> torch.Tensor:
        with sdpa_kernel(BACKENDS[backend]):
            return call(*heads)

    return limited


def _tried(calls: list[Call], backend: str) -> list[Call]:
    """The calls, if torch has this backend for them; it warns of each reason why it does not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            calls[0]()
    except RuntimeError as error:
        raise NotThere(f"{backend}: {str(error).splitlines()[0]}") from None
    return calls
