"""A graph on the CPU: every operator of the recorded work is run again on the same memory."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engine.executors.capture import CapturedGraph

__all__ = ["RecordedGraphs"]


class RecordedGraphs:
    """A Capture like CUDA's: Python runs once, results of a replay lie where those of the recording lay."""

    def __init__(self) -> None:
        self.captures = 0
        self.replays = 0

    def __call__(self, work: Callable[[], None]) -> CapturedGraph:
        self.captures += 1
        work()
        recording = _Recording()
        with recording:
            work()

        def replay() -> None:
            self.replays += 1
            recording.replay()

        return CapturedGraph(replay, held_bytes=1 << 40)


class _Recording(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self._calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # the signature is torch's
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self._calls.append((func, args, kwargs, out))
        return out

    def replay(self) -> None:
        for func, args, kwargs, out in self._calls:
            for kept, new in zip(tree_leaves(out), tree_leaves(func(*args, **kwargs)), strict=True):
                if isinstance(kept, torch.Tensor) and kept.data_ptr() != new.data_ptr():
                    kept.copy_(new)
