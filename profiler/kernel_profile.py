"""Reads what torch.profiler saw of one forward: its kernels, each with the operator and layer it belongs to.

A window's file is a Chrome trace. On a GPU a kernel is linked to its launch by correlation, and the launch
lies in the range of a mark (`engine.marks`). Kernels that a CUDA graph replays have one launch between them:
they are told apart by name and order, those of a forward's pieces together. On a CPU the outermost operators
inside a mark's range take the kernels' place.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from engine.operators import MARK_PREFIX, Operator
from profiler.kernel_order import operators_in_order

__all__ = ["ANCHOR_NAME", "ProfiledKernel", "profiled_kernels"]

ANCHOR_NAME = "chunkscope anchor"
"""A short range in whose middle the engine's clock was read: times of a window are told from there."""

_KERNEL_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
_LAUNCH_CATEGORIES = ("cuda_runtime", "cuda_driver")
_GRAPH_LAUNCH = "GraphLaunch"

Event = Mapping[str, Any]
Place = tuple[Operator, int | None]

_NOWHERE: Place = (Operator.OTHER, None)


class ProfiledKernel(NamedTuple):
    """One kernel or CPU operator; times are nanoseconds since the window's anchor."""

    name: str
    operator: Operator
    layer: int | None
    stream: int | None
    correlation: int | None
    start_ns: int
    end_ns: int


class _Range(NamedTuple):
    start_us: float
    end_us: float
    place: Place


def profiled_kernels(events: Iterable[Event], num_layers: int, *, on_gpu: bool) -> list[ProfiledKernel]:
    """The kernels of a window in order of start; of a window without an anchor there are none."""
    spans = [event for event in events if event.get("ph") == "X"]
    anchor = next((event for event in spans if event["name"] == ANCHOR_NAME), None)
    if anchor is None:
        return []
    zero_us = anchor["ts"] + anchor["dur"] / 2
    marks = _Marks(spans)
    found = _gpu_kernels(spans, marks, num_layers) if on_gpu else _cpu_operators(spans, marks)
    kernels = (
        ProfiledKernel(
            event["name"],
            *place,
            event.get("args", {}).get("stream") if on_gpu else None,
            event.get("args", {}).get("correlation") if on_gpu else None,
            start_ns := round((event["ts"] - zero_us) * 1e3),
            start_ns + round(event["dur"] * 1e3),
        )
        for event, place in found
    )
    return sorted(kernels, key=lambda kernel: kernel.start_ns)


class _Marks:
    """Ranges of marks by thread; on a thread they follow one another."""

    def __init__(self, spans: Sequence[Event]) -> None:
        self._ranges: dict[Any, list[_Range]] = defaultdict(list)
        for event in sorted(spans, key=lambda event: event["ts"]):
            if event.get("cat") == "user_annotation" and event["name"].startswith(MARK_PREFIX):
                end_us = event["ts"] + event["dur"]
                self._ranges[event["tid"]].append(_Range(event["ts"], end_us, _place(event["name"])))
        self._starts = {tid: [r.start_us for r in ranges] for tid, ranges in self._ranges.items()}

    def at(self, tid: Any, t_us: float) -> Place | None:
        """The operator and layer of the range around a moment."""
        before = bisect_right(self._starts.get(tid, []), t_us) - 1
        if before < 0 or self._ranges[tid][before].end_us < t_us:
            return None
        return self._ranges[tid][before].place


def _place(name: str) -> Place:
    operator, _, layer = name.removeprefix(MARK_PREFIX).partition(":")
    return Operator[operator], int(layer) if layer else None


def _cpu_operators(spans: Iterable[Event], marks: _Marks) -> Iterator[tuple[Event, Place]]:
    """Operators that no other one called, within the ranges of marks."""
    ends_us: dict[Any, float] = {}
    operators = (event for event in spans if event.get("cat") == "cpu_op")
    for event in sorted(operators, key=lambda event: (event["ts"], -event["dur"])):
        if event["ts"] < ends_us.get(event["tid"], event["ts"]):
            continue
        ends_us[event["tid"]] = event["ts"] + event["dur"]
        place = marks.at(event["tid"], event["ts"])
        if place is not None:
            yield event, place


def _gpu_kernels(spans: Sequence[Event], marks: _Marks, num_layers: int) -> Iterator[tuple[Event, Place]]:
    launches = {
        event["args"].get("correlation"): event for event in spans if event.get("cat") in _LAUNCH_CATEGORIES
    }
    replayed: list[Event] = []
    for event in sorted(spans, key=lambda event: event["ts"]):
        if event.get("cat") not in _KERNEL_CATEGORIES:
            continue
        launch = launches.get(event["args"].get("correlation"))
        if launch is not None and _GRAPH_LAUNCH in launch["name"]:
            replayed.append(event)
            continue
        place = launch and marks.at(launch["tid"], launch["ts"])
        yield event, place or _unmarked(event)
    places = operators_in_order([event["name"] for event in replayed], num_layers)
    yield from zip(replayed, places, strict=True)


def _unmarked(event: Event) -> Place:
    """Inputs are copied to the device before the first mark."""
    return (Operator.COPY, None) if event["cat"] == "gpu_memcpy" else _NOWHERE
