"""A Llama model in a GGUF file: names, quantised blocks and row order turned into Hugging Face's."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.fields import read_token_ids
from engine.models.checkpoint import Checkpoint, display_name
from engine.models.gguf_header import GGUFHeader, GGUFTensor, read_header
from engine.models.gguf_layout import ROPE_FACTORS, gguf_name, gguf_shape
from engine.models.layout import llama_tensors
from engine.models.memory import require_memory
from engine.models.values import require_finite, require_in_range
from engine.shapes import ModelShape

if TYPE_CHECKING:
    import tokenizers
    import torch

__all__ = ["GGUFCheckpoint", "open_gguf"]


@dataclass(frozen=True, slots=True)
class GGUFCheckpoint(Checkpoint):
    """A GGUF file whose header has been read and holds every tensor of its shape."""

    header: GGUFHeader

    load_format: ClassVar[str] = "gguf"

    def tensors(self, dtype: "torch.dtype", device: "torch.device") -> "dict[str, torch.Tensor]":
        """All weights, dequantised one tensor at a time; q and k rows in Hugging Face order."""
        import torch

        require_memory(self.shape, dtype, device)
        heads = {"q_proj": self.shape.num_heads, "k_proj": self.shape.num_kv_heads}
        tensors: dict[str, torch.Tensor] = {}
        for name, _ in llama_tensors(self.shape):
            tensor = torch.from_numpy(_dequantised(self.path, self.header.tensors[gguf_name(name)]))
            require_finite(tensor, name, self.path)
            projection = name.split(".")[-2]
            if projection in heads:
                tensor = _unpermuted(tensor, heads[projection])
            tensors[name] = tensor.to(device, dtype)
            require_in_range(tensors[name], name, self.path)
        return tensors

    def tokenizer(self) -> "tokenizers.Tokenizer | None":
        """The tokenizer in the metadata, None if there is none; ModelError if it is of an unknown kind."""
        from engine.models.gguf_tokenizer import build_tokenizer

        return build_tokenizer(self.header.metadata, self.path)

    def describe(self) -> dict[str, Any]:
        """What a trace says about the model, with the number of tensors of each storage type."""
        # A bare super() does not see the class that `slots=True` builds anew.
        return Checkpoint.describe(self) | {"weights": _storage_types(self.header)}


def open_gguf(path: Path, dummy: bool) -> Checkpoint:
    """The GGUF file at `path`, or with `dummy` its shape and tokenizer alone.

    Raises ModelError if it is damaged, of another architecture, or lacks a tensor.
    """
    header = read_header(path)
    shape = replace(gguf_shape(header, str(path)), name=display_name(path))
    if ROPE_FACTORS in header.tensors:
        shape = _with_rope_factors(shape, path, header.tensors[ROPE_FACTORS])
    eos = [
        read_token_ids(header.metadata, f"tokenizer.ggml.{key}_token_id", str(path)) for key in ("eos", "eot")
    ]
    checkpoint = GGUFCheckpoint(path, shape, eos[0] | eos[1], header)
    if dummy:
        from engine.models.dummy import DummyCheckpoint

        return DummyCheckpoint(path, shape, checkpoint.eos_token_ids, checkpoint.tokenizer)
    _check_tensors(checkpoint)
    return checkpoint


def _with_rope_factors(shape: ModelShape, path: Path, tensor: GGUFTensor) -> ModelShape:
    if tensor.shape != (shape.head_dim // 2,):
        raise ModelError(
            f"{path}: tensor {tensor.name} is {list(tensor.shape)}, not one factor a rotary frequency, "
            f"[{shape.head_dim // 2}]: fetch the file again"
        )
    factors = _dequantised(path, tensor).tolist()
    return replace(shape, rope_scaling={**(shape.rope_scaling or {}), "factors": factors})


def _check_tensors(checkpoint: GGUFCheckpoint) -> None:
    for name, size in llama_tensors(checkpoint.shape):
        tensor = checkpoint.header.tensors.get(gguf_name(name))
        if tensor is None:
            raise ModelError(f"{checkpoint.path}: tensor {gguf_name(name)} is missing: fetch the file again")
        if tensor.shape != size:
            raise ModelError(
                f"{checkpoint.path}: tensor {tensor.name} is {list(tensor.shape)}, not {list(size)} "
                "as the metadata says: fetch the file again"
            )


def _storage_types(header: GGUFHeader) -> dict[str, int]:
    from gguf import GGMLQuantizationType

    return dict(Counter(GGMLQuantizationType(tensor.type_id).name for tensor in header.tensors.values()))


def _dequantised(path: Path, tensor: GGUFTensor) -> NDArray[np.float32]:
    """(shape,) in float32."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    try:
        with path.open("rb") as file:
            file.seek(tensor.offset)
            blocks = np.fromfile(file, np.uint8, tensor.num_bytes)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(blocks) != tensor.num_bytes:
        raise ModelError(f"{path}: grew shorter while it was read: fetch the file again")
    kind = GGMLQuantizationType(tensor.type_id)
    rows = blocks.reshape(*tensor.shape[:-1], -1)
    try:
        with np.errstate(all="ignore"):
            values: NDArray[np.float32] = dequantize(rows, kind)
    except NotImplementedError as error:
        raise ModelError(
            f"{path}: tensor {tensor.name} of type {kind.name} is not supported: convert it"
        ) from error
    return values


def _unpermuted(tensor: "torch.Tensor", num_heads: int) -> "torch.Tensor":
    """Rows from llama.cpp's order, each head's rotary pairs side by side, into halves after one another."""
    half = tensor.shape[0] // num_heads // 2
    return tensor.reshape(num_heads, half, 2, -1).transpose(1, 2).reshape(tensor.shape)
