"""The engine's one clock: integer nanoseconds since the run's start."""

import time
from typing import Protocol

__all__ = ["Clock", "MonotonicClock", "VirtualClock"]


class Clock(Protocol):
    """Where every time in a record comes from."""

    def now_ns(self) -> int:
        """Nanoseconds since the run's start."""
        ...

    def wait_until(self, t_ns: int) -> None:
        """Return no earlier than `t_ns` (a virtual clock jumps there)."""
        ...


class MonotonicClock:
    """The host's monotonic clock, counted from the moment of construction."""

    def __init__(self) -> None:
        self.origin_monotonic_ns = time.monotonic_ns()
        self.origin_wall_ns = time.time_ns()

    def now_ns(self) -> int:
        """Nanoseconds since construction."""
        return time.monotonic_ns() - self.origin_monotonic_ns

    def wait_until(self, t_ns: int) -> None:
        """Sleep until `t_ns`; returns at once if that is past."""
        delay_ns = t_ns - self.now_ns()
        if delay_ns > 0:
            time.sleep(delay_ns / 1e9)


class VirtualClock:
    """A clock that stands still until it is waited on, for forwards that are simulated."""

    def __init__(self) -> None:
        self._now_ns = 0

    def now_ns(self) -> int:
        """Nanoseconds of simulated time."""
        return self._now_ns

    def wait_until(self, t_ns: int) -> None:
        """Jump to `t_ns`; nothing happens if that is past."""
        self._now_ns = max(self._now_ns, t_ns)
