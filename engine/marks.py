"""Marks in a forward's code that say which operator computes from here on.

They cost a look at one variable, unless a profiler watches: then each becomes a range of torch.profiler, and
whatever runs in it, kernels of a GPU included, is found under its name.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from engine.operators import MARK_PREFIX, Operator

__all__ = ["mark", "marks_watched"]


class _Watched:
    """The range that is open; ranges follow one another and never nest."""

    def __init__(self) -> None:
        self._open = ExitStack()

    def begin(self, operator: Operator, layer: int | None) -> None:
        self.end()
        name = f"{MARK_PREFIX}{operator.name}:{'' if layer is None else layer}"
        self._open.enter_context(torch.profiler.record_function(name))

    def end(self) -> None:
        self._open.close()


_watched: _Watched | None = None  # one thread at a time computes forwards


def mark(operator: Operator, layer: int | None = None) -> None:
    """From here to the next mark, what this thread computes belongs to `operator` of `layer`."""
    if _watched is not None:
        _watched.begin(operator, layer)


@contextmanager
def marks_watched() -> Iterator[None]:
    """Let marks become ranges of the profiler that is running."""
    global _watched
    _watched = watched = _Watched()
    try:
        yield
    finally:
        _watched = None
        watched.end()
