"""`ModelShape`: the sizes of a dense Llama model, read from a configuration and checked once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import ModelError
from engine.fields import read_flag, read_positive, read_size, shown

__all__ = ["ModelShape"]

ARCHITECTURES = {"LlamaForCausalLM": "llama"}
PLAIN_LAYER = {"hidden_act": "silu", "rope_interleaved": False, "partial_rotary_factor": 1.0}


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What arithmetic and the forward need to know of a model; sizes in elements.

    The projections have `num_heads * head_dim` (q, o) and `num_kv_heads * head_dim` (k, v) rows.
    """

    architecture: str  # "llama"
    name: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    rope_theta: float
    rms_norm_eps: float
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    rope_scaling: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        if self.num_heads % self.num_kv_heads:
            raise ModelError(
                f"{self.name}: {self.num_heads} attention heads cannot share {self.num_kv_heads} KV heads: "
                "num_attention_heads must be a multiple of num_key_value_heads"
            )
        if self.head_dim % 2:
            raise ModelError(
                f"{self.name}: head_dim {self.head_dim} is odd: rotary embedding needs an even one"
            )

    @property
    def q_size(self) -> int:
        """Output features of the q projection."""
        return self.num_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Output features of the k projection, and of the v projection."""
        return self.num_kv_heads * self.head_dim

    @property
    def layer_gemm_params(self) -> int:
        """Elements of one layer's matrices: q, k, v, o, gate, up and down."""
        attention = self.hidden_size * (2 * self.q_size + 2 * self.kv_size)
        return attention + 3 * self.hidden_size * self.intermediate_size

    @property
    def layer_params(self) -> int:
        """Elements of one layer: its matrices, biases and two norms."""
        attention_bias = self.q_size + 2 * self.kv_size + self.hidden_size if self.attention_bias else 0
        mlp_bias = 2 * self.intermediate_size + self.hidden_size if self.mlp_bias else 0
        return self.layer_gemm_params + attention_bias + mlp_bias + 2 * self.hidden_size

    @property
    def head_params(self) -> int:
        """Elements of the output head, which is also the size of the embedding."""
        return self.vocab_size * self.hidden_size

    @property
    def num_params(self) -> int:
        """Elements of the whole model; a tied head counts once."""
        matrices = 1 if self.tie_word_embeddings else 2
        return self.num_layers * self.layer_params + matrices * self.head_params + self.hidden_size

    @classmethod
    def from_hf_config(cls, config: Mapping[str, Any], name: str) -> "ModelShape":
        """The shape that a Hugging Face `config.json` describes; `name` is what errors call it.

        Left-out fields take the defaults of transformers' LlamaConfig. Raises ModelError for another
        architecture and for a field that is missing or no sensible number.
        """
        architecture = _architecture(config, name)
        _refuse_variants(config, name)
        hidden_size = read_size(config, "hidden_size", name)
        num_heads = read_size(config, "num_attention_heads", name)
        if config.get("head_dim") is None and hidden_size % num_heads:
            raise ModelError(
                f"{name}: hidden_size {hidden_size} is no multiple of num_attention_heads {num_heads}: "
                "the config must give head_dim"
            )
        rope = config.get("rope_parameters")
        rope_theta_holder = rope if isinstance(rope, Mapping) and "rope_theta" in rope else config
        return cls(
            architecture=architecture,
            name=name,
            num_layers=read_size(config, "num_hidden_layers", name),
            hidden_size=hidden_size,
            num_heads=num_heads,
            num_kv_heads=read_size(config, "num_key_value_heads", name, num_heads),
            head_dim=read_size(config, "head_dim", name, hidden_size // num_heads),
            intermediate_size=read_size(config, "intermediate_size", name),
            vocab_size=read_size(config, "vocab_size", name),
            max_position_embeddings=read_size(config, "max_position_embeddings", name, 2048),
            rope_theta=read_positive(rope_theta_holder, "rope_theta", name, 10_000.0),
            rms_norm_eps=read_positive(config, "rms_norm_eps", name, 1e-6),
            tie_word_embeddings=read_flag(config, "tie_word_embeddings", name),
            attention_bias=read_flag(config, "attention_bias", name),
            mlp_bias=read_flag(config, "mlp_bias", name),
            rope_scaling=_rope_scaling(config, name),
        )


def _architecture(config: Mapping[str, Any], name: str) -> str:
    declared = config.get("architectures")
    if isinstance(declared, list) and len(declared) == 1 and isinstance(declared[0], str):
        architecture = declared[0]
    elif declared is None and isinstance(config.get("model_type"), str):
        architecture = "LlamaForCausalLM" if config["model_type"] == "llama" else config["model_type"]
    else:
        raise ModelError(f"{name}: architectures names no single model: give a config of LlamaForCausalLM")
    if architecture not in ARCHITECTURES:
        raise ModelError(
            f"{name}: architecture {shown(architecture)} is not supported: "
            f"give a model of {', '.join(ARCHITECTURES)}"
        )
    return ARCHITECTURES[architecture]


def _refuse_variants(config: Mapping[str, Any], name: str) -> None:
    """Refuse what changes a Llama layer's arithmetic without changing its name."""
    rope = config.get("rope_parameters")
    for holder in (config, rope if isinstance(rope, Mapping) else {}):
        for key, plain in PLAIN_LAYER.items():
            value = holder.get(key)
            if value is not None and value != plain:
                raise ModelError(f"{name}: {key} {shown(value)} is not supported: give a model with {plain}")


def _rope_scaling(config: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    for key in ("rope_scaling", "rope_parameters"):
        value = config.get(key)
        if value is None:
            continue
        if not isinstance(value, Mapping):
            raise ModelError(f"{name}: {key} is {shown(value)}: it must be an object or null")
        if value.get("rope_type", value.get("type", "default")) != "default":
            return dict(value)
    return None
