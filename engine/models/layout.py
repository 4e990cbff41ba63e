"""The tensors of a model by name and shape, and which models can be computed."""

from collections.abc import Iterator
from pathlib import Path

from engine.errors import ConfigError, ModelError
from engine.model_families import COMPUTED
from engine.shapes import ModelShape

__all__ = ["llama_tensors", "require_computed", "require_seen_context"]


def llama_tensors(shape: ModelShape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor's Hugging Face name and shape, a matrix as (outputs, inputs).

    A tied model has no "lm_head.weight".
    """
    yield "model.embed_tokens.weight", (shape.vocab_size, shape.hidden_size)
    for layer in range(shape.num_layers):
        yield from _layer_tensors(shape, f"model.layers.{layer}.")
    yield "model.norm.weight", (shape.hidden_size,)
    if not shape.tie_word_embeddings:
        yield "lm_head.weight", (shape.vocab_size, shape.hidden_size)


def _layer_tensors(shape: ModelShape, prefix: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    hidden, ffn = shape.hidden_size, shape.intermediate_size
    yield f"{prefix}input_layernorm.weight", (hidden,)
    yield f"{prefix}post_attention_layernorm.weight", (hidden,)
    if shape.qk_norm:
        yield f"{prefix}self_attn.q_norm.weight", (shape.head_dim,)
        yield f"{prefix}self_attn.k_norm.weight", (shape.head_dim,)
    qkv_bias = shape.attention_bias or shape.qkv_bias
    for name, outputs, inputs, bias in (
        ("self_attn.q_proj", shape.q_size, hidden, qkv_bias),
        ("self_attn.k_proj", shape.kv_size, hidden, qkv_bias),
        ("self_attn.v_proj", shape.kv_size, hidden, qkv_bias),
        ("self_attn.o_proj", hidden, shape.q_size, shape.attention_bias),
        ("mlp.gate_proj", ffn, hidden, shape.mlp_bias),
        ("mlp.up_proj", ffn, hidden, shape.mlp_bias),
        ("mlp.down_proj", hidden, ffn, shape.mlp_bias),
    ):
        yield f"{prefix}{name}.weight", (outputs, inputs)
        if bias:
            yield f"{prefix}{name}.bias", (outputs,)


def require_computed(shape: ModelShape, source: Path) -> None:
    """Raise ModelError, naming `source`, for a family whose layers `LlamaModel` does not compute."""
    if shape.architecture not in COMPUTED:
        raise ModelError(
            f"{source}: a model of {shape.architecture} can be simulated but not computed: "
            f"give one of {', '.join(COMPUTED)}, or --executor simulated"
        )


def require_seen_context(shape: ModelShape, context_length: int, what: str = "computed") -> None:
    """Raise ConfigError if a sequence of `context_length` tokens outgrows the model's sliding window.

    `what` says what a window is not here.
    """
    window = shape.sliding_window
    if window is not None and context_length > window:
        raise ConfigError(
            f"{shape.name}: attention looks back {window} tokens only, which is not {what}, "
            f"and the context is {context_length}: give --context-length {window}"
        )
