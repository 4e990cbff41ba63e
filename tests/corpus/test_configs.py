"""Published model configurations: dense ones of any family are read, others refused with the reason."""

import json
from pathlib import Path

import pytest

from engine.errors import ModelError
from engine.shapes import ModelShape

CONFIGS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "configs"
PUBLISHED_PARAMS = {
    "HuggingFaceTB--SmolLM2-135M": 134_515_008,
    "Qwen--Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen--Qwen3-0.6B": 596_049_920,
    "Qwen--Qwen3-32B": 32_762_123_264,
    "Qwen--Qwen3-8B": 8_190_735_360,
    "google--gemma-2-9b": 9_241_705_984,
    "meta-llama--Meta-Llama-3.1-70B": 70_553_706_496,
    "meta-llama--Meta-Llama-3.1-8B": 8_030_261_248,
    "microsoft--Phi-3-mini-4k-instruct": 3_821_079_552,
    "mistralai--Mistral-7B-v0.1": 7_241_732_096,
}
WINDOWS = {
    "google--gemma-2-9b": 4096,
    "microsoft--Phi-3-mini-4k-instruct": 2047,
    "mistralai--Mistral-7B-v0.1": 4096,
}
NOT_DENSE = {
    "Qwen--Qwen3-235B-A22B": "a mixture of experts",
    "Qwen--Qwen3-30B-A3B": "a mixture of experts",
    "Qwen--Qwen3.5-27B": "linear attention",
    "deepseek-ai--DeepSeek-V3": "a mixture of experts and multi-head latent attention",
    "google--gemma-4-26B-A4B": "a mixture of experts",
    "microsoft--Phi-mini-MoE-instruct": "a mixture of experts",
    "mistralai--Mixtral-8x7B-v0.1": "a mixture of experts",
    "openai--gpt-oss-120b": "a mixture of experts",
    "openai--gpt-oss-20b": "a mixture of experts",
}

pytestmark = pytest.mark.skipif(not CONFIGS.is_dir(), reason=f"no model configurations at {CONFIGS}")


def read(name: str) -> ModelShape:
    return ModelShape.from_hf_config(json.loads((CONFIGS / f"{name}.config.json").read_text()), name)


def test_every_configuration_is_accounted_for() -> None:
    found = {path.name.removesuffix(".config.json") for path in CONFIGS.glob("*.config.json")}
    assert found == PUBLISHED_PARAMS.keys() | NOT_DENSE.keys()


@pytest.mark.parametrize("name", PUBLISHED_PARAMS)
def test_a_dense_model_has_the_published_number_of_parameters(name: str) -> None:
    shape = read(name)
    assert shape.num_params == PUBLISHED_PARAMS[name]
    assert shape.sliding_window == WINDOWS.get(name)


@pytest.mark.parametrize("name", NOT_DENSE)
def test_others_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(ModelError, match=f"^{name}: architecture '.*' has {NOT_DENSE[name]}, which"):
        read(name)
