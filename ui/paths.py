"""Checks of the places a command is to read or write, made before any long work."""

import os
from pathlib import Path

from ui.errors import UserError

__all__ = ["check_new_trace", "check_workload"]


def check_new_trace(path: Path) -> None:
    """Raise UserError unless a trace can be made at `path`: nothing there yet, and a folder to hold it."""
    if os.path.lexists(path):
        raise UserError(f"{path} exists: give another -o, or remove it first")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} does not exist: make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UserError(f"{path}: the folder {path.parent} is not writable: give -o in another folder")


def check_workload(path: Path) -> None:
    """Raise UserError unless `path` is a file that can be read."""
    if not path.is_file():
        raise UserError(f"{path}: no such file: --workload takes a file of JSON lines")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path} is not readable: change its permissions")
