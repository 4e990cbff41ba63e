"""Families of dense decoder models: how their layers differ from Llama's, and which models are not dense."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import ModelError
from engine.fields import read_flag, read_size, shown

__all__ = ["COMPUTED", "FAMILIES", "Family", "family_of"]


@dataclass(frozen=True, slots=True)
class Family:
    """What a family's configurations leave unsaid; sizes that are None have Llama's default."""

    model_type: str
    num_kv_heads: int | None = None
    head_dim: int | None = None
    max_position_embeddings: int = 2048
    tie_word_embeddings: bool = False
    biases: tuple[str, ...] = ()  # which of "attention_bias" and "mlp_bias" its code reads
    qkv_bias: bool = False  # q, k and v always have biases
    qk_norm: bool = False  # q and k are normalised head by head
    norms_per_layer: int = 2
    has_window: bool = False  # some layers may have a sliding window
    sliding_window: int | None = None
    window_is_off: bool = False  # unless `use_sliding_window` says so

    def has_bias(self, config: Mapping[str, Any], key: str, source: str) -> bool:
        """Whether the model has the biases that `key` turns on."""
        return read_flag(config, key, source) and key in self.biases

    def window(self, config: Mapping[str, Any], source: str) -> int | None:
        """Tokens that attention looks back on in some layer, None where it sees all."""
        kinds = config.get("layer_types")
        if not self.has_window or (isinstance(kinds, list) and "sliding_attention" not in kinds):
            return None
        if self.window_is_off:
            first = read_size(config, "max_window_layers", source, 28)  # the first layer to have one
            layers = read_size(config, "num_hidden_layers", source)
            if not read_flag(config, "use_sliding_window", source) or first >= layers:
                return None
        if config.get("sliding_window", self.sliding_window) is None:
            return None
        return read_size(config, "sliding_window", source, self.sliding_window)


ATTENTION = ("attention_bias",)
BOTH = ("attention_bias", "mlp_bias")

FAMILIES = {
    "LlamaForCausalLM": Family("llama", biases=BOTH),
    "MistralForCausalLM": Family(
        "mistral", num_kv_heads=8, max_position_embeddings=131072, has_window=True, sliding_window=4096
    ),
    "Qwen2ForCausalLM": Family(
        "qwen2",
        num_kv_heads=32,
        max_position_embeddings=32768,
        qkv_bias=True,
        has_window=True,
        sliding_window=4096,
        window_is_off=True,
    ),
    "Qwen3ForCausalLM": Family(
        "qwen3",
        num_kv_heads=32,
        head_dim=128,
        biases=ATTENTION,
        max_position_embeddings=32768,
        qk_norm=True,
        has_window=True,
        sliding_window=4096,
        window_is_off=True,
    ),
    "Phi3ForCausalLM": Family("phi3", max_position_embeddings=4096, has_window=True),
    "GraniteForCausalLM": Family("granite", biases=BOTH),
    "GemmaForCausalLM": Family(
        "gemma",
        num_kv_heads=16,
        head_dim=256,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        biases=ATTENTION,
    ),
    "Gemma2ForCausalLM": Family(
        "gemma2",
        num_kv_heads=4,
        head_dim=256,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        biases=ATTENTION,
        norms_per_layer=4,
        has_window=True,
        sliding_window=4096,
    ),
    "Gemma3ForCausalLM": Family(
        "gemma3_text",
        num_kv_heads=4,
        head_dim=256,
        max_position_embeddings=131072,
        tie_word_embeddings=True,
        biases=ATTENTION,
        qk_norm=True,
        norms_per_layer=4,
        has_window=True,
        sliding_window=4096,
    ),
}
"""By the class that `architectures` names. Defaults are those of transformers' configuration classes."""

COMPUTED = ("llama", "mistral", "qwen2", "qwen3")
"""Families whose forward the engine computes; the others have shapes and costs alone."""

NOT_DENSE = {
    "a mixture of experts": ("num_experts", "num_local_experts", "n_routed_experts", "enable_moe_block"),
    "multi-head latent attention": ("kv_lora_rank",),
    "linear attention": ("linear_num_key_heads", "mamba_d_state", "ssm_state_size"),
}
"""What no dense model has, and the fields by which a configuration tells it."""


def family_of(config: Mapping[str, Any], source: str) -> Family:
    """The family of a Hugging Face configuration. ModelError if it is not dense or not known."""
    architecture = _architecture(config, source)
    holders = [config, *(part for part in [config.get("text_config")] if isinstance(part, Mapping))]
    traits = [
        trait
        for trait, keys in NOT_DENSE.items()
        if any(holder.get(key) for holder in holders for key in keys)
    ]
    if traits:
        raise ModelError(
            f"{source}: architecture {shown(architecture)} has {' and '.join(traits)}, which is not "
            "supported: give a dense model"
        )
    if architecture not in FAMILIES:
        raise ModelError(
            f"{source}: architecture {shown(architecture)} is not supported: "
            f"give a model of {', '.join(family.model_type for family in FAMILIES.values())}"
        )
    return FAMILIES[architecture]


def _architecture(config: Mapping[str, Any], source: str) -> str:
    """The class that the configuration names, or the one of its `model_type`."""
    declared = config.get("architectures")
    if isinstance(declared, list) and len(declared) == 1 and isinstance(declared[0], str):
        return declared[0]
    model_type = config.get("model_type")
    if declared is None and isinstance(model_type, str):
        classes = {family.model_type: name for name, family in FAMILIES.items()}
        return classes.get(model_type, model_type)
    raise ModelError(f"{source}: architectures names no single model: give a config of LlamaForCausalLM")
