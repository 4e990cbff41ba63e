"""What the page gets of a timeline's answers: times count from the run's own start, names are on one line.

All runs of a page share one clock that way: 0 is the first arrival or plan of each.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from profiler.timeline.tiles import Counters, Lane, LaneRef, Strip
from ui import words
from ui.web.tile_bytes import Arrays

__all__ = ["columns", "lane_header", "plain", "request"]

_INSTANTS = frozenset(
    {"arrival_ns", "end_ns", "finish_ns", "first_token_ns", "own_start_ns", "start_ns", "t_ns"}
)
_LABEL_CHARS = 120  # more of a name than any label has room for


def plain(answer: Any, start_ns: int) -> Any:
    """Dataclasses and mappings as JSON's own types, instants counted from `start_ns`; None stays null."""
    if is_dataclass(answer) and not isinstance(answer, type):
        return _plain_items({f.name: getattr(answer, f.name) for f in fields(answer)}, start_ns)
    if isinstance(answer, Mapping):
        return _plain_items(answer, start_ns)
    if isinstance(answer, tuple | list):
        return [plain(item, start_ns) for item in answer]
    return answer


def request(ref: LaneRef, start_ns: int) -> dict[str, Any]:
    """A request as labels and search results show it, `ttft` in words."""
    shown: dict[str, Any] = plain(ref, start_ns)
    known = ref.first_token_ns is not None and ref.arrival_ns is not None
    ttft_s = (ref.first_token_ns - ref.arrival_ns) / 1e9 if known else None  # type: ignore[operator]
    label = words.name(ref.name)
    if len(label) > _LABEL_CHARS:
        label = label[:_LABEL_CHARS] + "…"
    return shown | {"name": label, "ttft": None if ttft_s is None else words.seconds(ttft_s)}


def lane_header(ref: LaneRef, lane: Lane, start_ns: int, arrays: Arrays) -> dict[str, Any]:
    """A request and the entries of its lane's arrays."""
    return request(ref, start_ns) | {"items": columns(lane, start_ns, arrays)}


def columns(tile: Strip | Lane | Counters, start_ns: int, arrays: Arrays) -> dict[str, Any]:
    """Entries of a tile's arrays by field; times as float64."""
    entries = {}
    for field in fields(tile):
        values = getattr(tile, field.name)
        if not isinstance(values, np.ndarray):
            continue
        if field.name in _INSTANTS:
            values = (values - start_ns).astype(np.float64)
        entries[field.name] = arrays.add(values)
    return entries


def _plain_items(items: Mapping[str, Any], start_ns: int) -> dict[str, Any]:
    return {key: _plain_value(key, value, start_ns) for key, value in items.items()}


def _plain_value(key: str, value: Any, start_ns: int) -> Any:
    if value is None:
        return None
    if key in _INSTANTS:
        return int(value) - start_ns
    if key == "name":
        return words.name(value)
    return plain(value, start_ns)
