"""Capturing work on a CUDA stream."""

from collections.abc import Callable

import torch

from engine.executors.capture import Capture, CapturedGraph
from engine.executors.memory import MemoryMeter

__all__ = ["cuda_capture"]


def cuda_capture(meter: MemoryMeter) -> Capture:
    """A Capture on the current stream, which must not be the default one; its graphs share their memory.

    Sharing is safe since they run one after another and nothing they return lies in it.
    """
    pool = torch.cuda.graph_pool_handle()

    def capture(work: Callable[[], None]) -> CapturedGraph:
        work()  # kernels are compiled and libraries make their workspaces: neither may happen in a capture
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream()
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            meter.start()
            work()
            held, peak = meter.read()
        assert held is not None
        assert peak is not None
        return CapturedGraph(graph.replay, peak - held)

    return capture
