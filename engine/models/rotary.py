"""Rotary position embedding, as complex multiplication of adjacent pairs.

Hugging Face's Llama rotates element i of a head together with element i + head_dim / 2. Here the rows of the
query and key projections are reordered once, so that the two lie side by side: scores are unchanged, and the
rotation of a whole batch is one multiplication.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch

from engine.errors import ModelError
from engine.models.gguf_layout import ROPE_FACTORS
from engine.shapes import ModelShape

__all__ = ["inverse_frequencies", "pair_rows", "rotary_table", "rotate_"]


def pair_rows(weight: torch.Tensor, head_dim: int) -> torch.Tensor:
    """Reorder the rows of a query or key projection (or its bias): i, i + head_dim / 2 become neighbours."""
    halves = weight.view(-1, 2, head_dim // 2, *weight.shape[1:])
    return halves.transpose(1, 2).reshape(weight.shape)


def rotate_(heads: torch.Tensor, rotations: torch.Tensor) -> None:
    """Rotate paired `heads` (tokens, heads, head_dim) in place by `rotations` (tokens, head_dim / 2)."""
    pairs = heads.view(*heads.shape[:2], -1, 2)
    factors = rotations.unsqueeze(1)
    if heads.dtype == torch.float32:
        torch.view_as_complex(pairs).mul_(factors)
    else:
        pairs.copy_(torch.view_as_real(torch.view_as_complex(pairs.float()).mul_(factors)))


def rotary_table(shape: ModelShape, length: int, device: torch.device) -> torch.Tensor:
    """(length, head_dim / 2) complex64: cos + i sin of each position's angles."""
    positions = torch.arange(length, dtype=torch.float32).unsqueeze(1)
    angles = positions * inverse_frequencies(shape)
    return torch.complex(angles.cos(), angles.sin()).to(device)


def inverse_frequencies(shape: ModelShape) -> torch.Tensor:
    """(head_dim / 2,) radians per position. Raises ModelError for an unknown kind of scaling."""
    exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.int64).float() / shape.head_dim
    plain = 1.0 / (shape.rope_theta**exponents)
    scaling = shape.rope_scaling
    if scaling is None:
        return plain
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind == "linear":
        return plain / _number(scaling, "factor", shape)
    if kind == "llama3":
        return _llama3(plain, scaling, shape)
    if kind == ROPE_FACTORS:
        return plain / _factors(scaling, shape)
    raise ModelError(
        f"{shape.name}: rope scaling {kind!r} is not supported: give a model with linear, llama3 or none"
    )


def _llama3(plain: torch.Tensor, scaling: Mapping[str, Any], shape: ModelShape) -> torch.Tensor:
    """Llama 3.1's scaling: long waves are stretched by `factor`, short ones kept, those between blended."""
    factor = _number(scaling, "factor", shape)
    low = _number(scaling, "low_freq_factor", shape)
    high = _number(scaling, "high_freq_factor", shape)
    old_context = _number(scaling, "original_max_position_embeddings", shape)
    if high <= low:
        raise ModelError(f"{shape.name}: rope high_freq_factor {high} must be above low_freq_factor {low}")
    turns = old_context * plain / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - kept) * plain / factor + kept * plain


def _factors(scaling: Mapping[str, Any], shape: ModelShape) -> torch.Tensor:
    """(head_dim / 2,) what a GGUF file has its frequencies divided by."""
    factors = scaling.get("factors")
    if not isinstance(factors, list) or not all(isinstance(f, float) and 0 < f < math.inf for f in factors):
        raise ModelError(
            f"{shape.name}: {ROPE_FACTORS} must hold finite numbers above 0: fetch the file again"
        )
    return torch.tensor(factors)


def _number(scaling: Mapping[str, Any], key: str, shape: ModelShape) -> float:
    value = scaling.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ModelError(f"{shape.name}: rope scaling needs {key} as a number above 0, not {value!r}")
    return float(value)
