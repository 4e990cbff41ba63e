"""What a refusal must look like, and ways to damage a file."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.errors import ModelError

__all__ = ["flips", "refused", "refused_or_fine"]


def refused(action: Callable[[], object], *named: str) -> None:
    """`action` raises ModelError with a text of one line that holds each of `named`."""
    with pytest.raises(ModelError) as caught:
        action()
    text = str(caught.value)
    assert "\n" not in text
    assert all(part in text for part in named), text


def refused_or_fine(action: Callable[[], object]) -> bool:
    """Whether `action` refused; a refusal has one line, and nothing else may be raised."""
    try:
        action()
    except ModelError as error:
        text = str(error)
    else:
        return False
    assert text
    assert "\n" not in text
    return True


def flips(path: Path, offsets: range, masks: tuple[int, ...] = (0x01, 0x80)) -> Iterator[int]:
    """Flip bits of one byte of `path` after another, each put back before the next; yields the offset."""
    for offset in offsets:
        for mask in masks:
            with path.open("r+b") as file:
                file.seek(offset)
                (byte,) = file.read(1)
                file.seek(offset)
                file.write(bytes([byte ^ mask]))
            yield offset
            with path.open("r+b") as file:
                file.seek(offset)
                file.write(bytes([byte]))
