"""A matrix of weights, ready to multiply."""

import platform
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

__all__ = ["Linear", "can_pack", "linear"]

Linear = Callable[[torch.Tensor], torch.Tensor]  # (tokens, in features) -> (tokens, out features)

# oneDNN lays the weights out for a number of input rows; every layout works for any other number. This one
# was the fastest, or within 5 % of it, from 1 row to 512.
PACKED_FOR_ROWS = 64


def can_pack(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether oneDNN can lay out weights of this type for its own kernels.

    They read packed weights in half the time that torch's default takes at a few rows, and lose nowhere.
    """
    return (
        device.type == "cpu"
        and platform.machine() in ("x86_64", "AMD64")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and (
            dtype == torch.float32
            or (dtype == torch.bfloat16 and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()))
        )
    )


def linear(weight: torch.Tensor, bias: torch.Tensor | None, *, packed: bool) -> Linear:
    """x -> x @ weight.T + bias, with `weight` (out, in) kept packed if so said (see `can_pack`).

    FlopCounterMode does not see packed products.
    """
    if not packed:
        return partial(F.linear, weight=weight, bias=bias)
    reordered = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_FOR_ROWS)

    def multiply(x: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, reordered, bias, "none", [], "")
        return product

    return multiply
