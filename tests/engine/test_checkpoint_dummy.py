import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine.errors import ModelError
from engine.models.checkpoint import open_checkpoint
from engine.models.layout import llama_tensors
from tests.support.refusals import refused
from tests.support.smollm2 import smollm2_path
from tests.support.tiny_models import TINY_CONFIG, write_directory, write_gguf

CPU = torch.device("cpu")


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(TINY_CONFIG))
    return path


def test_a_bare_config_is_a_dummy(config_path: Path) -> None:
    checkpoint = open_checkpoint(config_path)
    assert checkpoint.load_format == "dummy"
    assert checkpoint.shape.name == "small"
    assert checkpoint.tokenizer() is None
    assert checkpoint.eos_token_ids == {3}
    about = checkpoint.describe()
    assert (about["weights"], about["load_format"]) == ("random", "dummy")
    assert json.loads(json.dumps(about)) == about


def test_a_config_in_a_directory_is_called_by_the_directory(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "My-Model")
    assert open_checkpoint(path / "config.json").shape.name == "My-Model"


def test_random_weights_have_the_shape_and_scale_of_a_model(config_path: Path) -> None:
    checkpoint = open_checkpoint(config_path)
    tensors = checkpoint.tensors(torch.float32, CPU)
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == dict(
        llama_tensors(checkpoint.shape)
    )
    assert sum(tensor.numel() for tensor in tensors.values()) == checkpoint.shape.num_params
    assert tensors["model.layers.0.mlp.down_proj.weight"].std().item() == pytest.approx(96**-0.5, rel=0.05)
    assert torch.equal(tensors["model.norm.weight"], torch.ones(64))


def test_random_weights_repeat(config_path: Path) -> None:
    first, second = (open_checkpoint(config_path).tensors(torch.float32, CPU) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["lm_head.weight"], first["model.embed_tokens.weight"])


def test_a_model_larger_than_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    path.write_text(json.dumps(TINY_CONFIG | {"num_hidden_layers": 2**31 - 1}))
    checkpoint = open_checkpoint(path)
    refused(lambda: checkpoint.tensors(torch.float32, CPU), "huge", "GB are free on cpu")


def test_what_lies_at_a_path_is_told_apart(tmp_path: Path) -> None:
    refused(lambda: open_checkpoint(tmp_path / "none"), str(tmp_path / "none"), "no such file or directory")
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    refused(lambda: open_checkpoint(text), str(text), "is no GGUF file, model directory or config.json")
    weights = write_directory(tmp_path / "m") / "model.safetensors"
    refused(lambda: open_checkpoint(weights), str(weights), "give its directory")
    refused(lambda: open_checkpoint(Path("/dev/null")), "/dev/null", "is no GGUF file")
    renamed = write_gguf(tmp_path / "m.gguf").rename(tmp_path / "m.bin")
    assert open_checkpoint(renamed).load_format == "gguf"


def test_an_unknown_load_format_is_named(config_path: Path) -> None:
    refused(lambda: open_checkpoint(config_path, "pickle"), "--load-format 'pickle'", "auto or dummy")


def test_a_file_that_must_not_be_read_is_named(config_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(self: Path, *args: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(ModelError, match=r"small\.json: cannot be read: Permission denied"):
        open_checkpoint(config_path)


def test_opening_a_checkpoint_loads_no_torch_and_no_reader_of_other_formats(config_path: Path) -> None:
    program = """
import sys
from pathlib import Path
import engine.arithmetic, engine.shapes
from engine.models.checkpoint import open_checkpoint
readers = {"gguf", "safetensors", "tokenizers", "transformers", "torch"}
assert not readers & set(sys.modules)
open_checkpoint(Path(sys.argv[1]))
assert not readers & set(sys.modules)
open_checkpoint(Path(sys.argv[2]))
assert readers & set(sys.modules) == {"gguf"}
open_checkpoint(Path(sys.argv[3]))
assert readers & set(sys.modules) == {"gguf", "safetensors"}
"""
    directory = write_directory(config_path.parent / "m")
    paths = [str(config_path), str(smollm2_path()), str(directory)]
    subprocess.run([sys.executable, "-c", program, *paths], check=True)
