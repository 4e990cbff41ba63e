"""Writes forwards and their kernels as torch.profiler would, for TensorBoard's plugin torch-tb-profiler.

The plugin takes each directory below its log directory for a run and each file NAME.pt.trace.json.gz in it
for a worker. Of a file it reads steps (spans named ProfilerStep#N), kernels, the launches that these share a
correlation with, and the operators that launches share an external id with.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traces.errors import TraceError
from traces.trace_events import event, new_file, write_events

__all__ = ["APART_NS", "SUFFIX", "DeviceKernel", "OperatorCall", "Step", "write_tensorboard"]

SUFFIX = ".pt.trace.json.gz"

APART_NS = 1
"""By how much a step is drawn too short: in the plugin's floats it could else reach into the next one."""

_DEVICE = 0  # a file has one; the plugin asks that a kernel's process is its device's number
_HOST = 1
_STEPS, _OPERATORS, _LAUNCHES = range(3)  # the host's threads

Arguments = Mapping[str, Any]  # what JSON holds; whoever draws leaves out what is unknown


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """Something that ran on the device."""

    name: str
    start_ns: int
    end_ns: int
    stream: int = 0
    args: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """Kernels of one operator that ran one after another; at least one.

    `on_host` says that the host itself computed it, so that its time is the operator's time on the host.
    """

    name: str
    kernels: Sequence[DeviceKernel]
    on_host: bool = False
    args: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A forward. Steps come in order of their numbers and do not overlap."""

    number: int
    start_ns: int
    end_ns: int
    calls: Sequence[OperatorCall] = ()
    args: Arguments = field(default_factory=dict)


def write_tensorboard(path: Path, device: str, steps: Iterable[Step]) -> int:
    """Write a new file whose kernels ran on a device of this name; returns the number of events.

    Where and when the host launched a kernel is not told to us: launches are drawn across their step's start,
    where the plugin takes no step's time from them. TraceError for a file that cannot be written.
    """
    about = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": _DEVICE, "name": device}],
        "displayTimeUnit": "ms",
    }
    try:
        with new_file(path) as file:
            return write_events(file, about, _events(device, steps))
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error.strerror}: give another place") from error


def _events(device: str, steps: Iterable[Step]) -> Iterator[str]:
    yield event("M", "process_name", _DEVICE, 0, args={"name": device})
    yield event("M", "process_name", _HOST, 0, args={"name": "forwards"})
    for tid, name in ((_STEPS, "forwards"), (_OPERATORS, "operators"), (_LAUNCHES, "launches")):
        yield event("M", "thread_name", _HOST, tid, args={"name": name})
    numbers = _Numbers()
    for step in steps:
        yield from _step(step, numbers)


class _Numbers:
    """External ids and correlations, which the plugin wants unique in a file."""

    def __init__(self) -> None:
        self._last = 0

    def take(self) -> int:
        self._last += 1
        return self._last


def _step(step: Step, numbers: _Numbers) -> Iterator[str]:
    yield event(
        "X",
        f"ProfilerStep#{step.number}",
        _HOST,
        _STEPS,
        ts=step.start_ns,
        dur=max(step.end_ns - step.start_ns - APART_NS, 1),  # the plugin divides by it
        more={"cat": "user_annotation"},
        args={"External id": numbers.take(), **step.args},
    )
    for call in step.calls:
        yield from _call(step, call, numbers)


def _call(step: Step, call: OperatorCall, numbers: _Numbers) -> Iterator[str]:
    external_id = numbers.take()
    first, last = call.kernels[0], call.kernels[-1]
    start_ns, end_ns = (first.start_ns, last.end_ns) if call.on_host else (step.start_ns, step.start_ns)
    yield event(
        "X",
        call.name,
        _HOST,
        _OPERATORS,
        ts=start_ns,
        dur=end_ns - start_ns,
        more={"cat": "cpu_op"},
        args={"External id": external_id, **call.args},
    )
    for kernel in call.kernels:
        link = {"External id": external_id, "correlation": numbers.take()}
        yield _launch(step, link, on_host=call.on_host)
        yield event(
            "X",
            kernel.name,
            _DEVICE,
            kernel.stream,
            ts=kernel.start_ns,
            dur=kernel.end_ns - kernel.start_ns,
            more={"cat": "kernel"},
            args={"device": _DEVICE, "stream": kernel.stream, **link, **kernel.args},
        )


def _launch(step: Step, link: Arguments, *, on_host: bool) -> str:
    """From just before the step to just after its start: a launch within a step would change its time."""
    name = "call" if on_host else "cudaLaunchKernel"
    return event("X", name, _HOST, _LAUNCHES, ts=step.start_ns - 1, dur=2, more={"cat": "runtime"}, args=link)
