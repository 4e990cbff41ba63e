"""The scheduler's rules held against a trace in the background, once for as much of it as there is."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from profiler.invariants.check import check_trace
from profiler.invariants.report import CheckReport
from profiler.timeline.timeline import Timeline
from traces.errors import TraceError
from traces.reader import open_trace

__all__ = ["Check", "Checks"]


@dataclass(slots=True)
class Check:
    """A check that runs or has run; `report` or `error` is there once it is done."""

    started_s: float
    report: CheckReport | None = None
    error: str | None = None

    @property
    def done(self) -> bool:
        """Whether it came to an end."""
        return self.report is not None or self.error is not None

    @property
    def running_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.started_s


class Checks:
    """Checks by trace and number of forwards; each reads the trace by itself, so that nobody waits for it."""

    def __init__(self) -> None:
        self._checks: dict[tuple[Path, int], Check] = {}

    def ask(self, timeline: Timeline) -> Check:
        """The check of a trace as it stands; begun if there is none yet."""
        key = (timeline.path, timeline.num_forwards)
        found = self._checks.get(key)
        if found is None:
            found = self._checks[key] = Check(time.monotonic())
            threading.Thread(target=_run, args=(timeline.path, found), daemon=True).start()
        return found


def _run(path: Path, check: Check) -> None:
    try:
        check.report = check_trace(open_trace(path))
    except TraceError as error:
        check.error = str(error)
    finally:
        if not check.done:  # a defect: the thread's traceback goes to the terminal
            check.error = f"the check of {path} failed: run chunkscope check on it"
