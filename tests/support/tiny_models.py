"""Small Llama models on disk, in each format that the engine reads, with weights made from a seed."""

import json
from pathlib import Path
from typing import Any

import torch

from engine.models.layout import llama_tensors
from engine.shapes import ModelShape

__all__ = ["TINY_CONFIG", "tiny_weights", "write_directory", "write_gguf"]

TINY_CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "vocab_size": 40,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
    "eos_token_id": 3,
}


def tiny_weights(config: dict[str, Any] | None = None) -> dict[str, torch.Tensor]:
    """Float32 tensors of a configuration under their Hugging Face names."""
    generator = torch.Generator().manual_seed(11)
    shape = ModelShape.from_hf_config(config or TINY_CONFIG, "tiny")
    return {name: torch.randn(size, generator=generator) for name, size in llama_tensors(shape)}


def write_directory(
    path: Path,
    *,
    config: dict[str, Any] | None = None,
    shards: int = 1,
    dtype: torch.dtype = torch.float32,
    weights: dict[str, torch.Tensor] | None = None,
) -> Path:
    """A Hugging Face directory: one model.safetensors, or several with an index."""
    from safetensors.torch import save_file

    path.mkdir(parents=True, exist_ok=True)
    config = config or TINY_CONFIG
    (path / "config.json").write_text(json.dumps(config))
    weights = tiny_weights(config) if weights is None else weights
    tensors = {name: tensor.to(dtype) for name, tensor in weights.items()}
    if shards == 1:
        save_file(tensors, path / "model.safetensors")
        return path
    weight_map = {name: f"model-{i % shards:05}.safetensors" for i, name in enumerate(tensors)}
    for file in set(weight_map.values()):
        save_file({name: tensors[name] for name in tensors if weight_map[name] == file}, path / file)
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return path


def write_gguf(
    path: Path,
    *,
    matrix_type: str = "F32",
    metadata: dict[str, Any] | None = None,
    drop: tuple[str, ...] = (),
    config: dict[str, Any] | None = None,
    tokenizer: bool = True,
) -> Path:
    """A GGUF file as llama.cpp's converter writes one: its names, and q and k rows in its order.

    `metadata` overrides keys; a value of None leaves the key out.
    """
    import gguf

    config = config or TINY_CONFIG
    shape = ModelShape.from_hf_config(config, "tiny")
    writer = gguf.GGUFWriter(path, "llama")
    fields: dict[str, Any] = {
        "llama.block_count": shape.num_layers,
        "llama.context_length": shape.max_position_embeddings,
        "llama.embedding_length": shape.hidden_size,
        "llama.feed_forward_length": shape.intermediate_size,
        "llama.attention.head_count": shape.num_heads,
        "llama.attention.head_count_kv": shape.num_kv_heads,
        "llama.rope.dimension_count": shape.head_dim,
        "llama.rope.freq_base": shape.rope_theta,
        "llama.attention.layer_norm_rms_epsilon": shape.rms_norm_eps,
        "llama.vocab_size": shape.vocab_size,
    }
    if tokenizer:
        fields |= _tokenizer_fields()
    for key, value in (fields | (metadata or {})).items():
        _add(writer, key, value)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, shape.num_layers)
    for name, tensor in tiny_weights(config).items():
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if stored in drop:
            continue
        for projection, heads in (("q_proj", shape.num_heads), ("k_proj", shape.num_kv_heads)):
            if projection in name:
                tensor = _llama_cpp_rows(tensor, heads)
        kind = gguf.GGMLQuantizationType[matrix_type if tensor.dim() == 2 else "F32"]
        writer.add_tensor(stored, gguf.quants.quantize(tensor.numpy(), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _llama_cpp_rows(tensor: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Row order of GGUF: within a head, row i of the first half, then row i of the second."""
    rows = torch.arange(tensor.shape[0]).view(num_heads, 2, -1)
    return tensor[torch.stack([rows[:, 0], rows[:, 1]], dim=-1).flatten()].contiguous()


def _tokenizer_fields() -> dict[str, Any]:
    letters = list("abcdefghij") + list("0123456789") + ["Ġ", "Ċ"]
    tokens = ["<|end|>", "<|user|>", "plain>", *letters, "ab", "cd", "abcd", "Ġab"]
    tokens += [f"[{i}]" for i in range(TINY_CONFIG["vocab_size"] - len(tokens))]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, 4] + [1] * (len(tokens) - 3),
        "tokenizer.ggml.merges": ["a b", "c d", "ab cd", "Ġ ab"],
        "tokenizer.ggml.eos_token_id": 0,
    }


def _add(writer: Any, key: str, value: object) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value is not None:
        writer.add_array(key, value)
