"""Ctrl-C that lets a forward end, so that what was recorded is whole."""

import signal
import threading
import time
from types import FrameType, TracebackType

from engine.clock import MonotonicClock
from ui.errors import Interrupted

__all__ = ["PatientClock", "StopRequest"]

SLICE_NS = 50_000_000


class StopRequest:
    """While entered, the first Ctrl-C only asks; `check` raises Interrupted where stopping is safe.

    A second Ctrl-C stops at once. Off the main thread, where no handler can be set, it does nothing.
    """

    def __init__(self) -> None:
        self._asked = False
        self._previous: signal.Handlers | object = None

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)  # type: ignore[arg-type]

    def check(self) -> None:
        """Raise Interrupted if Ctrl-C was pressed."""
        if self._asked:
            raise Interrupted("interrupted")

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


class PatientClock(MonotonicClock):
    """The monotonic clock, whose waits end with Interrupted when Ctrl-C is pressed."""

    def __init__(self, stop: StopRequest) -> None:
        super().__init__()
        self._stop = stop

    def restart(self, in_ns: int) -> None:
        """Let time 0 be `in_ns` from now; until then the clock is negative."""
        self.origin_monotonic_ns = time.monotonic_ns() + in_ns
        self.origin_wall_ns = time.time_ns() + in_ns

    def wait_until(self, t_ns: int) -> None:
        """Sleep until `t_ns` in slices; returns at once if that is past."""
        while (delay_ns := t_ns - self.now_ns()) > 0:
            self._stop.check()
            time.sleep(min(delay_ns, SLICE_NS) / 1e9)
