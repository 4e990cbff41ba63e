"""A log directory for TensorBoard: the folder of a run in it, and how it is looked at."""

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from ui.errors import UserError

__all__ = ["how_to_look", "run_folder"]

_INSTALL = "pip install tensorboard torch-tb-profiler==0.4.3"


@contextmanager
def run_folder(log_directory: Path, run: str) -> Iterator[Path]:
    """A new folder for a run, gone again if it cannot be filled. UserError if it exists or cannot be made."""
    folder = log_directory / run
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UserError(f"{folder}: already exists: give another -o, or remove it first") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{folder}: cannot be made: {reason}: give another -o") from None
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def how_to_look(log_directory: Path) -> str:
    """A line that says it, with what is missing first."""
    missing = any(find_spec(name) is None for name in ("tensorboard", "torch_tb_profiler"))
    first = f"{_INSTALL}, then " if missing else ""
    return f"to look at it: {first}tensorboard --logdir {shlex.quote(str(log_directory))}"
