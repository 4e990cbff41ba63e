"""How to call this program from the shell of the person who reads it."""

import os
import shutil
import sys
from pathlib import Path

__all__ = ["program"]

_NAME = "chunkscope"


def program() -> str:
    """`chunkscope` where the shell would find this one, else the path of its script."""
    script = Path(sys.executable).with_name(_NAME)
    found = shutil.which(_NAME)
    if not script.exists() or (found is not None and Path(found).resolve() == script.resolve()):
        return _NAME
    return os.path.relpath(script) if script.is_relative_to(Path.cwd()) else str(script)
