"""Dense models on paper: the families of `engine.model_families`, each layer with its window."""

from collections.abc import Sequence

from engine.fields import read_size
from engine.shapes import ModelShape
from profiler.paper.attention import GroupedAttention
from profiler.paper.feed_forward import DenseFeedForward
from profiler.paper.fields import Config, layer_kinds, num_layers, quant_method
from profiler.paper.model import Layer, PaperModel, kinds_of

__all__ = ["FULL", "SLIDING", "read_dense"]

FULL, SLIDING = "full_attention", "sliding_attention"
KINDS = (SLIDING, FULL)


def read_dense(config: Config, name: str) -> PaperModel:
    """A dense model. ModelError as `ModelShape.from_hf_config` raises it."""
    layers = num_layers(config, name)
    shape = ModelShape.from_hf_config(config, name)
    kinds: Sequence[str] = [FULL] * layers
    if shape.sliding_window is not None:
        kinds = layer_kinds(config, name, KINDS, _default_kinds(shape, config))
    return PaperModel(
        name=name,
        model_type=shape.architecture,
        hidden_size=shape.hidden_size,
        vocab_size=shape.vocab_size,
        max_position_embeddings=shape.max_position_embeddings,
        layers=kinds_of(_layer(shape, shape.sliding_window if kind == SLIDING else None) for kind in kinds),
        tied=shape.tie_word_embeddings,
        quant_method=quant_method(config, name),
    )


def _layer(shape: ModelShape, window: int | None) -> Layer:
    attention = GroupedAttention(
        num_heads=shape.num_heads,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        window=window,
        qkv_bias=shape.attention_bias or shape.qkv_bias,
        o_bias=shape.attention_bias,
        qk_norm=shape.qk_norm,
    )
    feed_forward = DenseFeedForward(shape.intermediate_size, bias=shape.mlp_bias)
    return Layer(attention, feed_forward, shape.norms_per_layer)


def _default_kinds(shape: ModelShape, config: Config) -> Sequence[str]:
    """Which layers have the window where the configuration does not list them, as transformers has it."""
    layers = range(shape.num_layers)
    if shape.architecture == "gemma2":
        return [FULL if layer % 2 else SLIDING for layer in layers]
    if shape.architecture == "gemma3_text":
        every = read_size(config, "sliding_window_pattern", shape.name, 6)
        return [SLIDING if (layer + 1) % every else FULL for layer in layers]
    if shape.architecture in ("qwen2", "qwen3"):
        first = read_size(config, "max_window_layers", shape.name, 28)
        return [SLIDING if layer >= first else FULL for layer in layers]
    return [SLIDING] * shape.num_layers
