"""The dense Llama family: one flat batch of tokens through all layers."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.attention.protocol import AttentionPlan
from engine.models.linear import Linear, can_pack, linear
from engine.models.rotary import pair_rows
from engine.shapes import ModelShape

__all__ = ["LlamaModel"]


@dataclass(frozen=True, slots=True)
class _Layer:
    input_norm: torch.Tensor
    qkv: Linear
    o: Linear
    post_norm: torch.Tensor
    gate_up: Linear
    down: Linear


class LlamaModel:
    """Llama as transformers defines it, with q, k, v in one matrix and gate, up in another."""

    def __init__(
        self, shape: ModelShape, tensors: dict[str, torch.Tensor], *, pack: bool | None = None
    ) -> None:
        """Take the weights out of `tensors`, which are as Checkpoint.tensors gives them.

        `pack` says whether matrices are laid out for oneDNN; by default where that can be done.
        """
        self.shape = shape
        self._embedding = tensors.pop("model.embed_tokens.weight")
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
        hidden = F.embedding(input_ids, self._embedding)
        for i, layer in enumerate(self._layers):
            hidden += self._attend(i, layer, rotations, attention, self._rms_norm(hidden, layer.input_norm))
            gate, up = layer.gate_up(self._rms_norm(hidden, layer.post_norm)).chunk(2, dim=-1)
            hidden += layer.down(F.silu(gate).mul_(up))
        chosen = hidden.index_select(0, logit_tokens)
        if not len(logit_tokens):
            return chosen.new_empty((0, self.shape.vocab_size))
        return self._head(self._rms_norm(chosen, self._norm))

    def _attend(
        self,
        i: int,
        layer: _Layer,
        rotations: torch.Tensor,
        attention: AttentionPlan,
        normed: torch.Tensor,
    ) -> torch.Tensor:
        qkv = layer.qkv(normed)
        attention.store(i, qkv, rotations)
        return layer.o(attention.attend(i, qkv))

    def _rms_norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight, self.shape.rms_norm_eps)


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

    return _Layer(
        input_norm=tensors.pop(f"{prefix}input_layernorm.weight"),
        qkv=fuse(paired("self_attn.q_proj"), paired("self_attn.k_proj"), take("self_attn.v_proj")),
        o=fuse(take("self_attn.o_proj")),
        post_norm=tensors.pop(f"{prefix}post_attention_layernorm.weight"),
        gate_up=fuse(take("mlp.gate_proj"), take("mlp.up_proj")),
        down=fuse(take("mlp.down_proj")),
    )
