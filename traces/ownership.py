"""Who may change a trace's directory: one process at a time, the writer as long as it lives.

The lock is the system's own (flock on the directory): it ends with the process however that dies, and holds
across containers. It says nothing about other machines, so a directory is only taken over on the machine, and
in the boot, in which it was written.
"""

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["DirectoryLock", "may_have_writer", "this_process", "written_on_this_boot"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_START_TIME_FIELD = 19  # of /proc/PID/stat, counted after the command's closing parenthesis


class DirectoryLock:
    """An exclusive lock on a directory; `held` is False if another process has it or the system has none."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.held = True
        except OSError:
            self.held = False

    def release(self) -> None:
        """Give the lock up, also on behalf of forked children."""
        if self._descriptor >= 0:
            if self.held:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
        self._descriptor, self.held = -1, False


def this_process() -> dict[str, Any]:
    """Identity of this process for meta.json: pid, its start in clock ticks since boot, the boot's id."""
    return {"pid": os.getpid(), "start_ticks": _start_ticks(), "boot_id": _boot_id()}


def written_on_this_boot(meta: Mapping[str, Any]) -> bool:
    """Whether the trace's writer ran on this machine since it was last started."""
    writer = meta.get("writer")
    return isinstance(writer, dict) and "boot_id" in writer and writer["boot_id"] == _boot_id()


def may_have_writer(trace: Path, meta: Mapping[str, Any]) -> bool:
    """Whether a process may be writing the trace; True too where that cannot be told."""
    if not written_on_this_boot(meta):
        return True
    try:
        lock = DirectoryLock(trace)
    except OSError:
        return True
    free = lock.held
    lock.release()
    return not free


def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _start_ticks() -> int | None:
    try:
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[_START_TIME_FIELD])
