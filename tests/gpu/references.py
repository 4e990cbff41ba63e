"""What kernels must give, in float64 and by the plainest way, on the device of what is given."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from benchmarks.gpu.batches import Paged
from engine.shapes import ModelShape

__all__ = ["TOLERANCE", "attention_of", "poisoned_memory", "relative_error"]

# Of |found - expected| / |expected| over all elements: rounding of inputs to tensor cores and of the output.
TOLERANCE = {torch.bfloat16: 6e-3, torch.float16: 1e-3, torch.float32: 2e-3}


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """New memory holds NaN: an element that nobody writes is seen."""
    enabled = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        assert bool(torch.empty(3).isnan().all())
        yield
    finally:
        torch.use_deterministic_algorithms(enabled)


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """|found - expected| / |expected|; NaN if any element is."""
    return float((found.double() - expected).norm() / expected.norm().clamp(min=1e-300))


def attention_of(paged: Paged, shape: ModelShape, layer: int) -> torch.Tensor:
    """(tokens, q_size): each new token over its sequence up to itself."""
    outs, first, first_new = [], 0, 0
    group = shape.num_heads // shape.num_kv_heads
    prefixes, extends = paged.batch.prefix_lens.tolist(), paged.batch.extend_lens.tolist()
    for prefix, extend in zip(prefixes, extends, strict=True):
        keys_values = paged.keys_values[layer][first : first + prefix + extend].double()
        key, value = (t.repeat_interleave(group, dim=1) for t in keys_values.unbind(1))
        query = paged.qkv[layer][first_new : first_new + extend, : shape.q_size]
        heads = query.view(extend, shape.num_heads, shape.head_dim).double()
        scores = torch.einsum("nhd,mhd->hnm", heads, key) * shape.head_dim**-0.5
        positions = torch.arange(prefix + extend, device=key.device)
        scores.masked_fill_(positions > positions[prefix:, None], -torch.inf)
        outs.append(torch.einsum("hnm,mhd->nhd", scores.softmax(dim=-1), value).reshape(extend, -1))
        first, first_new = first + prefix + extend, first_new + extend
    return torch.cat(outs)
