"""Loads a model for a command, saying so on a terminal."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from engine.models.loader import LoadedModel

__all__ = ["load"]


def load(
    console: Console, model: Path, *, load_format: str, device: str, dtype: str, threads: int | None
) -> "LoadedModel":
    """Set torch's threads, then read the model; errors as `load_model` raises them."""
    import torch

    from engine.models.loader import load_model

    if threads is not None:
        torch.set_num_threads(threads)
    with console.status(f"loading {model}"):
        return load_model(model, load_format=load_format, device=device, dtype=dtype)
