"""Seeded random weights in a model's shape, for timing a model whose weights are not at hand."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.fields import read_token_ids
from engine.models.checkpoint import Checkpoint, display_name
from engine.models.json_file import read_json_object
from engine.models.layout import llama_tensors
from engine.models.memory import require_memory
from engine.shapes import ModelShape

if TYPE_CHECKING:
    import tokenizers
    import torch

__all__ = ["DummyCheckpoint", "open_config"]

SEED = 0


@dataclass(frozen=True, slots=True)
class DummyCheckpoint(Checkpoint):
    """A shape, with the tokenizer of the files it came from."""

    load_tokenizer: "Callable[[], tokenizers.Tokenizer | None]"

    load_format: ClassVar[str] = "dummy"

    def tensors(self, dtype: "torch.dtype", device: "torch.device") -> "dict[str, torch.Tensor]":
        """Normal weights of deviation 1 / sqrt(inputs), unit norms, zero biases; a device repeats its own."""
        import torch

        require_memory(self.shape, dtype, device)
        generator = torch.Generator(device).manual_seed(SEED)
        tensors: dict[str, torch.Tensor] = {}
        for name, size in llama_tensors(self.shape):
            tensor = torch.empty(size, dtype=dtype, device=device)
            if len(size) == 2:
                tensor.normal_(std=size[1] ** -0.5, generator=generator)
            else:
                tensor.fill_(0.0 if name.endswith(".bias") else 1.0)
            tensors[name] = tensor
        return tensors

    def tokenizer(self) -> "tokenizers.Tokenizer | None":
        """The tokenizer of the model whose shape this is; a bare configuration has none."""
        return self.load_tokenizer()

    def describe(self) -> dict[str, Any]:
        """What a trace says about the model, random weights and their seed included."""
        # A bare super() does not see the class that `slots=True` builds anew.
        return Checkpoint.describe(self) | {"weights": "random", "weights_seed": SEED}


def open_config(path: Path) -> DummyCheckpoint:
    """The shape in a `config.json` that stands alone."""
    config = read_json_object(path)
    shape = replace(ModelShape.from_hf_config(config, str(path)), name=display_name(path))
    return DummyCheckpoint(path, shape, read_token_ids(config, "eos_token_id", str(path)), lambda: None)
