"""What captures work on a device, and what it gives: a graph that repeats the work without the host."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Capture", "CapturedGraph"]


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """Recorded work."""

    replay: Callable[[], None]
    held_bytes: int  # what it computes in


class Capture(Protocol):
    """Records what a function does on the device."""

    def __call__(self, work: Callable[[], None]) -> CapturedGraph:
        """`work` must read and write memory that stays in place.

        It may be run on the way, any number of times: what it leaves there must not matter until a replay.
        """
        ...
