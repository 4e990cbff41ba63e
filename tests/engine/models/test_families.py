"""Families of models as transformers saves them: the logits and tokens it computes from the same files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.models.loader import LoadedModel, load_model
from tests.support.tiny_llama import Forwards

pytestmark = pytest.mark.usefixtures("one_thread")

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 4e-2, torch.float16: 5e-3}
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
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama-3.1": ("llama", {"rope_parameters": LLAMA3_ROPE}),
    "llama-3.2": ("llama", {"rope_parameters": LLAMA3_ROPE, "tie_word_embeddings": True, "head_dim": 32}),
    "llama-linear": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}},
    ),
    "llama-biased": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "mistral": ("mistral", {"sliding_window": None, "head_dim": 24}),
    "mistral-windowed": ("mistral", {"sliding_window": 256}),
    "qwen2": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2-untied": ("qwen2", {"num_key_value_heads": 1, "use_sliding_window": False}),
    "qwen3": ("qwen3", {"tie_word_embeddings": True, "head_dim": 32}),
    "qwen3-biased": ("qwen3", {"head_dim": 16, "attention_bias": True, "num_key_value_heads": 4}),
}
TYPICAL = ("llama-3.2", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True)
class Saved:
    """A model that transformers made and saved in several files."""

    path: Path
    oracle: Any
    dtype: torch.dtype

    def load(self) -> LoadedModel:
        return load_model(self.path, device="cpu", dtype=str(self.dtype).removeprefix("torch."))

    def logits(self, prompt: list[int]) -> torch.Tensor:
        """(1, vocabulary) after the prompt, in float32."""
        with torch.inference_mode():
            logits: torch.Tensor = self.oracle(torch.tensor([prompt])).logits[0, -1:].float()
        return logits

    def close(self, found: torch.Tensor, expected: torch.Tensor) -> bool:
        return bool((found - expected).abs().max() <= TOLERANCE[self.dtype] * expected.abs().max())


Save = Callable[[str, torch.dtype], Saved]


@pytest.fixture(scope="module")
def save(tmp_path_factory: pytest.TempPathFactory) -> Save:
    made: dict[tuple[str, torch.dtype], Saved] = {}

    def saved(name: str, dtype: torch.dtype) -> Saved:
        if (name, dtype) not in made:
            oracle = random_model(*MODELS[name]).to(dtype)
            path = tmp_path_factory.mktemp(name)
            oracle.save_pretrained(path, max_shard_size="100KB")
            made[name, dtype] = Saved(path, oracle, dtype)
        return made[name, dtype]

    return saved


def random_model(model_type: str, fields: dict[str, Any]) -> Any:
    """Weights large enough that attention prefers some keys, norms and biases that matter."""
    from transformers import AutoConfig, AutoModelForCausalLM

    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **SIZES | fields)).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            std = weight.shape[1] ** -0.5 if weight.dim() == 2 else 0.2
            weight.normal_(float(name.endswith("norm.weight")), std, generator=generator)
    return model


def prompt_of(length: int) -> list[int]:
    ids: list[int] = torch.randint(SIZES["vocab_size"], (length,), generator=torch.manual_seed(9)).tolist()
    return ids


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, id=f"{name}-{str(dtype).removeprefix('torch.')}")
        for name in MODELS
        for dtype in TOLERANCE
        if dtype == torch.float32 or name in TYPICAL
    ],
)
def test_logits_are_transformers_at_once_and_in_chunks(save: Save, name: str, dtype: torch.dtype) -> None:
    saved = save(name, dtype)
    assert len(list(saved.path.glob("*.safetensors"))) > 1
    loaded = saved.load()
    assert (loaded.dtype, loaded.shape.num_params) == (dtype, saved.oracle.num_parameters())
    prompt = prompt_of(75)
    expected = saved.logits(prompt)
    forwards = Forwards(loaded, page_size=4)
    for chunk in (75, 16, 7):
        forwards.prefill(forwards.add(prompt), chunk)
        assert saved.close(forwards.logits, expected)


@pytest.mark.parametrize("name", TYPICAL)
def test_greedy_output_is_transformers_beside_another_request(save: Save, name: str) -> None:
    saved = save(name, torch.float32)
    prompts = [prompt_of(30), prompt_of(11)[::-1]]
    forwards = Forwards(saved.load(), page_size=16)
    requests = [forwards.add(prompt) for prompt in prompts]
    forwards.prefill(requests[0], 13)
    forwards.run([(requests[1], 11)], decode=requests[:1])
    for _ in range(14):
        forwards.run(decode=requests)
    for request, prompt in zip(requests, prompts, strict=True):
        with torch.inference_mode():
            out = saved.oracle.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=15)
        assert request.output_ids[:15] == out[0, len(prompt) :].tolist()
