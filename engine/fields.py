"""Single values out of a model's configuration: present, of the right kind and in range, or refused."""

import math
from collections.abc import Mapping
from typing import Any

from engine.errors import ModelError

__all__ = ["read_flag", "read_positive", "read_size", "read_token_ids", "shown"]

LARGEST_SIZE = 2**31 - 1


def read_size(config: Mapping[str, Any], key: str, source: str, default: int | None = None) -> int:
    """The whole number of at least 1 under `key`; `default` where it is left out or null.

    `source` is what the ModelError calls the configuration. Without a default the value must be there.
    """
    value = config.get(key)
    if value is None:
        if default is None:
            raise ModelError(f"{source}: {key} is missing: it must be given")
        value = default
    if not _is_int(value) or not 1 <= value <= LARGEST_SIZE:
        raise ModelError(f"{source}: {key} is {shown(value)}: it must be a whole number of at least 1")
    return int(value)


def read_positive(config: Mapping[str, Any], key: str, source: str, default: float) -> float:
    """The finite number above 0 under `key`; `default` where it is left out or null."""
    value = config.get(key)
    if value is None:
        return default
    if (isinstance(value, float) or _is_int(value)) and 0 < value < 1e30:
        return float(value)
    raise ModelError(f"{source}: {key} is {shown(value)}: it must be a finite number above 0")


def read_flag(config: Mapping[str, Any], key: str, source: str) -> bool:
    """The truth value under `key`; false where it is left out or null."""
    value = config.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise ModelError(f"{source}: {key} is {shown(value)}: it must be true or false")
    return value


def read_token_ids(config: Mapping[str, Any], key: str, source: str) -> frozenset[int]:
    """The token id or list of token ids under `key`; empty where it is left out or null."""
    value = config.get(key)
    ids = [] if value is None else value if isinstance(value, list) else [value]
    if not all(_is_int(i) and 0 <= i <= LARGEST_SIZE for i in ids):
        raise ModelError(f"{source}: {key} is {shown(value)}: it must be a token id or a list of them")
    return frozenset(ids)


def shown(value: object) -> str:
    """`value` cut to what fits in a one-line message."""
    if isinstance(value, int) and abs(value) > LARGEST_SIZE:
        return f"a number of {math.floor(value.bit_length() * math.log10(2)) + 1} digits"
    text = (
        repr(value) if isinstance(value, (str, int, float, type(None))) else f"of type {type(value).__name__}"
    )
    return text if len(text) <= 40 else text[:37] + "..."


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
