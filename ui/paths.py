"""Checks of the places a command is to write, made before any long work."""

from pathlib import Path

from ui.errors import UserError

__all__ = ["SUFFIX", "check_new_trace", "make_empty_folder"]

SUFFIX = ".chunkscope"


def check_new_trace(path: Path) -> None:
    """Raise UserError unless a trace can be made at `path`. Makes its folder and takes it away again."""
    if path.suffix != SUFFIX:
        raise UserError(f"{path}: a trace's name ends in {SUFFIX}: give -o {_named(path)}")
    try:
        path.mkdir()
        path.rmdir()
    except FileExistsError:
        raise UserError(f"{path}: already exists: give another -o, or remove it first") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte
        if isinstance(error, FileNotFoundError) and not path.parent.is_dir():
            raise UserError(f"{path}: there is no folder {path.parent}: make it first") from None
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot be written: {reason}: give another -o") from None


def _named(path: Path) -> Path:
    return path / f"NAME{SUFFIX}" if path.name in ("", SUFFIX) else path.with_name(path.name + SUFFIX)


def make_empty_folder(folder: Path) -> None:
    """Make `folder` with those above it. Raises UserError if it holds anything or cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(f"{folder} is not empty: give another -o")
    except (OSError, ValueError) as error:  # ValueError: a null byte
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{folder}: cannot be made: {reason}: give another -o") from None
    check_new_trace(folder / f"probe{SUFFIX}")
