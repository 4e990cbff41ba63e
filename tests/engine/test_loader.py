"""Loading: devices, types and pool sizes, and what is said where they cannot be had."""

from pathlib import Path

import pytest
import torch

from engine.errors import ConfigError, ModelError
from engine.models import loader
from engine.models.loader import default_max_total_tokens, load_model
from tests.support.tiny_llama import TINY_SHAPE, load_tiny
from tests.support.tiny_models import TINY_CONFIG, write_directory


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    return write_directory(tmp_path / "tiny")


@pytest.mark.parametrize(
    ("dtype", "loaded"),
    [("float32", torch.float32), ("bfloat16", torch.bfloat16), ("float16", torch.float16)],
)
def test_a_model_is_loaded_in_the_type_asked_for(model_dir: Path, dtype: str, loaded: torch.dtype) -> None:
    model = load_model(model_dir, device="cpu", dtype=dtype)
    assert (model.dtype, model.device.type) == (loaded, "cpu")
    assert model.shape.hidden_size == TINY_CONFIG["hidden_size"]
    assert model.eos_token_ids == {TINY_CONFIG["eos_token_id"]}
    assert model.checkpoint.load_format == "safetensors"
    assert model.weight_bytes == model.shape.num_params * loaded.itemsize


def test_auto_is_float32_on_the_cpu(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    model = load_model(model_dir)
    assert (model.dtype, model.device.type) == (torch.float32, "cpu")


def test_auto_is_bfloat16_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    device = loader._resolve_device("auto")
    assert (device.type, loader._resolve_dtype("auto", device)) == ("cuda", torch.bfloat16)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "cuda"}, "--device cuda: torch finds no CUDA GPU"),
        ({"device": "tpu"}, "--device 'tpu'"),
        ({"dtype": "float8"}, "--dtype 'float8'"),
    ],
)
def test_what_cannot_be_had_is_named_in_one_line(
    model_dir: Path, options: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=words) as error:
        load_model(model_dir, **options)
    assert "\n" not in str(error.value)


def test_an_unknown_rope_scaling_is_refused(tmp_path: Path) -> None:
    config = {**TINY_CONFIG, "rope_scaling": {"rope_type": "yarn", "factor": 2.0}}
    with pytest.raises(ModelError, match="yarn"):
        load_model(write_directory(tmp_path / "scaled", config=config), device="cpu")


@pytest.mark.parametrize("page_size", [1, 16, 100])
def test_the_default_pool_is_whole_pages_and_bounded(page_size: int) -> None:
    tokens = default_max_total_tokens(load_tiny(), page_size)
    assert tokens % page_size == 0
    assert page_size <= tokens <= loader.CPU_POOL[1] * TINY_SHAPE.max_position_embeddings


def test_the_default_pool_shrinks_with_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "free_bytes", lambda _: 4_000_000)
    token_bytes = 2 * TINY_SHAPE.kv_size * TINY_SHAPE.num_layers * 4
    assert default_max_total_tokens(load_tiny(), 16) == 1_000_000 // token_bytes // 16 * 16
    monkeypatch.setattr(loader, "free_bytes", lambda _: 4000)
    with pytest.raises(ModelError, match="hold no page"):
        default_max_total_tokens(load_tiny(), 16)
