"""Forwards queued on one CUDA stream, timed by events, their results fetched when they are asked for."""

import time
from collections.abc import Callable

import torch

from engine.clock import Clock
from engine.executors.event_clock import EventClock, Sighting
from engine.executors.memory import MemoryMeter
from engine.executors.protocol import ForwardResult
from engine.executors.ready import ReadyForward

__all__ = ["CudaLane"]

RESTART_NS = 1_000_000  # two clocks read one after the other never differ by so much


class CudaLane:
    """One stream of a device: what is enqueued runs in that order, and nothing here waits but `result`.

    To be made after all that forwards read has been queued on the current stream.
    """

    def __init__(
        self, device: torch.device, clock: Clock, host_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """`host_ns` is a clock that goes on where the engine's may be set to 0 between runs."""
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.stream.wait_stream(torch.cuda.current_stream(device))  # weights may still be being written
        self._clock = clock
        self._host_ns = host_ns
        self._offset_ns = clock.now_ns() - host_ns()
        with torch.cuda.stream(self.stream):
            now = _recorded()
        now.synchronize()
        self._times = EventClock(now, host_ns())

    def enqueue(
        self, ready: ReadyForward, run: Callable[[ReadyForward], torch.Tensor], meter: MemoryMeter
    ) -> "_CudaForward":
        """Queue a forward whose inputs have been queued, and the copy of its (rows,) ids to the host.

        The events stand around `run` alone: on an idle stream an event passes at once, and the host's work on
        the inputs would count as the device's. `meter` has been started.
        """
        with torch.cuda.stream(self.stream):
            queued_ns = self._host_ns()
            start = _recorded()
            sampled = run(ready)
            end = _recorded()
            held, peak = meter.read()
            host_ids = torch.empty(sampled.shape, dtype=sampled.dtype, pin_memory=True)
            host_ids.copy_(sampled, non_blocking=True)
            copied = _recorded()
        memory = held, ready.peak_bytes(held, peak)
        return _CudaForward(self, ready, (start, end, copied), queued_ns, host_ids, memory)

    def finish(
        self, start: torch.cuda.Event, end: torch.cuda.Event, copied: torch.cuda.Event, queued_ns: int
    ) -> tuple[int, int, int | None]:
        """Wait for the last of a forward's events; its device interval and the clock's error."""
        waited = not copied.query()  # type: ignore[no-untyped-call]
        copied.synchronize()
        sighting = Sighting(queued_ns, self._host_ns(), waited)
        start_ns, end_ns, error_ns = self._times.interval(start, end, copied, sighting)
        offset_ns = self._engine_offset_ns()
        return start_ns + offset_ns, end_ns + offset_ns, error_ns

    def _engine_offset_ns(self) -> int:
        """What the engine's clock is ahead of the host's: the same until the engine's is set anew."""
        offset_ns = self._clock.now_ns() - self._host_ns()
        if abs(offset_ns - self._offset_ns) > RESTART_NS:
            self._offset_ns = offset_ns
        return self._offset_ns


class _CudaForward:
    """A forward on the stream; results must be asked for in the order of the launches."""

    def __init__(
        self,
        lane: CudaLane,
        ready: ReadyForward,
        events: tuple[torch.cuda.Event, torch.cuda.Event, torch.cuda.Event],
        queued_ns: int,
        host_ids: torch.Tensor,
        memory: tuple[int | None, int | None],
    ) -> None:
        self._lane = lane
        self._graph = ready.graph, ready.padded_rows
        self._events = events
        self._queued_ns = queued_ns
        self._host_ids = host_ids
        self._memory = memory

    def result(self) -> ForwardResult:
        """See PendingForward."""
        interval = self._lane.finish(*self._events, self._queued_ns)
        return ForwardResult(self._host_ids.tolist(), *interval, *self._memory, *self._graph)


def _recorded() -> torch.cuda.Event:
    """An event on the current stream."""
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
