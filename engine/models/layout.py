"""The tensors of a Llama model by name and shape, and what their values must be."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.shapes import ModelShape

if TYPE_CHECKING:
    import torch

__all__ = ["llama_tensors", "require_finite", "require_llama"]


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
    for name, outputs, inputs, bias in (
        ("self_attn.q_proj", shape.q_size, hidden, shape.attention_bias),
        ("self_attn.k_proj", shape.kv_size, hidden, shape.attention_bias),
        ("self_attn.v_proj", shape.kv_size, hidden, shape.attention_bias),
        ("self_attn.o_proj", hidden, shape.q_size, shape.attention_bias),
        ("mlp.gate_proj", ffn, hidden, shape.mlp_bias),
        ("mlp.up_proj", ffn, hidden, shape.mlp_bias),
        ("mlp.down_proj", hidden, ffn, shape.mlp_bias),
    ):
        yield f"{prefix}{name}.weight", (outputs, inputs)
        if bias:
            yield f"{prefix}{name}.bias", (outputs,)


def require_llama(shape: ModelShape, source: Path) -> None:
    """Raise ModelError, naming `source`, for a family whose layers `LlamaModel` does not compute."""
    if shape.architecture != "llama":
        raise ModelError(
            f"{source}: a model of {shape.architecture} can be simulated but not computed: "
            "give a LlamaForCausalLM, or --executor simulated"
        )


def require_finite(tensor: "torch.Tensor", name: str, source: Path) -> None:
    """Raise ModelError if weights do not add up to a finite number, as damaged bytes often make them."""
    if not bool(tensor.sum().isfinite()):
        raise ModelError(
            f"{source}: tensor {name} holds values that are no finite numbers: fetch the file again"
        )
