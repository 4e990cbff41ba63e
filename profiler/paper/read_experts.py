"""Mixtures of experts on paper: Mixtral, Phi, Qwen, gpt-oss and DeepSeek, by transformers' configurations.

Left-out fields take the defaults of transformers' configuration of that model.
"""

from dataclasses import replace
from typing import Any

from engine.errors import ModelError
from engine.fields import read_flag, read_size, shown
from profiler.paper.attention import GroupedAttention
from profiler.paper.feed_forward import DenseFeedForward, Experts
from profiler.paper.fields import Config, layer_kinds, num_layers, quant_method, read_count
from profiler.paper.latent import LatentAttention
from profiler.paper.model import FeedForward, Layer, PaperModel, kinds_of
from profiler.paper.read_dense import FULL, SLIDING

__all__ = [
    "base_model",
    "grouped_attention",
    "read_deepseek",
    "read_gpt_oss",
    "read_mixtral",
    "read_phimoe",
    "read_qwen_moe",
    "require_experts",
]


def base_model(config: Config, name: str, model_type: str, **values: Any) -> PaperModel:
    """A model whose outer sizes are read; `values` are the rest."""
    return PaperModel(
        name=name,
        model_type=model_type,
        hidden_size=read_size(config, "hidden_size", name),
        vocab_size=read_size(config, "vocab_size", name),
        max_position_embeddings=read_size(config, "max_position_embeddings", name),
        quant_method=quant_method(config, name),
        **{"tied": read_flag(config, "tie_word_embeddings", name), **values},
    )


