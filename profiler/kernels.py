"""Kernels of sampled forwards: `KernelProbe` lets torch.profiler watch, `KernelRecorder` writes down.

A watched forward is slower than others, on the CPU by what noting each operator takes, and on a GPU its
launch waits for the device. Such forwards are known by their rows in `kernels`, which are in the trace
before the forward is: see `profiler.profiled`.
"""

import gzip
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.arithmetic import forward_sums
from engine.batch import ForwardBatch
from engine.clock import Clock
from engine.observer import Event, ForwardRecord
from engine.operator_costs import operator_costs
from engine.request import Request
from engine.shapes import ModelShape
from profiler.kernel_profile import ANCHOR_NAME, profiled_kernels
from profiler.kernel_rows import kernel_columns, placed
from profiler.recorder import Recorder
from traces.errors import TraceError

if TYPE_CHECKING:
    from torch.profiler import profile

__all__ = ["KernelProbe", "KernelRecorder"]

_GZIP_LEVEL = 3  # a third of the default's time for a tenth more bytes
_QUIET = "99"  # above every level of Kineto's messages, which would go to standard error


@dataclass(frozen=True, slots=True)
class _Window:
    """What was seen of one forward, not yet looked at."""

    profile: "profile"
    anchor_ns: int


class KernelProbe:
    """A ForwardProbe that watches the first and then every `every`-th forward from `arm` on.

    Make it on the thread that first imported torch: the profiler is prepared there, which takes a second.
    """

    def __init__(self, clock: Clock, *, every: int, on_gpu: bool = False) -> None:
        self.on_gpu = on_gpu
        self._clock = clock
        self._every = every
        self._armed = False
        self._seen = 0
        self._windows: dict[int, _Window] = {}
        os.environ.setdefault("KINETO_LOG_LEVEL", _QUIET)
        with self._profiler():
            pass

    def arm(self) -> None:
        """Begin to count forwards: a run has begun."""
        self._armed, self._seen = True, 0

    def window(self, batch: ForwardBatch) -> AbstractContextManager[None]:
        """See ForwardProbe."""
        if not self._armed:
            return _LET_BY
        due = self._seen % self._every == 0
        self._seen += 1
        return self._watch(batch.forward_id) if due else _LET_BY

    def take(self, forward_id: int) -> _Window | None:
        """What was seen of a forward that has ended, once; None if it was not watched."""
        return self._windows.pop(forward_id, None)

    @contextmanager
    def _watch(self, forward_id: int) -> Iterator[None]:
        import torch

        from engine.marks import marks_watched

        if self.on_gpu:
            torch.cuda.synchronize()  # else kernels of the forward before would run within the window
        with self._profiler() as profile:  # on a GPU its end waits for the kernels
            with torch.profiler.record_function(ANCHOR_NAME):
                anchor_ns = self._clock.now_ns()
            with marks_watched():
                yield
        self._windows[forward_id] = _Window(profile, anchor_ns)

    def _profiler(self) -> "profile":
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.on_gpu else [])]
        return profile(activities=activities)


_LET_BY: AbstractContextManager[None] = nullcontext()


class KernelRecorder:
    """An EngineObserver before a recorder: it writes a watched forward's kernels, then hands the forward on.

    The profiler's own files are kept in `folder`, which is made when there is one. `shape` None leaves FLOPs
    and bytes unknown; `element_bytes` is the size of a weight and of a KV element. TraceError if something
    cannot be written.
    """

    def __init__(
        self,
        recorder: Recorder,
        probe: KernelProbe,
        folder: Path,
        shape: ModelShape | None,
        *,
        element_bytes: int = 4,
    ) -> None:
        self._recorder = recorder
        self._probe = probe
        self._folder = folder
        self._shape = shape
        self._element_bytes = element_bytes
        probe.arm()

    def on_request(self, request: Request) -> None:
        """Hand on a request's change."""
        self._recorder.on_request(request)

    def on_events(self, events: list[Event]) -> None:
        """Hand on decisions."""
        self._recorder.on_events(events)

    def on_forward(self, record: ForwardRecord) -> None:
        """Write what was seen of the forward, then hand it on."""
        window = self._probe.take(record.batch.forward_id)
        if window is not None:
            self._write(record, window)
        self._recorder.on_forward(record)

    def _write(self, record: ForwardRecord, window: _Window) -> None:
        forward_id, result, shape = record.batch.forward_id, record.result, self._shape
        path = self._folder / f"forward-{forward_id:08d}.pt.trace.json"
        document = _saved(window.profile, path)
        layers = shape.num_layers if shape else 0
        seen = profiled_kernels(document["traceEvents"], layers, on_gpu=self._probe.on_gpu)
        kernels = placed(seen, window.anchor_ns, result.start_ns, result.end_ns)
        costs = None
        if shape is not None:
            sums = forward_sums(record.batch)
            costs = operator_costs(shape, sums, self._element_bytes, self._element_bytes)
        if kernels:
            self._recorder.write_kernels(kernel_columns(forward_id, kernels, costs), len(kernels))


def _saved(profile: "profile", path: Path) -> dict[str, Any]:
    """The profiler's document, which is also kept, compressed, at `path` with .gz added."""
    try:
        path.parent.mkdir(exist_ok=True)
        profile.export_chrome_trace(str(path))
        content = path.read_bytes()
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content, _GZIP_LEVEL, mtime=0))
        path.unlink()
    except OSError as error:
        raise TraceError(f"{path.parent}: cannot be written: {error.strerror}") from error
    document: dict[str, Any] = json.loads(content, strict=False)  # names of kernels are as they are
    return document
