"""Measuring until time is up: what is left out is said."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

__all__ = ["Deadline"]

Point = TypeVar("Point")


class Deadline:
    """Ends a phase's work early enough that what it has measured is kept."""

    def __init__(self, seconds: float) -> None:
        self._end_s = time.monotonic() + seconds
        self.left_out: list[str] = []

    def within(self, points: Sequence[Point]) -> Iterator[Point]:
        """The points, as long as time is left for one that takes as long as the longest so far."""
        longest_s = 0.0
        for at, point in enumerate(points):
            start_s = time.monotonic()
            if start_s + longest_s > self._end_s:
                self.left_out += [str(later) for later in points[at:]]
                print(f"no time is left for {', '.join(self.left_out)}", file=sys.stderr)
                return
            yield point
            longest_s = max(longest_s, time.monotonic() - start_s)
