"""Reading a model's JSON files: an object, or one line that says what is wrong."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import ModelError

__all__ = ["read_json_object"]

LARGEST_FILE_BYTES = 64 * 2**20


def read_json_object(path: Path) -> Mapping[str, Any]:
    """The object in `path`. Raises ModelError if it cannot be read or holds anything else."""
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE_BYTES:
            raise ModelError(f"{path}: {size / 2**20:.0f} MiB is too large for a JSON file of a model")
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: is no valid JSON: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path}: holds {type(value).__name__}, not an object: give a model's config.json")
    return value
