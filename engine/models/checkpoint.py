"""`open_checkpoint`: one way in to weights, whatever they are stored as."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.errors import ModelError
from engine.shapes import ModelShape

if TYPE_CHECKING:
    import tokenizers
    import torch

__all__ = ["LOAD_FORMATS", "Checkpoint", "display_name", "open_checkpoint"]

LOAD_FORMATS = ("auto", "dummy")
GGUF_MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class Checkpoint(ABC):
    """A model that has been found and checked, its weights not yet read."""

    path: Path
    shape: ModelShape
    eos_token_ids: frozenset[int]

    load_format: ClassVar[str]  # "gguf", "safetensors" or "dummy"

    @abstractmethod
    def tensors(self, dtype: "torch.dtype", device: "torch.device") -> "dict[str, torch.Tensor]":
        """All weights by the Hugging Face names and of the shapes that `llama_tensors` lists.

        Raises ModelError if the file changed or is damaged, or if the weights do not fit in memory.
        """

    @abstractmethod
    def tokenizer(self) -> "tokenizers.Tokenizer | None":
        """The model's tokenizer, None where it has none; ModelError where it is of an unknown kind."""

    def describe(self) -> dict[str, Any]:
        """What a trace says about the model: plain values only."""
        return {
            "path": str(self.path),
            "load_format": self.load_format,
            "num_params": self.shape.num_params,
            "eos_token_ids": sorted(self.eos_token_ids),
            **asdict(self.shape),
        }


def open_checkpoint(path: Path, load_format: str = "auto") -> Checkpoint:
    """The checkpoint at `path`: a GGUF file, a Hugging Face directory, or a `config.json` without weights.

    `load_format` "dummy", which a bare configuration implies, gives seeded random weights in the shape
    found. Raises ModelError, in one line, for anything missing, damaged or not supported.
    """
    if load_format not in LOAD_FORMATS:
        raise ModelError(f"--load-format {load_format!r} is not known: give {' or '.join(LOAD_FORMATS)}")
    try:
        return _open(path, load_format == "dummy")
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error


def display_name(path: Path) -> str:
    """What a model at `path` is called: its directory's name, or its file's without the ending."""
    path = path.absolute()
    if path.is_dir():
        return path.name
    return (
        path.parent.name
        if path.name == "config.json"
        else path.name.removesuffix(".json").removesuffix(".gguf")
    )


def _open(path: Path, dummy: bool) -> Checkpoint:
    if path.is_dir():
        from engine.models.safetensors_dir import open_directory

        return open_directory(path, dummy)
    if not path.exists():
        raise ModelError(
            f"{path}: no such file or directory: give a GGUF file, a model directory or a config.json"
        )
    if path.is_file() and _first_bytes(path) == GGUF_MAGIC:
        from engine.models.gguf_file import open_gguf

        return open_gguf(path, dummy)
    if path.is_file() and path.suffix == ".json":
        from engine.models.dummy import open_config

        return open_config(path)
    if path.suffix == ".safetensors":
        raise ModelError(f"{path}: holds weights alone: give its directory, with config.json in it")
    raise ModelError(f"{path}: is no GGUF file, model directory or config.json: give one of these")


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(GGUF_MAGIC))
