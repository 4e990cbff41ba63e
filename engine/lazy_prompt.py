"""`LazyPrompt`: a prompt that takes no memory until its request arrives."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["LazyPrompt"]


class LazyPrompt(Sequence[int]):
    """Token ids that are made anew whenever they are read, all of them at once."""

    __slots__ = ("_length", "_make")

    def __init__(self, length: int, make: Callable[[], "array[int]"]) -> None:
        """`make` gives the `length` ids, the same each time."""
        self._length = length
        self._make = make

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return iter(self._make())

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> "array[int]": ...
    def __getitem__(self, index: int | slice) -> "int | array[int]":
        return self._make()[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """numpy reads all ids at once; they are new, so there is nothing to copy."""
        return np.frombuffer(self._make(), dtype=np.int32).astype(dtype or np.int32, copy=False)
