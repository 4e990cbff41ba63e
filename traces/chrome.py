"""Writes a drawing as a Chrome trace: JSON that Perfetto and chrome://tracing open.

The format is the Trace Event Format: a process per rank, a thread per track. Times are microseconds with
three decimals, so that no nanosecond is lost. Items are written as they come and none is kept.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from traces.chrome_threads import Threads
from traces.drawing import Counter, Flow, Instant, Item, Slice
from traces.errors import TraceError
from traces.trace_events import event, new_file, write_events

__all__ = ["check_new", "write_chrome"]

_SUFFIXES = (".json", ".json.gz")
_TO_THREAD = {"s": "t"}  # an instant's scope
_ENCLOSING = {"bp": "e"}  # an arrow ends at the slice around its moment, not at the next one


def check_new(path: Path) -> None:
    """TraceError if no Chrome trace can be begun here: another suffix, or something that exists."""
    if not path.name.endswith(_SUFFIXES):
        raise TraceError(f"{path}: a Chrome trace's name ends in {' or '.join(_SUFFIXES)}: give {path}.json")
    if os.path.lexists(path):
        raise TraceError(f"{path}: already exists: give another name, or remove it first")


def write_chrome(path: Path, items: Iterable[Item], about: Mapping[str, Any]) -> int:
    """Write a new file, compressed if its name ends in .gz; returns the number of events.

    `about` becomes the file's metadata; a provenance that is not "measured" also stands beside each rank's
    name, where a viewer shows it. The file is written beside and renamed when it is complete, so that nothing
    half is left. TraceError as in `check_new`, and for a file that cannot be written.
    """
    check_new(path)
    try:
        with new_file(path) as file:
            source = about.get("provenance")
            note = f" ({source})" if source not in (None, "measured") else ""
            return write_events(file, {"displayTimeUnit": "ms", "otherData": about}, _events(items, note))
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error.strerror}: give another place") from error


def _events(items: Iterable[Item], note: str) -> Iterator[str]:
    """Each item's events, and before a thread's first one those that name it; `note` follows its process."""
    threads = Threads(note)
    for item in items:
        events = _events_of(item, threads)
        for pid, tid, name, args in threads.take_new():
            yield event("M", name, pid, tid, args=args)
        yield from events


def _events_of(item: Item, threads: Threads) -> list[str]:
    match item:
        case Slice(track, name, start_ns, end_ns, args):
            place = threads.place(track, start_ns, end_ns)
            return [event("X", name, *place, ts=start_ns, dur=end_ns - start_ns, args=args)]
        case Instant(track, name, t_ns, args):
            return [event("i", name, *threads.main(track), ts=t_ns, more=_TO_THREAD, args=args)]
        case Counter(rank, name, t_ns, values):
            return [event("C", name, threads.process(rank), 0, ts=t_ns, args=values)]
        case Flow(number, name, source, source_ns, target, target_ns):
            same = {"cat": "flow", "id": number}
            end = same | _ENCLOSING
            return [
                event("s", name, *threads.main(source), ts=source_ns, more=same),
                event("f", name, *threads.main(target), ts=target_ns, more=end),
            ]
