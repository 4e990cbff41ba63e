"""Keeps a sealed trace's index on disk, so that the second opening computes nothing.

It lies in the trace's directory, or in the user's cache where that cannot be written, and is used only for
the very trace it was made of: its key is the seal index's checksum and the size of every file.
"""

import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from profiler.forward_table import ForwardTable
from profiler.latency import Spread
from profiler.pyramid import Level, Pyramid
from profiler.request_rows import RequestRows
from profiler.timeline.array_file import read_arrays, write_arrays
from profiler.timeline.delays import Delays
from profiler.timeline.index import Index, build_index
from profiler.timeline.kpis import Kpis
from profiler.timeline.lifecycle import Lifecycle
from traces.reader import Trace, open_trace

__all__ = ["cache_key", "load_index"]

FORMAT = 6  # raise it whenever what an index holds, or means, changes
NAME = "timeline.cache"

_LEVEL = ("bounds", "bucket", "count", "busy_ns", "longest")
_PLAIN = ("emitted", "mixed_extra_ns")
_PARTS = {"forwards": ForwardTable, "rows": RequestRows, "lifecycle": Lifecycle, "delays": Delays}

Arrays = dict[str, NDArray[Any]]


def load_index(trace: Trace) -> Index:
    """The index of a trace: of a sealed one from disk where it is there and sound, else computed and kept."""
    if not trace.sealed:
        return build_index(trace)
    key = cache_key(trace)
    places = [trace.path / NAME, _user_cache() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.cache"]
    for place in places:
        arrays = read_arrays(place, key)
        if arrays is not None:
            with suppress(KeyError, ValueError, TypeError, pl.exceptions.PolarsError):  # of another program
                return _unpacked(arrays)
    index = build_index(open_trace(trace.path))  # its own reader, so that the whole tables are let go
    _keep(index, key, places)
    return index


def _keep(index: Index, key: str, places: list[Path]) -> None:
    """In the first place that can be written; none is needed."""
    arrays = _packed(index)
    for place in places:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(place, key, arrays)
            return
        except OSError:
            continue


def cache_key(trace: Trace) -> str:
    """What tells a sealed trace from every other."""
    sizes = sorted(
        f"{file.relative_to(trace.path)}={file.stat().st_size}" for file in trace.path.glob("rank-*/*")
    )
    return " ".join([f"format={FORMAT}", f"index={trace.meta['sealed'].get('index_crc32')}", *sizes])


def _user_cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or ""
    return (Path(root) if Path(root).is_absolute() else Path.home() / ".cache") / "chunkscope" / "timelines"


def _packed(index: Index) -> Arrays:
    arrays: Arrays = {name: getattr(index, name) for name in _PLAIN}
    for part, kind in _PARTS.items():
        arrays |= {f"{part}.{name}": getattr(getattr(index, part), name) for name in _columns(kind)}
    for number, level in enumerate(index.pyramid.levels):
        arrays |= {f"level-{number}.{name}": getattr(level, name) for name in _LEVEL}
    with io.BytesIO() as buffer:
        index.stalls.write_ipc(buffer)
        arrays["stalls"] = np.frombuffer(buffer.getvalue(), dtype=np.uint8)
    rest = {
        "start_ns": index.start_ns,
        "end_ns": index.end_ns,
        "untimed": index.forwards.untimed,
        "shifts": [level.shift for level in index.pyramid.levels],
        "worst": index.worst,
        "kpis": asdict(index.kpis),
    }
    arrays["rest"] = np.frombuffer(json.dumps(rest).encode(), dtype=np.uint8)
    return arrays


def _unpacked(arrays: Arrays) -> Index:
    rest = json.loads(arrays["rest"].tobytes())
    numbers = rest["kpis"]
    numbers |= {name: Spread(**numbers[name]) for name in ("ttft_s", "itl_s")}
    levels = [
        Level(shift, *(arrays[f"level-{number}.{name}"] for name in _LEVEL))
        for number, shift in enumerate(rest["shifts"])
    ]
    return Index(
        start_ns=rest["start_ns"],
        end_ns=rest["end_ns"],
        forwards=ForwardTable(**_part(arrays, "forwards"), untimed=rest["untimed"]),
        rows=RequestRows(**_part(arrays, "rows")),
        lifecycle=Lifecycle(**_part(arrays, "lifecycle")),
        delays=Delays(**_part(arrays, "delays")),
        pyramid=Pyramid(tuple(levels)),
        **{name: arrays[name] for name in _PLAIN},
        stalls=pl.read_ipc(io.BytesIO(arrays["stalls"].tobytes())),
        worst=None if rest["worst"] is None else (rest["worst"][0], rest["worst"][1]),
        kpis=Kpis(**numbers),
    )


def _part(arrays: Arrays, part: str) -> Arrays:
    return {name: arrays[f"{part}.{name}"] for name in _columns(_PARTS[part])}


def _columns(kind: type[Any]) -> Iterator[str]:
    return (field.name for field in fields(kind) if field.name != "untimed")
