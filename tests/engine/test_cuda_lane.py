"""The CUDA lane and the capture of graphs, over a stand-in for torch.cuda that notes what it is asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from engine.clock import VirtualClock
from engine.executors.cuda_graph import cuda_capture
from engine.executors.cuda_lane import CudaLane
from engine.executors.memory import memory_meter
from engine.executors.protocol import ForwardResult, GraphKind
from engine.executors.ready import ReadyForward

CUDA = torch.device("cuda")


class FakeCuda:
    """One stream on the host's clock: queued work takes time at once; an event takes 1 ns and notes when."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.device_ns = 0  # when what is queued will have run
        self.log: list[str] = []
        self.allocated = {"current": 100, "peak": 100}

    def work(self, name: str, ns: int) -> None:
        self.log.append(name)
        self.device_ns = max(self.device_ns, self.clock.now_ns()) + ns

    def event(self, **_: bool) -> "FakeEvent":
        return FakeEvent(self)

    @contextmanager
    def entered(self, *arguments: Any, **_: Any) -> Iterator[None]:
        self.log.append("enter")
        yield
        self.log.append("leave")

    def reset_peak(self, _: torch.device) -> None:
        self.allocated["peak"] = self.allocated["current"]


class FakeEvent:
    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda = cuda
        self.ns = 0

    def record(self) -> None:
        self._cuda.work("event", 1)
        self.ns = self._cuda.device_ns

    def query(self) -> bool:
        return self.ns <= self._cuda.clock.now_ns()

    def synchronize(self) -> None:
        self._cuda.clock.wait_until(self.ns)

    def elapsed_time(self, end_event: "FakeEvent") -> float:
        return (end_event.ns - self.ns) / 1e6


class FakeStream:
    def __init__(self, *_: Any) -> None: ...

    def wait_stream(self, other: Any) -> None: ...


class ShiftedClock:
    """The host's clock from an origin that can be moved."""

    def __init__(self, host: VirtualClock) -> None:
        self._host = host
        self.origin_ns = 0

    def now_ns(self) -> int:
        return self._host.now_ns() - self.origin_ns

    def wait_until(self, t_ns: int) -> None:
        self._host.wait_until(t_ns + self.origin_ns)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda(VirtualClock())
    empty = torch.empty
    replaced = {
        "Event": fake.event,
        "Stream": FakeStream,
        "stream": fake.entered,
        "current_stream": FakeStream,
        "graph": fake.entered,
        "graph_pool_handle": lambda: (0, 1),
        "CUDAGraph": lambda: type("Graph", (), {"replay": lambda _: fake.log.append("replay")})(),
        "reset_peak_memory_stats": fake.reset_peak,
        "memory_stats_as_nested_dict": lambda _: {"allocated_bytes": {"all": fake.allocated}},
    }
    for name, value in replaced.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch, "empty", lambda *size, pin_memory=False, **kind: empty(*size, **kind))
    return fake


def _launched(cuda: FakeCuda, lane: CudaLane, token: int, ns: int, **told: Any) -> Any:
    def compute() -> torch.Tensor:
        cuda.work(f"forward {token}", ns)
        cuda.allocated["peak"] = 140
        return torch.tensor([token])

    meter = memory_meter(CUDA)
    meter.start()
    return lane.enqueue(ReadyForward(compute, **told), lambda ready: ready.compute(), meter)


def test_forwards_queue_up_and_are_timed_by_events(cuda: FakeCuda) -> None:
    lane = CudaLane(CUDA, cuda.clock, cuda.clock.now_ns)
    cuda.clock.wait_until(1000)
    first = _launched(cuda, lane, 7, 5_000)
    second = _launched(cuda, lane, 8, 3_000, graph=GraphKind.FULL, padded_rows=2, graph_bytes=60)
    assert cuda.clock.now_ns() == 1000  # neither launch has waited
    assert first.result() == ForwardResult([7], 1001, 6002, None, 100, 140)
    assert cuda.clock.now_ns() == 6003  # the copy of the ids has ended too
    assert second.result() == ForwardResult([8], 6004, 9005, None, 100, 160, GraphKind.FULL, 2)
    assert cuda.clock.now_ns() == 9006


def test_the_engines_clock_may_be_set_anew_between_runs(cuda: FakeCuda) -> None:
    engine_clock = ShiftedClock(cuda.clock)
    lane = CudaLane(CUDA, engine_clock, cuda.clock.now_ns)
    for origin_ns in (0, 5_000_000_000, 20_000_000_000):
        cuda.clock.wait_until(origin_ns + 100)
        engine_clock.origin_ns = origin_ns
        result = _launched(cuda, lane, 1, 400).result()
        assert 100 <= result.start_ns <= 110
        assert result.end_ns == result.start_ns + 401


def test_a_graph_is_warmed_up_and_then_captured(cuda: FakeCuda) -> None:
    def work() -> None:
        cuda.log.append("work")
        cuda.allocated["peak"] = 175

    captured = cuda_capture(memory_meter(CUDA))(work)
    assert cuda.log == ["work", "enter", "work", "leave"]
    assert captured.held_bytes == 75
    captured.replay()
    assert cuda.log[-1] == "replay"
