"""Attributes of an HTML element whose names Python cannot write as keywords."""

from typing import Any

__all__ = ["aria", "data"]


def aria(**values: str) -> dict[str, Any]:
    """aria-label for `label`, and so on."""
    return {f"aria-{name}": value for name, value in values.items()}


def data(**values: str | int) -> dict[str, Any]:
    """data-act for `act`, and so on."""
    return {f"data-{name}": value for name, value in values.items()}
