"""What cannot be computed is refused in one line before weights are read; what can be is not."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.executors.device import DeviceExecutor
from engine.models.loader import LoadedModel, load_model
from engine.models.values import require_finite
from tests.support.refusals import refused
from tests.support.tiny_models import TINY_CONFIG, tiny_weights, write_directory

QWEN3 = TINY_CONFIG | {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
MISTRAL = TINY_CONFIG | {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}


def config_file(path: Path, config: dict[str, Any]) -> Path:
    """A bare configuration, which stands for random weights."""
    file = path / "config.json"
    file.write_text(json.dumps(config))
    return file


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"architectures": ["Phi3ForCausalLM"]}, "phi3 can be simulated but not computed"),
        ({"architectures": ["Gemma2ForCausalLM"]}, "llama, mistral, qwen2, qwen3"),
        ({"architectures": ["Qwen2ForCausalLM"], "hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"architectures": ["MistralForCausalLM"], "partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope scaling 'dynamic' is not supported"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "rope scaling 'yarn' is not supported"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope scaling 'longrope' is not supported"),
        ({"rope_scaling": {"rope_type": ["llama3"]}}, "rope scaling ['llama3'] is not supported"),
    ],
)
def test_a_model_that_cannot_be_computed(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    file = config_file(tmp_path, TINY_CONFIG | change)
    refused(lambda: load_model(file, device="cpu"), named)
    directory = write_directory(tmp_path / "whole", config=TINY_CONFIG)
    config_file(directory, TINY_CONFIG | change)
    refused(lambda: load_model(directory, device="cpu"), named)


@pytest.mark.parametrize(
    "extra", ["self_attn.q_proj.bias", "self_attn.k_norm.weight", "mlp.gate_proj.scales"]
)
def test_a_tensor_that_no_layer_reads(tmp_path: Path, extra: str) -> None:
    name = f"model.layers.1.{extra}"
    path = write_directory(tmp_path / "m", weights=tiny_weights() | {name: torch.zeros(16)})
    refused(lambda: load_model(path, device="cpu"), "model.safetensors", name, "has no part in the llama")


def test_tensors_beside_the_layers_are_left_alone(tmp_path: Path) -> None:
    names = (
        "model.layers.0.self_attn.rotary_emb.inv_freq",
        "model.layers.2.mlp.up_proj.bias",
        "score.weight",
    )
    path = write_directory(tmp_path / "m", weights=tiny_weights() | {name: torch.zeros(16) for name in names})
    assert load_model(path, device="cpu").shape.num_layers == 2


def test_norms_of_heads_that_are_missing(tmp_path: Path) -> None:
    weights = tiny_weights(QWEN3 | {"head_dim": 16})
    del weights["model.layers.0.self_attn.q_norm.weight"]
    path = write_directory(tmp_path / "m", config=QWEN3 | {"head_dim": 16}, weights=weights)
    refused(lambda: load_model(path, device="cpu"), "model.layers.0.self_attn.q_norm.weight is missing")


def test_weights_beyond_float16_are_refused_in_float16_alone(tmp_path: Path) -> None:
    weights = tiny_weights()
    weights["model.layers.1.mlp.up_proj.weight"][3, 5] = 70_000.0
    path = write_directory(tmp_path / "m", weights=weights)
    refused(
        lambda: load_model(path, device="cpu", dtype="float16"),
        "model.layers.1.mlp.up_proj.weight holds values beyond 65504",
        "--dtype bfloat16",
    )
    assert load_model(path, device="cpu", dtype="bfloat16").dtype == torch.bfloat16


def test_float16_weights_may_add_up_to_more_than_float16_holds() -> None:
    require_finite(torch.full((4096,), 20.0, dtype=torch.float16), "norm", Path("model"))


def executor(loaded: LoadedModel, context_length: int, pool: int = 512) -> DeviceExecutor:
    config = EngineConfig(max_total_tokens=pool)
    config = config.resolve(max_total_tokens=pool, context_length=context_length)
    return DeviceExecutor(loaded, config, MonotonicClock())


def test_a_context_beyond_the_sliding_window(tmp_path: Path) -> None:
    loaded = load_model(config_file(tmp_path, MISTRAL | {"sliding_window": 100}), device="cpu")
    with pytest.raises(ConfigError, match=r"looks back 100 tokens only.* give --context-length 100$"):
        executor(loaded, context_length=101)
    executor(loaded, context_length=100)
    executor(loaded, context_length=128, pool=100)  # no sequence outgrows the pool


def test_a_model_without_a_window_takes_any_context(tmp_path: Path) -> None:
    loaded = load_model(config_file(tmp_path, MISTRAL | {"sliding_window": None}), device="cpu")
    executor(loaded, context_length=TINY_CONFIG["max_position_embeddings"])
