"""Which thread of a Chrome trace each slice of a track goes to: on one thread, slices nest or are apart."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from traces.drawing import Track

__all__ = ["Threads"]

_TIDS_A_RANK = 100_000_000  # viewers take threads of one id for one thread, whatever their processes
_FURTHER = _TIDS_A_RANK // 2


class _Level:
    """A thread of a track, and the ends of its slices that are still open, outermost first."""

    def __init__(self, tid: int) -> None:
        self.tid = tid
        self._begun_ns: int | None = None
        self._open_ends: list[int] = []

    def takes(self, start_ns: int, end_ns: int) -> bool:
        """Put a slice here if it lies inside the slices around it."""
        if self._begun_ns is not None and start_ns < self._begun_ns:
            return False
        ends = self._open_ends
        while ends and ends[-1] <= start_ns:
            ends.pop()
        if ends and ends[-1] < end_ns:
            return False
        ends.append(end_ns)
        self._begun_ns = start_ns
        return True


class Named(NamedTuple):
    """A metadata event: what a process or thread is called, or where it stands."""

    pid: int
    tid: int
    kind: str
    args: Mapping[str, Any]


class Threads:
    """Numbers processes and threads; a slice that would overlap another gets a further thread."""

    def __init__(self, note: str = "") -> None:
        self._note = note  # after the name of each process
        self._levels: dict[Track, list[_Level]] = {}
        self._ranks: set[int] = set()
        self._new: list[Named] = []
        self._further = 0

    def process(self, rank: int) -> int:
        """A rank's process id, from 1: viewers take process 0 for the idle one."""
        pid = rank + 1
        if rank not in self._ranks:
            self._ranks.add(rank)
            self._new.append(Named(pid, 0, "process_name", {"name": f"rank {rank}{self._note}"}))
            self._new.append(Named(pid, 0, "process_sort_index", {"sort_index": rank}))
        return pid

    def main(self, track: Track) -> tuple[int, int]:
        """Process and first thread of a track."""
        return self.process(track.rank), self._level(track, 0).tid

    def place(self, track: Track, start_ns: int, end_ns: int) -> tuple[int, int]:
        """Process and thread of a slice; a track's slices come in order of start, the longer first."""
        pid, number = self.process(track.rank), 0
        while not self._level(track, number).takes(start_ns, end_ns):
            number += 1
        return pid, self._level(track, number).tid

    def take_new(self) -> Iterator[Named]:
        """Names of what has appeared since the last call."""
        new, self._new = self._new, []
        return iter(new)

    def _level(self, track: Track, number: int) -> _Level:
        levels = self._levels.setdefault(track, [])
        if number == len(levels):
            tid = self._new_tid(track, number)
            levels.append(_Level(tid))
            name = track.name if number == 0 else f"{track.name} ({number + 1})"
            pid = self.process(track.rank)
            self._new.append(Named(pid, tid, "thread_name", {"name": name}))
            self._new.append(Named(pid, tid, "thread_sort_index", {"sort_index": track.order}))
        return levels[number]

    def _new_tid(self, track: Track, number: int) -> int:
        """In the order of the tracks, from 1, since some viewers sort by it; further threads come last."""
        first = track.rank * _TIDS_A_RANK + 1
        if number == 0:
            return first + track.order
        self._further += 1
        return first + _FURTHER + self._further
