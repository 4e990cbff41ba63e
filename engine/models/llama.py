"""The dense Llama family: one flat batch of tokens through all layers."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.attention.protocol import AttentionPlan
from engine.marks import mark
from engine.models.linear import Linear, can_pack, linear
from engine.models.rotary import pair_rows
from engine.operators import Operator
from engine.ops.choose import default_ops
from engine.ops.protocol import Ops
from engine.shapes import ModelShape

__all__ = ["LlamaModel", "attend"]


@dataclass(frozen=True, slots=True)
class _Layer:
    input_norm: torch.Tensor
    qkv: Linear
    head_norms: torch.Tensor | None  # (heads + kv heads, head_dim) of Qwen3
    o: Linear
    post_norm: torch.Tensor
    gate_up: Linear
    down: Linear


class LlamaModel:
    """Llama, Mistral, Qwen2 and Qwen3 as transformers defines them; q, k, v are one matrix, gate, up another.

    Attention sees every token before: models with a sliding window are for contexts that it covers.
    """

    def __init__(
        self,
        shape: ModelShape,
        tensors: dict[str, torch.Tensor],
        *,
        pack: bool | None = None,
        ops: Ops | None = None,
    ) -> None:
        """Take the weights out of `tensors`, which are as Checkpoint.tensors gives them.

        `pack` says whether matrices are laid out for oneDNN; by default where that can be done. `ops`
        defaults to the device's.
        """
        self.shape = shape
        self._embedding = tensors.pop("model.embed_tokens.weight")
        self._ops = ops or default_ops(self.device)
        if pack is None:
            pack = can_pack(self.dtype, self.device)
        self._layers = [_layer(shape, tensors, f"model.layers.{i}.", pack) for i in range(shape.num_layers)]
        self._norm = tensors.pop("model.norm.weight")
        head = self._embedding if shape.tie_word_embeddings else tensors.pop("lm_head.weight")
        self._head = linear(head, None, packed=pack)

    @property
    def dtype(self) -> torch.dtype:
        """Element type of weights and activations."""
        return self._embedding.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self._embedding.device

    def forward(
        self,
        input_ids: torch.Tensor,
        rotations: torch.Tensor,
        attention: AttentionPlan,
        logit_tokens: torch.Tensor,
    ) -> torch.Tensor:
        """Logits after the chosen tokens.

        `input_ids` is (tokens,); `rotations` (tokens, head_dim / 2) is the rotary table at the tokens'
        positions; `logit_tokens` (n,) are places in the batch. Returns (n, vocabulary) in the weights' type.
        """
        residual = self.embed(input_ids)
        update = None
        for i in range(self.shape.num_layers):
            # One expression, so that all it computes in is free before the MLP, whose memory is the peak.
            update = self.after_attention(i, attend(attention, i, self.qkv(i, update, residual), rotations))
            update = self.mlp(i, update, residual)
        return self.head(update, residual, logit_tokens)

    # What lies before, between and after attention, for whoever runs it apart. `residual` is the stream of
    # all layers, (tokens, hidden size), and changed in place; `update` is what is still to be added to it.

    def embed(self, input_ids: torch.Tensor) -> torch.Tensor:
        """The residual before the first layer."""
        mark(Operator.OTHER)
        return F.embedding(input_ids, self._embedding)

    def qkv(self, i: int, update: torch.Tensor | None, residual: torch.Tensor) -> torch.Tensor:
        """Layer i's queries, keys and values, not rotated: (tokens, q_size + 2 * kv_size), contiguous."""
        layer, shape = self._layers[i], self.shape
        mark(Operator.NORM, i)
        normed = self._add_norm(update, residual, layer.input_norm)
        mark(Operator.QKV, i)
        qkv = layer.qkv(normed)
        if layer.head_norms is not None:
            mark(Operator.NORM, i)
            queries_keys = qkv[:, : shape.q_size + shape.kv_size].view(len(qkv), -1, shape.head_dim)
            self._ops.rms_norm_heads_(queries_keys, layer.head_norms, shape.rms_norm_eps)
        return qkv

    def after_attention(self, i: int, attended: torch.Tensor) -> torch.Tensor:
        """Layer i's update by what its attention gave, (tokens, q_size)."""
        mark(Operator.O, i)
        return self._layers[i].o(attended)

    def mlp(self, i: int, update: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Layer i's other update, once the first has been added."""
        layer = self._layers[i]
        mark(Operator.NORM, i)
        normed = self._add_norm(update, residual, layer.post_norm)
        mark(Operator.GATE_UP, i)
        activated = self._ops.silu_and_mul(layer.gate_up(normed))
        mark(Operator.DOWN, i)
        return layer.down(activated)

    def head(
        self, update: torch.Tensor | None, residual: torch.Tensor, logit_tokens: torch.Tensor
    ) -> torch.Tensor:
        """(n, vocabulary) after the last layer; of `residual` nothing is changed."""
        mark(Operator.OTHER)
        chosen = residual.index_select(0, logit_tokens)
        if update is None or not len(logit_tokens):
            return chosen.new_empty((0, self.shape.vocab_size))
        update = update.index_select(0, logit_tokens)
        mark(Operator.NORM)
        normed = self._add_norm(update, chosen, self._norm)
        mark(Operator.HEAD)
        return self._head(normed)

    def _add_norm(
        self, update: torch.Tensor | None, residual: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        """The residual, normalised after `update` has been added to it."""
        if update is None:
            return self._ops.rms_norm(residual, weight, self.shape.rms_norm_eps)
        return self._ops.add_rms_norm(update, residual, weight, self.shape.rms_norm_eps)


def attend(attention: AttentionPlan, i: int, qkv: torch.Tensor, rotations: torch.Tensor) -> torch.Tensor:
    """Layer i's attention: store the new keys and values, then (tokens, q_size) of what the tokens see."""
    mark(Operator.COPY, i)
    attention.store(i, qkv, rotations)
    return attention.attend(i, qkv)


def _layer(shape: ModelShape, tensors: dict[str, torch.Tensor], prefix: str, pack: bool) -> _Layer:
    """Take one layer's tensors out of the dictionary, so that each is freed once its packed copy exists."""

    def take(name: str) -> dict[str, torch.Tensor]:
        """A projection's weight, and its bias if the model has one."""
        full = f"{prefix}{name}."
        return {kind: tensors.pop(full + kind) for kind in ("weight", "bias") if full + kind in tensors}

    def paired(name: str) -> dict[str, torch.Tensor]:
        return {kind: pair_rows(tensor, shape.head_dim) for kind, tensor in take(name).items()}

    def fuse(*projections: dict[str, torch.Tensor]) -> Linear:
        weight, bias = (
            torch.cat([p[kind] for p in projections]) if kind in projections[0] else None
            for kind in ("weight", "bias")
        )
        assert weight is not None
        return linear(weight, bias, packed=pack)

    def head_norms() -> torch.Tensor | None:
        """One row a query head, then one a key head, in the order of their paired elements."""
        if not shape.qk_norm:
            return None
        norms = (("self_attn.q_norm", shape.num_heads), ("self_attn.k_norm", shape.num_kv_heads))
        return torch.cat([paired(name)["weight"].expand(heads, -1) for name, heads in norms])

    return _Layer(
        input_norm=tensors.pop(f"{prefix}input_layernorm.weight"),
        qkv=fuse(paired("self_attn.q_proj"), paired("self_attn.k_proj"), take("self_attn.v_proj")),
        head_norms=head_norms(),
        o=fuse(take("self_attn.o_proj")),
        post_norm=tensors.pop(f"{prefix}post_attention_layernorm.weight"),
        gate_up=fuse(take("mlp.gate_proj"), take("mlp.up_proj")),
        down=fuse(take("mlp.down_proj")),
    )
