"""What every file in the Trace Event Format is made of: events as text, and a file that is whole or absent.

Times are microseconds with three decimals, so that no nanosecond is lost.
"""

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

__all__ = ["event", "new_file", "write_events"]

_COMPRESSION = 6
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class _Bytes(Protocol):
    """What bytes are written to: a plain file or a compressed one."""

    def write(self, data: bytes, /) -> int: ...


def write_events(file: _Bytes, about: Mapping[str, Any], events: Iterable[str]) -> int:
    """Write a document: the entries of `about`, then `traceEvents`. Returns the number of events."""
    head = "".join(f"{_encode(key)}:{_encode(value)}," for key, value in about.items())
    file.write(f'{{{head}"traceEvents":['.encode())
    count = 0
    for count, text in enumerate(events, start=1):
        file.write(f"{',' if count > 1 else ''}\n{{{text}}}".encode())
    file.write(b"\n]}\n")
    return count


def event(
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
    """One event without its braces; times are nanoseconds."""
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
def new_file(path: Path) -> Iterator[_Bytes]:
    """A file, compressed if its name ends in .gz, that takes its place when all went well, else is gone."""
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
