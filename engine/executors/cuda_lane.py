"""Forwards queued on one CUDA stream, timed by events, their results fetched when they are asked for."""

from collections.abc import Callable

import torch

from engine.clock import Clock
from engine.executors.memory import MemoryMeter
from engine.executors.protocol import ForwardResult

__all__ = ["CudaLane"]

ANCHOR_NS = 10_000_000_000


class CudaLane:
    """One stream of a device: what is enqueued runs in that order, and nothing here waits but `result`."""

    def __init__(self, device: torch.device, clock: Clock) -> None:
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        # Weights and pool may still be being written.
        self._stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(self._stream):
            self._times = _EventTimes(clock)

    def enqueue(self, compute: Callable[[], torch.Tensor], meter: MemoryMeter) -> "_CudaForward":
        """Queue `compute`, which returns (rows,) sampled ids, and their copy to the host."""
        with torch.cuda.stream(self._stream):
            start, end = _event(), _event()
            start.record()
            sampled = compute()
            end.record()
            host_ids = torch.empty(sampled.shape, dtype=sampled.dtype, pin_memory=True)
            host_ids.copy_(sampled, non_blocking=True)
            copied = _event()
            copied.record()
        return _CudaForward(self._times, (start, end, copied), host_ids, meter.read())


class _CudaForward:
    """A forward on the stream; results must be asked for in the order of the launches."""

    def __init__(
        self,
        times: "_EventTimes",
        events: tuple[torch.cuda.Event, torch.cuda.Event, torch.cuda.Event],
        host_ids: torch.Tensor,
        memory: tuple[int | None, int | None],
    ) -> None:
        self._times = times
        self._start, self._end, self._copied = events
        self._host_ids = host_ids
        self._memory = memory

    def result(self) -> ForwardResult:
        """See PendingForward."""
        self._copied.synchronize()
        start_ns, end_ns, error_ns = self._times.interval(self._start, self._end)
        held, peak = self._memory
        return ForwardResult(self._host_ids.tolist(), start_ns, end_ns, error_ns, held, peak)


class _EventTimes:
    """Events on the engine's clock.

    Elapsed times are float32 milliseconds, too coarse over a long run. So each is measured from the event
    before, and every ten seconds the chain is tied to the host's clock again. How far it had drifted by then
    is the error told.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = _event()
        self._last.record()
        self._last.synchronize()
        self._last_ns = self._anchored_ns = clock.now_ns()
        self._error_ns: int | None = None

    def interval(self, start: torch.cuda.Event, end: torch.cuda.Event) -> tuple[int, int, int | None]:
        """Start, end and clock error of a forward that has just ended, in nanoseconds."""
        start_ns = self._last_ns + _elapsed_ns(self._last, start)
        end_ns = start_ns + _elapsed_ns(start, end)
        now_ns = self._clock.now_ns()
        if now_ns - self._anchored_ns >= ANCHOR_NS:
            self._error_ns = abs(now_ns - end_ns)
            self._anchored_ns = self._last_ns = now_ns
        else:
            self._last_ns = end_ns
        self._last = end
        return start_ns, end_ns, self._error_ns


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _elapsed_ns(earlier: torch.cuda.Event, later: torch.cuda.Event) -> int:
    elapsed_ms: float = earlier.elapsed_time(later)
    return round(elapsed_ms * 1e6)
