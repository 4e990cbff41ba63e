"""`ModelShape`: the sizes of a dense decoder model, read from a configuration and checked once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import ModelError
from engine.fields import read_flag, read_positive, read_size, shown
from engine.model_families import COMPUTED, family_of

__all__ = ["ModelShape"]

PLAIN_LAYER = {"hidden_act": "silu", "rope_interleaved": False, "partial_rotary_factor": 1.0}


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What arithmetic and the forward need to know of a model; sizes in elements.

    The projections have `num_heads * head_dim` (q, o) and `num_kv_heads * head_dim` (k, v) rows.
    """

    architecture: str  # its family, as transformers' model_type: "llama", "qwen3"
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
    qkv_bias: bool = False  # q, k and v have biases, o has none
    qk_norm: bool = False  # q and k are normalised head by head
    norms_per_layer: int = 2
    sliding_window: int | None = None  # tokens that some layer's attention looks back on; None is all

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
        """Elements of one layer: its matrices, biases and norms."""
        qkv_bias = self.q_size + 2 * self.kv_size if self.attention_bias or self.qkv_bias else 0
        o_bias = self.hidden_size if self.attention_bias else 0
        mlp_bias = 2 * self.intermediate_size + self.hidden_size if self.mlp_bias else 0
        norms = self.norms_per_layer * self.hidden_size + (2 * self.head_dim if self.qk_norm else 0)
        return self.layer_gemm_params + qkv_bias + o_bias + mlp_bias + norms

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

        Left-out fields take the defaults of transformers' configuration of that model. Raises ModelError for
        a model that is not dense or not known, and for a field that is missing or no sensible number.
        """
        family = family_of(config, name)
        if family.model_type in COMPUTED:
            _refuse_variants(config, name)
        hidden_size = read_size(config, "hidden_size", name)
        num_heads = read_size(config, "num_attention_heads", name)
        head_dim = family.head_dim or hidden_size // num_heads
        if config.get("head_dim") is None and family.head_dim is None and hidden_size % num_heads:
            raise ModelError(
                f"{name}: hidden_size {hidden_size} is no multiple of num_attention_heads {num_heads}: "
                "the config must give head_dim"
            )
        rope = config.get("rope_parameters")
        rope_theta_holder = rope if isinstance(rope, Mapping) and "rope_theta" in rope else config
        return cls(
            architecture=family.model_type,
            name=name,
            num_layers=read_size(config, "num_hidden_layers", name),
            hidden_size=hidden_size,
            num_heads=num_heads,
            num_kv_heads=read_size(config, "num_key_value_heads", name, family.num_kv_heads or num_heads),
            head_dim=read_size(config, "head_dim", name, head_dim),
            intermediate_size=read_size(config, "intermediate_size", name),
            vocab_size=read_size(config, "vocab_size", name),
            max_position_embeddings=read_size(
                config, "max_position_embeddings", name, family.max_position_embeddings
            ),
            rope_theta=read_positive(rope_theta_holder, "rope_theta", name, 10_000.0),
            rms_norm_eps=read_positive(config, "rms_norm_eps", name, 1e-6),
            tie_word_embeddings=_tied(config, name, family.tie_word_embeddings),
            attention_bias=family.has_bias(config, "attention_bias", name),
            mlp_bias=family.has_bias(config, "mlp_bias", name),
            rope_scaling=_rope_scaling(config, name),
            qkv_bias=family.qkv_bias,
            qk_norm=family.qk_norm,
            norms_per_layer=family.norms_per_layer,
            sliding_window=family.window(config, name),
        )


def _tied(config: Mapping[str, Any], name: str, default: bool) -> bool:
    """Whether the head is the embedding."""
    return (
        default
        if config.get("tie_word_embeddings") is None
        else read_flag(config, "tie_word_embeddings", name)
    )


def _refuse_variants(config: Mapping[str, Any], name: str) -> None:
    """Refuse what changes the arithmetic of a computed layer without changing its name."""
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
