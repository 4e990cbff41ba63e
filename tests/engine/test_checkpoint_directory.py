import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.models.checkpoint import open_checkpoint
from tests.support.refusals import flips, refused, refused_or_fine
from tests.support.smollm2 import oracle_from
from tests.support.tiny_models import TINY_CONFIG, tiny_weights, write_directory

CPU = torch.device("cpu")
PROMPT = [5, 7, 9, 11, 2, 38]


def load(path: Path) -> dict[str, torch.Tensor]:
    checkpoint = open_checkpoint(path)
    checkpoint.tokenizer()
    return checkpoint.tensors(torch.float32, CPU)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_come_back_from_one_file_or_many(tmp_path: Path, shards: int, dtype: torch.dtype) -> None:
    path = write_directory(tmp_path / "model", shards=shards, dtype=dtype)
    tensors = load(path)
    expected = tiny_weights()
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], expected[name].to(dtype).float()) for name in expected)
    about = open_checkpoint(path).describe()
    assert (about["load_format"], about["name"], len(about["weights"])) == ("safetensors", "model", shards)


def test_shards_without_an_index_are_found(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "model", shards=3)
    (path / "model.safetensors.index.json").unlink()
    assert load(path).keys() == tiny_weights().keys()


def test_what_transformers_saves_is_read_as_it_meant(tmp_path: Path) -> None:
    config = TINY_CONFIG | {"tie_word_embeddings": True, "attention_bias": True}
    model = oracle_from(open_checkpoint(write_directory(tmp_path / "first", config=config)))
    model.save_pretrained(tmp_path / "second")
    again = oracle_from(open_checkpoint(tmp_path / "second"))
    ids = torch.tensor([PROMPT])
    with torch.inference_mode():
        assert torch.equal(model(ids).logits, again(ids).logits)


def test_a_tied_model_needs_no_head_and_ignores_one(tmp_path: Path) -> None:
    config = TINY_CONFIG | {"tie_word_embeddings": True}
    tensors = load(write_directory(tmp_path / "m", config=config, weights=tiny_weights(TINY_CONFIG)))
    assert "lm_head.weight" not in tensors


@pytest.mark.parametrize(
    ("generation", "expected"),
    [
        (None, {3}),
        ({}, {3}),
        ({"eos_token_id": None}, {3}),
        ({"eos_token_id": 5}, {5}),
        ({"eos_token_id": [5, 6]}, {5, 6}),
    ],
)
def test_eos_tokens(tmp_path: Path, generation: dict[str, Any] | None, expected: set[int]) -> None:
    path = write_directory(tmp_path / "m")
    if generation is not None:
        (path / "generation_config.json").write_text(json.dumps(generation))
    assert open_checkpoint(path).eos_token_ids == expected


def test_a_directory_without_config(tmp_path: Path) -> None:
    refused(lambda: open_checkpoint(tmp_path), str(tmp_path), "holds no config.json")


def test_a_directory_without_weights_can_only_be_a_dummy(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "m")
    (path / "model.safetensors").unlink()
    refused(lambda: open_checkpoint(path), str(path), "--load-format dummy")
    checkpoint = open_checkpoint(path, "dummy")
    assert checkpoint.load_format == "dummy"
    assert checkpoint.eos_token_ids == {3}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "is no valid JSON"),
        ("{", "is no valid JSON"),
        ("\x00\xff", "is no valid JSON"),
        ("[" * 100_000, "is no valid JSON"),
        ('{"hidden_size": 1' + "0" * 5000 + "}", "is no valid JSON"),
        ("[1]", "holds list, not an object"),
        ("null", "holds NoneType, not an object"),
        ("{}", "architectures names no single model"),
    ],
    ids=["empty", "cut", "bytes", "deep", "long number", "list", "null", "bare"],
)
def test_an_unreadable_config_is_named(tmp_path: Path, text: str, named: str) -> None:
    path = write_directory(tmp_path / "m")
    (path / "config.json").write_bytes(text.encode("latin-1"))
    refused(lambda: open_checkpoint(path), str(path / "config.json"), named)


