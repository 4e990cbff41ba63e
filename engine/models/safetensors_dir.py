"""A model in a Hugging Face directory: config.json, *.safetensors and their index, tokenizer.json."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.errors import ModelError
from engine.fields import read_token_ids, shown
from engine.models.checkpoint import Checkpoint, display_name
from engine.models.json_file import read_json_object
from engine.models.layout import llama_tensors, require_computed
from engine.models.memory import require_memory
from engine.models.values import require_finite, require_in_range
from engine.shapes import ModelShape

if TYPE_CHECKING:
    import tokenizers
    import torch

__all__ = ["SafetensorsCheckpoint", "open_directory"]

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
WEIGHT_TYPES = ("F32", "F16", "BF16")
# Of any layer, but for the table of frequencies that old files hold.
LAYER_TENSOR = re.compile(r"model\.layers\.(\d{1,9})\.(?!self_attn\.rotary_emb\.)")


@dataclass(frozen=True, slots=True)
class SafetensorsCheckpoint(Checkpoint):
    """A directory whose files have been looked into and hold every tensor of its shape."""

    files: Mapping[str, Path]  # by tensor name

    load_format: ClassVar[str] = "safetensors"

    def tensors(self, dtype: "torch.dtype", device: "torch.device") -> "dict[str, torch.Tensor]":
        """All weights, converted one tensor at a time."""
        require_memory(self.shape, dtype, device)
        tensors: dict[str, torch.Tensor] = {}
        wanted = dict(llama_tensors(self.shape))
        for file in dict.fromkeys(self.files[name] for name in wanted):
            with _opened(file, "pt") as handle:
                for name in (name for name in wanted if self.files[name] == file):
                    tensor = handle.get_tensor(name)
                    require_finite(tensor, name, file)
                    tensors[name] = tensor.to(device, dtype, copy=True)
                    require_in_range(tensors[name], name, file)
        return tensors

    def tokenizer(self) -> "tokenizers.Tokenizer | None":
        """The tokenizer in tokenizer.json, None without that file; ModelError if it is damaged."""
        return read_tokenizer(self.path)

    def describe(self) -> dict[str, Any]:
        """What a trace says about the model, with the names of its weight files."""
        # A bare super() does not see the class that `slots=True` builds anew.
        return Checkpoint.describe(self) | {"weights": sorted({file.name for file in self.files.values()})}


def open_directory(path: Path, dummy: bool) -> Checkpoint:
    """The model in directory `path`, or with `dummy` its shape and tokenizer alone.

    Raises ModelError if a file is missing or damaged, or the model is not supported.
    """
    config_path = path / "config.json"
    if not config_path.is_file():
        raise ModelError(f"{path}: holds no config.json: give a model directory or a GGUF file")
    config = read_json_object(config_path)
    shape = replace(ModelShape.from_hf_config(config, str(config_path)), name=display_name(path))
    eos = _eos_token_ids(path, config)
    if dummy:
        from engine.models.dummy import DummyCheckpoint

        return DummyCheckpoint(path, shape, eos, lambda: read_tokenizer(path))
    require_computed(shape, config_path)
    if config.get("quantization_config") is not None:
        raise ModelError(
            f"{config_path}: quantised weights are not supported: give a model in bfloat16 or float32"
        )
    files = _weight_files(path)
    _check_tensors(path, shape, files)
    _refuse_unread(shape, files)
    return SafetensorsCheckpoint(path, shape, eos, files)


def read_tokenizer(path: Path) -> "tokenizers.Tokenizer | None":
    """The tokenizer of model directory `path`, None where it has no tokenizer.json."""
    file = path / "tokenizer.json"
    if not file.exists():
        return None
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the package raises this very class for whatever it dislikes
        raise ModelError(f"{file}: is no valid tokenizer: {' '.join(str(error).split())}") from error


def _eos_token_ids(path: Path, config: Mapping[str, Any]) -> frozenset[int]:
    """generation_config.json goes before config.json, as in transformers."""
    generation_path = path / "generation_config.json"
    if generation_path.exists():
        generation = read_json_object(generation_path)
        if generation.get("eos_token_id") is not None:
            return read_token_ids(generation, "eos_token_id", str(generation_path))
    return read_token_ids(config, "eos_token_id", str(path / "config.json"))


def _weight_files(path: Path) -> dict[str, Path]:
    """The file of each tensor name: by the index if there is one, else by what the files hold."""
    index_path = path / INDEX
    if index_path.exists():
        return _indexed_files(index_path)
    files = [path / SINGLE] if (path / SINGLE).exists() else sorted(path.glob("*.safetensors"))
    if not files:
        raise ModelError(
            f"{path}: holds no *.safetensors: convert the weights to safetensors, or give --load-format dummy"
        )
    found: dict[str, Path] = {}
    for file in files:
        with _opened(file, "np") as handle:
            for name in handle.keys():  # noqa: SIM118 (a handle cannot be iterated)
                if name in found:
                    raise ModelError(
                        f"{file}: tensor {name} is in {found[name].name} too: keep one model a directory"
                    )
                found[name] = file
    return found


def _indexed_files(index_path: Path) -> dict[str, Path]:
    weight_map = read_json_object(index_path).get("weight_map")
    if not isinstance(weight_map, dict):
        raise ModelError(f"{index_path}: weight_map is {shown(weight_map)}: it must be an object")
    for name, file in weight_map.items():
        if not isinstance(file, str) or Path(file).name != file:
            raise ModelError(
                f"{index_path}: {shown(name)} lies in {shown(file)}: it must name a file beside the index"
            )
    return {name: index_path.parent / file for name, file in weight_map.items()}


def _check_tensors(path: Path, shape: ModelShape, files: Mapping[str, Path]) -> None:
    """Raise ModelError unless each tensor of `shape` is in its file, in its size and in a float type."""
    wanted: dict[Path, list[tuple[str, tuple[int, ...]]]] = {}
    for name, size in llama_tensors(shape):
        if name not in files:
            raise ModelError(f"{path}: tensor {name} is missing: fetch the weights again")
        wanted.setdefault(files[name], []).append((name, size))
    for file, tensors in wanted.items():
        with _opened(file, "np") as handle:
            present = set(handle.keys())
            for name, size in tensors:
                if name not in present:
                    raise ModelError(f"{file}: tensor {name} is missing: fetch the file again")
                _check_tensor(file, name, size, handle.get_slice(name))


def _refuse_unread(shape: ModelShape, files: Mapping[str, Path]) -> None:
    """Raise ModelError for a tensor of a layer that the forward would leave out, like a bias not told of."""
    read = {name for name, _ in llama_tensors(shape)}
    for name, file in files.items():
        layer = LAYER_TENSOR.match(name)
        if layer and int(layer[1]) < shape.num_layers and name not in read:
            raise ModelError(
                f"{file}: tensor {shown(name)} has no part in the {shape.architecture} that config.json "
                "describes: fetch both files again"
            )


def _check_tensor(file: Path, name: str, size: tuple[int, ...], stored: Any) -> None:
    if tuple(stored.get_shape()) != size:
        raise ModelError(
            f"{file}: tensor {name} is {stored.get_shape()}, not {list(size)} as config.json says: "
            "fetch both files again"
        )
    kind = stored.get_dtype()
    if kind not in WEIGHT_TYPES:
        raise ModelError(
            f"{file}: tensor {name} of type {kind} is not supported: give {', '.join(WEIGHT_TYPES)}"
        )


@contextmanager
def _opened(file: Path, framework: str) -> Iterator[Any]:
    """A safetensors file, whose header is checked on opening; "np" reads no tensor and needs no torch."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(file), framework=framework) as handle:
            yield handle
    except FileNotFoundError as error:
        raise ModelError(f"{file}: no such file: fetch the weights again") from error
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{file}: damaged safetensors file: {' '.join(str(error).split())}: fetch it again"
        ) from error
