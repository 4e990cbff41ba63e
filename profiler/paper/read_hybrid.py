"""Models whose layers differ: linear attention beside full (Qwen3.5), two sizes of heads (Gemma 4)."""

from dataclasses import replace

from engine.errors import ModelError
from engine.fields import read_flag, read_size
from profiler.paper.feed_forward import DenseFeedForward, Experts
from profiler.paper.fields import Config, layer_kinds, num_layers, read_count
from profiler.paper.model import Attention, FeedForward, Layer, PaperModel, kinds_of
from profiler.paper.read_dense import FULL, SLIDING
from profiler.paper.read_experts import base_model, grouped_attention, require_experts
from profiler.paper.recurrent import LinearAttention

__all__ = ["read_gemma4", "read_qwen_hybrid"]

LINEAR = "linear_attention"
GEMMA4_DEFAULT_INPUTS = 256


def read_qwen_hybrid(config: Config, name: str) -> PaperModel:
    """Qwen3_5ForConditionalGeneration and its mixtures: every fourth layer has full attention with a gate."""
    layers = num_layers(config, name)
    linear = LinearAttention(
        num_key_heads=read_size(config, "linear_num_key_heads", name, 16),
        num_value_heads=read_size(config, "linear_num_value_heads", name, 32),
        key_head_dim=read_size(config, "linear_key_head_dim", name, 128),
        value_head_dim=read_size(config, "linear_value_head_dim", name, 128),
        conv_kernel=read_size(config, "linear_conv_kernel_dim", name, 4),
    )
    attention: dict[str, Attention] = {
        LINEAR: linear,
        FULL: grouped_attention(config, name, qk_norm=True, gated=True),
    }
    every = read_size(config, "full_attention_interval", name, 4)
    default = [LINEAR if (layer + 1) % every else FULL for layer in range(layers)]
    kinds = layer_kinds(config, name, (LINEAR, FULL), default)
    feed_forward = _qwen_feed_forward(config, name)
    model_type = "qwen3_5" if isinstance(feed_forward, DenseFeedForward) else "qwen3_5_moe"
    return base_model(
        config, name, model_type, layers=kinds_of(Layer(attention[kind], feed_forward) for kind in kinds)
    )


def _qwen_feed_forward(config: Config, name: str) -> FeedForward:
    if not read_count(config, "num_experts", name):
        return DenseFeedForward(read_size(config, "intermediate_size", name))
    experts = Experts(
        num_experts=read_size(config, "num_experts", name),
        per_token=read_size(config, "num_experts_per_tok", name),
        width=read_size(config, "moe_intermediate_size", name),
        shared_width=read_size(config, "shared_expert_intermediate_size", name),
        shared_gate=True,
    )
    return require_experts(experts, name)


def read_gemma4(config: Config, name: str) -> PaperModel:
    """Gemma4ForConditionalGeneration: windows and, at heads of another size, full attention.

    A mixture stands beside a dense part that every token takes. ModelError for the small models' inputs of
    each layer and keys shared by layers.
    """
    layers = num_layers(config, name)
    unknown = {
        "hidden_size_per_layer_input": read_count(
            config, "hidden_size_per_layer_input", name, GEMMA4_DEFAULT_INPUTS
        ),
        "num_kv_shared_layers": read_count(config, "num_kv_shared_layers", name),
        "use_double_wide_mlp": read_flag(config, "use_double_wide_mlp", name),
    }
    for key, value in unknown.items():
        if value:
            raise ModelError(f"{name}: {key} {value} is not known on paper: give a model without it")
    hidden, width = read_size(config, "hidden_size", name), read_size(config, "intermediate_size", name)
    sliding = grouped_attention(
        config, name, window=read_size(config, "sliding_window", name, 512), qk_norm=True
    )
    same = read_flag(config, "attention_k_eq_v", name)
    kv_heads = read_size(config, "num_global_key_value_heads", name, sliding.num_kv_heads)
    attention = {
        SLIDING: sliding,
        FULL: replace(
            sliding,
            window=None,
            head_dim=read_size(config, "global_head_dim", name, 512),
            num_kv_heads=kv_heads if same else sliding.num_kv_heads,
            value_is_key=same,
        ),
    }
    default = [SLIDING if (layer + 1) % 6 else FULL for layer in range(layers)]
    kinds = [*layer_kinds(config, name, (SLIDING, FULL), default)[:-1], FULL]
    feed_forward: FeedForward = DenseFeedForward(width)
    norms = 4
    if read_flag(config, "enable_moe_block", name):
        feed_forward, norms = _gemma_experts(config, name, hidden, width), 7
    tied = config.get("tie_word_embeddings") is None or read_flag(config, "tie_word_embeddings", name)
    kinds_of_layers = kinds_of(Layer(attention[kind], feed_forward, norms) for kind in kinds)
    return base_model(config, name, "gemma4", layers=kinds_of_layers, tied=tied)


def _gemma_experts(config: Config, name: str, hidden: int, width: int) -> Experts:
    num_experts = read_size(config, "num_experts", name)
    experts = Experts(
        num_experts=num_experts,
        per_token=read_size(config, "top_k_experts", name),
        width=read_size(config, "moe_intermediate_size", name),
        shared_width=width,
        extra_params=hidden + num_experts,  # scales of the router's input and of each expert
    )
    return require_experts(experts, name)
