"""From a path to a model on a device, and how large a KV pool fits beside it."""

from dataclasses import dataclass
from pathlib import Path

import torch

from engine.arithmetic import kv_bytes_per_token
from engine.errors import ConfigError, ModelError
from engine.models.checkpoint import Checkpoint, open_checkpoint
from engine.models.layout import require_computed
from engine.models.llama import LlamaModel
from engine.models.memory import free_bytes
from engine.models.rotary import inverse_frequencies
from engine.shapes import ModelShape
from engine.threads import apart

__all__ = ["DEVICES", "DTYPES", "LoadedModel", "default_max_total_tokens", "load_model"]

DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("auto", "float32", "bfloat16", "float16")

# A KV pool's share of the memory that the weights leave, and the full-length requests it should hold at most.
CUDA_POOL = (0.8, 64)  # the rest is for activations
CPU_POOL = (0.25, 4)  # the rest of the machine wants memory too, and filling a pool with zeros takes time


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run; one may serve any number of executors."""

    model: LlamaModel
    checkpoint: Checkpoint

    @property
    def shape(self) -> ModelShape:
        """The model's sizes."""
        return self.checkpoint.shape

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """Tokens that end an output unless a request ignores them."""
        return self.checkpoint.eos_token_ids

    @property
    def dtype(self) -> torch.dtype:
        """Element type of weights, activations and KV."""
        return self.model.dtype

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.model.device

    @property
    def weight_bytes(self) -> int:
        """Size of the parameters in this dtype, a tied head counted once."""
        return self.shape.num_params * self.dtype.itemsize


def load_model(
    path: Path, *, load_format: str = "auto", device: str = "auto", dtype: str = "auto"
) -> LoadedModel:
    """Read the model at `path` (see `open_checkpoint`) onto a device.

    `device` auto is cuda where torch finds a GPU; `dtype` auto is float32 on the CPU and bfloat16 on cuda.
    Raises ConfigError for a device or dtype that cannot be had, ModelError for a model that cannot be run.
    """
    device_ = _resolve_device(device)
    dtype_ = _resolve_dtype(dtype, device_)
    checkpoint = open_checkpoint(path, load_format)
    require_computed(checkpoint.shape, path)
    inverse_frequencies(checkpoint.shape)  # refuses an unknown rope scaling before the weights are read
    return LoadedModel(apart(lambda: _model(checkpoint, dtype_, device_)), checkpoint)


@torch.inference_mode()
def _model(checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device) -> LlamaModel:
    return LlamaModel(checkpoint.shape, checkpoint.tensors(dtype, device))


def default_max_total_tokens(loaded: LoadedModel, page_size: int) -> int:
    """KV pool size in tokens, whole pages, when the user gives none.

    What fits in a fixed share of the free memory, but no more than a few requests of the model's full length
    fill. Raises ModelError when not even one page fits.
    """
    free = free_bytes(loaded.device)
    share, requests = CUDA_POOL if loaded.device.type == "cuda" else CPU_POOL
    fitting = int(free * share) // kv_bytes_per_token(loaded.shape, loaded.dtype.itemsize)
    tokens = min(fitting, requests * loaded.shape.max_position_embeddings) // page_size * page_size
    if tokens < page_size:
        raise ModelError(
            f"{loaded.shape.name}: {free / 1e6:.0f} MB are free on {loaded.device} and hold no page of "
            f"{page_size} tokens: give a smaller model or page size"
        )
    return tokens


def _resolve_device(device: str) -> torch.device:
    if device not in DEVICES:
        raise ConfigError(f"--device {device!r} is not known: give {', '.join(DEVICES)}")
    has_gpu = torch.cuda.is_available()
    if device == "cuda" and not has_gpu:
        raise ConfigError("--device cuda: torch finds no CUDA GPU on this machine: give --device cpu")
    return torch.device("cuda" if has_gpu and device != "cpu" else "cpu")


def _resolve_dtype(dtype: str, device: torch.device) -> torch.dtype:
    if dtype not in DTYPES:
        raise ConfigError(f"--dtype {dtype!r} is not known: give {', '.join(DTYPES)}")
    if dtype == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
