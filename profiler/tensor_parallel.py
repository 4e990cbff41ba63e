"""What one of several devices holds of a model whose layers are split among them."""

from dataclasses import replace

from engine.errors import ConfigError
from engine.shapes import ModelShape

__all__ = ["shard"]


def shard(shape: ModelShape, tp: int) -> ModelShape:
    """One rank's part: heads, feed-forward columns and vocabulary divided by `tp`; norms are whole.

    More ranks than KV heads repeat them; the vocabulary is padded to a multiple. Raises ConfigError when
    heads or columns cannot be divided.
    """
    kv_heads = shape.num_kv_heads
    divides = shape.num_heads % tp == 0 and shape.intermediate_size % tp == 0
    if not divides or (kv_heads % tp and tp % kv_heads):
        raise ConfigError(
            f"--tp {tp}: {shape.num_heads} heads, {kv_heads} KV heads and {shape.intermediate_size} "
            f"feed-forward columns of {shape.name} cannot be divided by it: give another number"
        )
    return replace(
        shape,
        num_heads=shape.num_heads // tp,
        num_kv_heads=max(1, kv_heads // tp),
        intermediate_size=shape.intermediate_size // tp,
        vocab_size=-(-shape.vocab_size // tp),
    )