@pytest.mark.parametrize(
    ("name", "change", "named"),
    [
        (
            "config.json",
            TINY_CONFIG | {"architectures": ["GemmaForCausalLM"]},
            "a model of gemma can be simulated",
        ),
        ("config.json", TINY_CONFIG | {"quantization_config": {"bits": 4}}, "quantised weights are not"),
        ("config.json", TINY_CONFIG | {"eos_token_id": "</s>"}, "eos_token_id is '</s>'"),
        ("generation_config.json", {"eos_token_id": [1, "x"]}, "eos_token_id is of type list"),
        ("generation_config.json", [1], "holds list, not an object"),
        ("model.safetensors.index.json", {}, "weight_map is None"),
        ("model.safetensors.index.json", {"weight_map": {"a": "../b"}}, "must name a file beside the index"),
        ("model.safetensors.index.json", {"weight_map": {"a": 1}}, "must name a file beside the index"),
        ("tokenizer.json", {"version": "1.0"}, "is no valid tokenizer"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, name: str, change: object, named: str) -> None:
    path = write_directory(tmp_path / "m")
    (path / name).write_text(json.dumps(change))
    refused(lambda: load(path), str(path / name), named)


def test_missing_and_misshapen_tensors_are_named(tmp_path: Path) -> None:
    name = "model.layers.1.mlp.up_proj.weight"
    weights = tiny_weights()
    tensor = weights.pop(name)
    path = write_directory(tmp_path / "missing", weights=weights)
    refused(lambda: open_checkpoint(path), str(path), f"tensor {name} is missing")
    path = write_directory(tmp_path / "turned", weights=weights | {name: tensor.T.contiguous()})
    refused(lambda: open_checkpoint(path), str(path), name, "[64, 96], not [96, 64]")
    config = TINY_CONFIG | {"num_hidden_layers": 2**31 - 1}
    path = write_directory(tmp_path / "deep", config=config, weights=tiny_weights())
    refused(
        lambda: open_checkpoint(path), str(path), "tensor model.layers.2.input_layernorm.weight is missing"
    )


def test_integer_weights_are_named(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "m", dtype=torch.int8)
    refused(lambda: open_checkpoint(path), str(path / "model.safetensors"), "type I8 is not supported")


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "m", shards=3)
    shard = path / "model-00001.safetensors"
    shard.unlink()
    refused(lambda: open_checkpoint(path), str(shard), "no such file")


def test_a_shard_without_what_the_index_says_is_named(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "m", shards=3)
    shutil.copy(path / "model-00000.safetensors", path / "model-00001.safetensors")
    refused(lambda: open_checkpoint(path), str(path / "model-00001.safetensors"), "is missing")


def test_values_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    weights = tiny_weights()
    weights["model.norm.weight"][7] = float("inf")
    checkpoint = open_checkpoint(write_directory(tmp_path / "m", weights=weights))
    refused(lambda: checkpoint.tensors(torch.float32, CPU), "model.norm.weight")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "m")
    file = path / "model.safetensors"
    whole = file.read_bytes()
    for length in [*range(0, 2000, 41), *range(2000, len(whole), 9_973), len(whole) - 1]:
        file.write_bytes(whole[:length])
        refused(lambda: open_checkpoint(path), str(file), "damaged safetensors file")


def test_every_flipped_bit_of_a_header_is_refused_or_harmless(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "m")
    file = path / "model.safetensors"
    header = 8 + int.from_bytes(file.read_bytes()[:8], "little")
    outcomes = [refused_or_fine(lambda: load(path)) for _ in flips(file, range(0, header))]
    assert sum(outcomes) / len(outcomes) > 0.9


def test_every_flipped_bit_of_the_config_is_refused_or_harmless(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "m")
    file = path / "config.json"
    outcomes = [refused_or_fine(lambda: load(path)) for _ in flips(file, range(file.stat().st_size))]
    assert 0.3 < sum(outcomes) / len(outcomes) < 1