def grouped_attention(config: Config, name: str, **values: Any) -> GroupedAttention:
    """Heads as the configuration gives them; `values` are the rest."""
    heads = read_size(config, "num_attention_heads", name)
    kv_heads = read_size(config, "num_key_value_heads", name, heads)
    hidden = read_size(config, "hidden_size", name)
    if heads % kv_heads:
        raise ModelError(
            f"{name}: {heads} attention heads cannot share {kv_heads} KV heads: "
            "num_attention_heads must be a multiple of num_key_value_heads"
        )
    bias = read_flag(config, "attention_bias", name)
    head_dim = read_size(config, "head_dim", name, max(1, hidden // heads))
    return GroupedAttention(heads, kv_heads, head_dim, **{"qkv_bias": bias, "o_bias": bias, **values})


def require_experts(experts: Experts, name: str) -> Experts:
    """`experts`, or ModelError where a token takes more of them than there are."""
    if experts.per_token > experts.num_experts:
        raise ModelError(
            f"{name}: {experts.per_token} experts a token of {experts.num_experts}: a token cannot take more "
            "than there are"
        )
    return experts


def read_mixtral(config: Config, name: str) -> PaperModel:
    """MixtralForCausalLM: every layer a mixture."""
    attention = replace(
        grouped_attention(config, name, window=_window(config, name)), qkv_bias=False, o_bias=False
    )
    layer = Layer(attention, _local_experts(config, name))
    return base_model(config, name, "mixtral", layers=((layer, num_layers(config, name)),))


def read_phimoe(config: Config, name: str) -> PaperModel:
    """PhiMoEForCausalLM: every layer a mixture, norms with biases."""
    attention = grouped_attention(config, name, window=_window(config, name))
    layer = Layer(attention, _local_experts(config, name), norm_bias=True)
    return base_model(
        config,
        name,
        "phimoe",
        layers=((layer, num_layers(config, name)),),
        head_bias=read_flag(config, "lm_head_bias", name),
        norm_bias=True,
    )


def read_gpt_oss(config: Config, name: str) -> PaperModel:
    """GptOssForCausalLM: windows alternate with full attention, every head has a sink, all has biases."""
    layers = num_layers(config, name)
    bias = config.get("attention_bias") is None or read_flag(config, "attention_bias", name)
    full = grouped_attention(config, name, sinks=True, qkv_bias=bias, o_bias=bias)
    attention = {FULL: full, SLIDING: replace(full, window=read_size(config, "sliding_window", name, 128))}
    alternating = [FULL if layer % 2 else SLIDING for layer in range(layers)]
    kinds = layer_kinds(config, name, (SLIDING, FULL), alternating)
    experts = replace(_local_experts(config, name), bias=True)
    return base_model(
        config, name, "gpt_oss", layers=kinds_of(Layer(attention[kind], experts) for kind in kinds)
    )


def read_qwen_moe(config: Config, name: str) -> PaperModel:
    """Qwen3MoeForCausalLM: mixtures in every `decoder_sparse_step`th layer but those of `mlp_only_layers`."""
    window = _window(config, name) if read_flag(config, "use_sliding_window", name) else None
    attention = grouped_attention(config, name, window=window, qk_norm=True)
    experts = require_experts(
        Experts(
            num_experts=read_size(config, "num_experts", name, 128),
            per_token=read_size(config, "num_experts_per_tok", name, 8),
            width=read_size(config, "moe_intermediate_size", name, 768),
        ),
        name,
    )
    dense = DenseFeedForward(read_size(config, "intermediate_size", name, 6144))
    step, only_dense = read_size(config, "decoder_sparse_step", name, 1), _indexes(config, name)
    layers = kinds_of(
        Layer(attention, dense if layer in only_dense or (layer + 1) % step else experts)
        for layer in range(num_layers(config, name))
    )
    return base_model(config, name, "qwen3_moe", layers=layers)


def read_deepseek(config: Config, name: str) -> PaperModel:
    """DeepseekV3ForCausalLM and V2: latent attention, first layers dense, shared experts beside routed."""
    queries = config.get("q_lora_rank")
    attention = LatentAttention(
        num_heads=read_size(config, "num_attention_heads", name),
        q_lora_rank=None if queries is None else read_size(config, "q_lora_rank", name),
        kv_lora_rank=read_size(config, "kv_lora_rank", name),
        qk_nope_head_dim=read_size(config, "qk_nope_head_dim", name),
        qk_rope_head_dim=read_size(config, "qk_rope_head_dim", name),
        v_head_dim=read_size(config, "v_head_dim", name),
        bias=read_flag(config, "attention_bias", name),
    )
    width = read_size(config, "moe_intermediate_size", name)
    experts = require_experts(
        Experts(
            num_experts=read_size(config, "n_routed_experts", name),
            per_token=read_size(config, "num_experts_per_tok", name),
            width=width,
            shared_width=width * read_count(config, "n_shared_experts", name),
        ),
        name,
    )
    dense = DenseFeedForward(read_size(config, "intermediate_size", name))
    first, step = (
        read_count(config, "first_k_dense_replace", name),
        read_size(config, "moe_layer_freq", name, 1),
    )

    def feed_forward(layer: int) -> FeedForward:
        return dense if layer < first or layer % step else experts

    layers = kinds_of(Layer(attention, feed_forward(layer)) for layer in range(num_layers(config, name)))
    return base_model(config, name, "deepseek_v3", layers=layers)


def _local_experts(config: Config, name: str) -> Experts:
    """Experts under the names of Mixtral, whose width is `intermediate_size`."""
    experts = Experts(
        num_experts=read_size(config, "num_local_experts", name),
        per_token=read_size(config, "num_experts_per_tok", name),
        width=read_size(config, "intermediate_size", name),
    )
    return require_experts(experts, name)


def _window(config: Config, name: str) -> int | None:
    return None if config.get("sliding_window") is None else read_size(config, "sliding_window", name)


def _indexes(config: Config, name: str) -> frozenset[int]:
    """Layers of `mlp_only_layers`."""
    layers = config.get("mlp_only_layers") or []
    if not isinstance(layers, list) or not all(isinstance(layer, int) for layer in layers):
        raise ModelError(f"{name}: mlp_only_layers is {shown(layers)}: it must be a list of layers")
    return frozenset(layers)
