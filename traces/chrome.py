"""Writes a drawing as a Chrome trace: JSON that Perfetto and chrome://tracing open.

The format is the Trace Event Format: a process per rank, a thread per track. Times are microseconds with
three decimals, so that no nanosecond is lost. Items are written as they come and none is kept.
"""

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from traces.chrome_threads import Threads
from traces.drawing import Counter, Flow, Instant, Item, Slice
from traces.errors import TraceError

__all__ = ["check_new", "write_chrome"]

_SUFFIXES = (".json", ".json.gz")
_COMPRESSION = 6
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_TO_THREAD = {"s": "t"}  # an instant's scope
_ENCLOSING = {"bp": "e"}  # an arrow ends at the slice around its moment, not at the next one


class _Bytes(Protocol):
    """What bytes are written to: a plain file or a compressed one."""

    def write(self, data: bytes, /) -> int: ...


def check_new(path: Path) -> None:
    """TraceError if no Chrome trace can be begun here: another suffix, or something that exists."""
    if not path.name.endswith(_SUFFIXES):
        raise TraceError(f"{path}: a Chrome trace's name ends in {' or '.join(_SUFFIXES)}: give {path}.json")
    if os.path.lexists(path):
        raise TraceError(f"{path}: already exists: give another name, or remove it first")


def write_chrome(path: Path, items: Iterable[Item], about: Mapping[str, Any]) -> int:
    """Write a new file, compressed if its name ends in .gz; returns the number of events.

    `about` becomes the file's metadata. It is written beside and renamed when it is complete, so that nothing
    half is left. TraceError as in `check_new`, and for a file that cannot be written.
    """
    check_new(path)
    try:
        with _beside(path) as file:
            return _write(file, items, about)
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error.strerror}: give another place") from error


def _write(file: _Bytes, items: Iterable[Item], about: Mapping[str, Any]) -> int:
    file.write(f'{{"displayTimeUnit":"ms","otherData":{_encode(about)},"traceEvents":['.encode())
    count = 0
    for count, event in enumerate(_events(items), start=1):
        file.write(f"{',' if count > 1 else ''}\n{{{event}}}".encode())
    file.write(b"\n]}\n")
    return count


def _events(items: Iterable[Item]) -> Iterator[str]:
    """Each item's events, and before a thread's first one those that name it."""
    threads = Threads()
    for item in items:
        events = _events_of(item, threads)
        for pid, tid, name, args in threads.take_new():
            yield _event("M", name, pid, tid, args=args)
        yield from events


def _events_of(item: Item, threads: Threads) -> list[str]:
    match item:
        case Slice(track, name, start_ns, end_ns, args):
            place = threads.place(track, start_ns, end_ns)
            return [_event("X", name, *place, ts=start_ns, dur=end_ns - start_ns, args=args)]
        case Instant(track, name, t_ns, args):
            return [_event("i", name, *threads.main(track), ts=t_ns, more=_TO_THREAD, args=args)]
        case Counter(rank, name, t_ns, values):
            return [_event("C", name, threads.process(rank), 0, ts=t_ns, args=values)]
        case Flow(number, name, source, source_ns, target, target_ns):
            same = {"cat": "flow", "id": number}
            end = same | _ENCLOSING
            return [
                _event("s", name, *threads.main(source), ts=source_ns, more=same),
                _event("f", name, *threads.main(target), ts=target_ns, more=end),
            ]


def _event(
    phase: str,
    name: str,
    pid: int,
    tid: int,
    *,
    ts: int | None = None,
    dur: int | None = None,
    more: Mapping[str, Any] | None = None,
    args: Mapping[str, Any] | None = None,
) -> str:
    """One event without its braces."""
    times = "" if ts is None else f',"ts":{_microseconds(ts)}'
    if dur is not None:
        times += f',"dur":{_microseconds(dur)}'
    rest = "".join(f',"{key}":{_encode(value)}' for key, value in (more or {}).items())
    if args:
        rest += f',"args":{_encode(args)}'
    return f'"ph":"{phase}","name":{_encode(name)},"pid":{pid},"tid":{tid}{times}{rest}'


def _microseconds(t_ns: int) -> str:
    """Exactly: a float could not hold the nanoseconds of a long run."""
    whole, part = divmod(abs(t_ns), 1000)
    return f"{'-' if t_ns < 0 else ''}{whole}.{part:03d}"


@contextmanager
def _beside(path: Path) -> Iterator[_Bytes]:
    """A new file that takes its place when all went well, and is gone otherwise."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with beside.open("xb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as file:
                    yield file
            else:
                yield raw
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
