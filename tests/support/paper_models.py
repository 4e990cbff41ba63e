"""Small decoders of every kind that can be reckoned on paper, as configurations of transformers."""

from typing import Any

from profiler.paper.model import PaperModel
from profiler.paper.read import model_from

__all__ = ["TINY", "tiny"]

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 211,
    "max_position_embeddings": 256,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
LATENT: dict[str, Any] = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 12,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
}
LINEAR: dict[str, Any] = {
    "num_hidden_layers": 4,
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
EXPERTS: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}

TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "MixtralForCausalLM": ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "PhimoeForCausalLM": (
        "phimoe",
        {"num_local_experts": 4, "num_experts_per_tok": 2, "attention_bias": True, "lm_head_bias": True},
    ),
    "GptOssForCausalLM": (
        "gpt_oss",
        {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 16, "sliding_window": 128},
    ),
    "Qwen3MoeForCausalLM": ("qwen3_moe", {**EXPERTS, "head_dim": 32, "decoder_sparse_step": 2}),
    "DeepseekV2ForCausalLM": ("deepseek_v2", {**LATENT, "q_lora_rank": None, "topk_method": "greedy"}),
    "DeepseekV3ForCausalLM": ("deepseek_v3", {**LATENT, "q_lora_rank": 24, "n_group": 2, "topk_group": 1}),
    "Qwen3_5ForCausalLM": ("qwen3_5_text", LINEAR),
    "Qwen3_5MoeForCausalLM": (
        "qwen3_5_moe_text",
        {**LINEAR, **EXPERTS, "shared_expert_intermediate_size": 48},
    ),
    "Gemma4ForCausalLM": (
        "gemma4_text",
        {
            "num_hidden_layers": 6,
            "head_dim": 16,
            "global_head_dim": 32,
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": True,
            "enable_moe_block": True,
            "num_experts": 4,
            "top_k_experts": 2,
            "moe_intermediate_size": 32,
            "hidden_size_per_layer_input": 0,
            "sliding_window": 128,
        },
    ),
}
"""By the class of `architectures`: transformers' model type, and the fields beside SIZES."""


def tiny(architecture: str, **changes: Any) -> PaperModel:
    """One of them, read."""
    fields = TINY[architecture][1] if architecture in TINY else {}
    return model_from({"architectures": [architecture], **SIZES, **fields, **changes}, architecture)
