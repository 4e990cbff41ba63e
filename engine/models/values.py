"""What the values of weights must be."""

from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ModelError

if TYPE_CHECKING:
    import torch

__all__ = ["require_finite", "require_in_range"]


def require_finite(tensor: "torch.Tensor", name: str, source: Path) -> None:
    """Raise ModelError if weights do not add up to a finite number, as damaged bytes often make them."""
    if not _add_up(tensor):
        raise ModelError(
            f"{source}: tensor {name} holds values that are no finite numbers: fetch the file again"
        )


def require_in_range(tensor: "torch.Tensor", name: str, source: Path) -> None:
    """Raise ModelError if finite weights became infinite in the type they were converted to."""
    import torch

    if tensor.dtype == torch.float16 and not _add_up(tensor):
        raise ModelError(
            f"{source}: tensor {name} holds values beyond {torch.finfo(torch.float16).max:.0f}, "
            "float16's largest: give --dtype bfloat16"
        )


def _add_up(tensor: "torch.Tensor") -> bool:
    import torch

    # In float32: sound float16 weights may add up to more than float16 holds.
    return bool(tensor.sum(dtype=torch.float32).isfinite())
