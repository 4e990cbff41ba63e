"""How llama.cpp names a Llama model's sizes and tensors."""

from collections.abc import Mapping
from typing import Any

from engine.errors import ModelError
from engine.fields import read_positive, read_size, shown
from engine.models.gguf_header import GGUFHeader
from engine.shapes import ModelShape

__all__ = ["ROPE_FACTORS", "gguf_name", "gguf_shape"]

MODEL_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
ROPE_FACTORS = "rope_freqs.weight"  # what each rotary frequency is divided by, as Llama 3.1 has it


def gguf_name(name: str) -> str:
    """llama.cpp's name of the tensor that Hugging Face calls `name`."""
    module, kind = name.rsplit(".", 1)
    if module in MODEL_NAMES:
        return f"{MODEL_NAMES[module]}.{kind}"
    _, _, layer, part = module.split(".", 3)
    return f"blk.{layer}.{LAYER_NAMES[part]}.{kind}"


def gguf_shape(header: GGUFHeader, source: str) -> ModelShape:
    """The shape that a header describes; `source` is what errors call it.

    Raises ModelError for another architecture and for a value that is missing or no sensible number.
    """
    metadata = header.metadata
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise ModelError(
            f"{source}: architecture {shown(architecture)} is not supported: give a GGUF file of llama"
        )
    _refuse_variants(metadata, source)
    hidden_size = read_size(metadata, "llama.embedding_length", source)
    num_heads = read_size(metadata, "llama.attention.head_count", source)
    head_dim = read_size(metadata, "llama.attention.key_length", source, max(1, hidden_size // num_heads))
    if read_size(metadata, "llama.rope.dimension_count", source, head_dim) != head_dim:
        raise ModelError(
            f"{source}: llama.rope.dimension_count is not the head size {head_dim}: not supported"
        )
    if read_size(metadata, "llama.attention.value_length", source, head_dim) != head_dim:
        raise ModelError(
            f"{source}: llama.attention.value_length is not the head size {head_dim}: not supported"
        )
    embedding = header.tensors.get("token_embd.weight")
    return ModelShape(
        architecture="llama",
        name=source,
        num_layers=read_size(metadata, "llama.block_count", source),
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=read_size(metadata, "llama.attention.head_count_kv", source, num_heads),
        head_dim=head_dim,
        intermediate_size=read_size(metadata, "llama.feed_forward_length", source),
        vocab_size=read_size(metadata, "llama.vocab_size", source, embedding.shape[0] if embedding else None),
        max_position_embeddings=read_size(metadata, "llama.context_length", source, 2048),
        rope_theta=read_positive(metadata, "llama.rope.freq_base", source, 10_000.0),
        rms_norm_eps=read_positive(metadata, "llama.attention.layer_norm_rms_epsilon", source, 1e-5),
        tie_word_embeddings="output.weight" not in header.tensors,
        attention_bias="blk.0.attn_q.bias" in header.tensors,
        mlp_bias="blk.0.ffn_up.bias" in header.tensors,
        rope_scaling=_rope_scaling(header),
    )


def _refuse_variants(metadata: Mapping[str, Any], source: str) -> None:
    if metadata.get("split.count", 1) not in (0, 1):
        raise ModelError(
            f"{source}: is one part of a split model: join the parts with llama-gguf-split --merge"
        )
    if metadata.get("llama.expert_count", 0):
        raise ModelError(f"{source}: a mixture of experts is not supported: give a dense llama model")


def _rope_scaling(header: GGUFHeader) -> dict[str, Any] | None:
    """The scaling by Hugging Face's names; factors in a tensor are a kind that has none there."""
    kind = header.metadata.get("llama.rope.scaling.type", "none")
    if ROPE_FACTORS in header.tensors:
        return {"rope_type": ROPE_FACTORS if kind == "none" else f"{kind} with {ROPE_FACTORS}"}
    if kind == "none":
        return None
    return {"rope_type": str(kind), "factor": header.metadata.get("llama.rope.scaling.factor")}
