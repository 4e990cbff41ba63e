"""A run of the tiny model whose kernels are recorded, and hand-made windows of a GPU's profiler."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.device import DeviceExecutor
from engine.request import Request, SamplingParams
from profiler.kernel_profile import ProfiledKernel, profiled_kernels
from profiler.kernel_rows import kernel_columns, placed
from profiler.kernels import KernelProbe, KernelRecorder
from profiler.recorder import Recorder
from tests.support.tiny_llama import TINY_SHAPE, load_tiny
from traces.reader import Trace, open_trace
from traces.writer import TraceWriter

__all__ = ["EVERY", "GPU_KERNELS", "GpuWindow", "outputs_of", "record_kernels", "write_gpu_trace"]

EVERY = 3
POOL = 512


def requests() -> list[Request]:
    """Prompts long enough for chunks, and outputs that go on beside later prompts."""
    return [
        Request(
            i, f"r{i}", [(7 * i + j) % 200 for j in range(30 + 25 * i)], SamplingParams(12, ignore_eos=True)
        )
        for i in range(3)
    ]


def config() -> EngineConfig:
    options = EngineConfig(chunked_prefill_size=24, page_size=4, enable_mixed_chunk=True)
    return options.resolve(max_total_tokens=POOL, context_length=TINY_SHAPE.max_position_embeddings)


def outputs_of(probe: KernelProbe | None, clock: MonotonicClock) -> list[list[int]]:
    """What the requests give on an executor of their own, without a trace."""
    todo = requests()
    executor = DeviceExecutor(load_tiny(), config(), clock, probe=probe)
    Engine(config(), executor, clock=clock).run(todo)
    return [list(request.tokens) for request in todo]


class Appended:
    """A trace writer that notes, of each append, the table and the forwards it is of."""

    def __init__(self, writer: TraceWriter) -> None:
        self.log: list[tuple[str, list[int]]] = []
        self._writer = writer

    def append(self, table: str, columns: Mapping[str, Any], num_rows: int) -> None:
        if table in ("kernels", "forwards"):
            ids = columns["forward_id"]
            self.log.append((table, [ids] if isinstance(ids, int) else ids.to_pylist()))
        self._writer.append(table, columns, num_rows)

    def update_meta(self, updates: Mapping[str, Any]) -> None:
        self._writer.update_meta(updates)

    def close(self, meta_updates: Mapping[str, Any], *, clean_end: bool) -> None:
        self._writer.close(meta_updates)


def record_kernels(path: Path, every: int = EVERY) -> tuple[Trace, Appended]:
    """The sealed trace of a run on the CPU, and in which order it was written. A warm-up goes before it."""
    clock = MonotonicClock()
    probe = KernelProbe(clock, every=every)
    executor = DeviceExecutor(load_tiny(), config(), clock, probe=probe)
    warm_up = Request(0, "warm-up", [1] * 8, SamplingParams(2, ignore_eos=True))
    Engine(config(), executor, clock=clock).run([warm_up])
    writer = Appended(TraceWriter(path, {"provenance": "measured", "hardware": {"name": "a CPU"}}))
    recorder = Recorder(writer, TINY_SHAPE, clock=clock)
    folder = path / "rank-0" / "profiles"
    observer = KernelRecorder(recorder, probe, folder, TINY_SHAPE)
    engine = Engine(config(), executor, clock=clock, observer=observer)
    engine.run(requests())
    recorder.close(engine.cache.pool_state())
    return open_trace(path), writer


class GpuWindow:
    """Events as Kineto writes them for a GPU; times are microseconds from the anchor's middle."""

    HOST, THREAD, STREAM, ZERO_US = 4711, 4712, 7, 5_000_000_000.0

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": self.HOST, "tid": 0, "args": {"name": "python"}}
        ]
        self._correlation = 100
        self._host("user_annotation", "chunkscope anchor", -1, 2)

    def mark(self, name: str, start: float, end: float) -> None:
        self._host("user_annotation", f"chunkscope:{name}", start, end - start)

    def operator(self, name: str, start: float, end: float, thread: int = THREAD) -> None:
        self._host("cpu_op", name, start, end - start, thread)

    def launch(
        self,
        at: float,
        *kernels: tuple[str, float, float],
        by: str = "cudaLaunchKernel",
        category: str = "cuda_runtime",
        thread: int = THREAD,
        kind: str = "kernel",
    ) -> None:
        """One call on the host and the (name, start, end) that it made the device do."""
        self._correlation += 1
        self._host(category, by, at, 0.5, thread, correlation=self._correlation)
        for name, start, end in kernels:
            self._event(kind, name, start, end - start, 0, self.STREAM, correlation=self._correlation)

    def _host(
        self, category: str, name: str, start: float, length: float, thread: int = THREAD, **args: Any
    ) -> None:
        self._event(category, name, start, length, self.HOST, thread, **args)

    def _event(
        self, category: str, name: str, start: float, length: float, pid: int, tid: int, **args: Any
    ) -> None:
        stream = {"stream": tid, "device": pid} if pid == 0 else {}
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": pid,
                "tid": tid,
                "ts": self.ZERO_US + start,
                "dur": length,
                "args": {**stream, **args},
            }
        )


GPU_KERNELS = [
    ("ampere_bf16_s16816gemm", "QKV", 0, 100.0),
    ("extend_kernel", "ATTENTION_EXTEND", 0, 40.5),
    ("ampere_bf16_s16816gemm", "O", 0, 60.25),
    ("argmax", "OTHER", None, 5.0),
]
"""Name, operator, layer and microseconds of each kernel of a watched forward of `write_gpu_trace`."""

FORWARD_NS = 300_000


def write_gpu_trace(path: Path, forwards: int = 5, every: int = 2) -> None:
    """A trace whose every second forward was watched on a GPU; forwards follow each other without a gap."""
    with TraceWriter(path, {"provenance": "measured", "hardware": {"name": "NVIDIA H200"}}) as writer:
        for forward_id in range(forwards):
            start_ns, end_ns = FORWARD_NS * forward_id, FORWARD_NS * (forward_id + 1)
            if forward_id % every == 0:
                seen = placed(_gpu_window(), start_ns + 20_000, start_ns, end_ns)
                writer.append("kernels", kernel_columns(forward_id, seen, None), len(seen))
            columns = {"forward_id": forward_id, "mode": 0, "start_ns": start_ns, "end_ns": end_ns}
            writer.append("forwards", {**columns, "extend_tokens": 100 + forward_id}, 1)


def _gpu_window() -> list[ProfiledKernel]:
    window, now = GpuWindow(), 20.0
    for at, (name, operator, layer, length) in enumerate(GPU_KERNELS):
        window.mark(f"{operator}:{'' if layer is None else layer}", at, at + 1)
        window.launch(at + 0.25, (name, now, now + length))
        now += length + 1
    return profiled_kernels(window.events, 1, on_gpu=True)
