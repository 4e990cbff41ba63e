"""Lets a session record the kernels of some of its forwards."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from traces.layout import rank_directory
from ui.record_options import KernelSampling

if TYPE_CHECKING:
    from engine.clock import Clock
    from engine.observer import EngineObserver
    from engine.shapes import ModelShape
    from profiler.recorder import Recorder

__all__ = ["KernelWatch"]

PROFILES = "profiles"  # in a rank's directory: the profiler's own files


class KernelWatch:
    """A probe for the session's executor, and an observer for each of its runs."""

    def __init__(self, sampling: KernelSampling, clock: "Clock", *, on_gpu: bool) -> None:
        from profiler.kernels import KernelProbe

        self.probe = KernelProbe(clock, every=sampling.every, on_gpu=on_gpu)
        self.about: dict[str, Any] = {
            "every": sampling.every,
            "source": "CUPTI" if on_gpu else "CPU operators",
        }
        """What meta.json says of it."""

    def before(
        self, recorder: "Recorder", output: Path, shape: "ModelShape", element_bytes: int
    ) -> "EngineObserver":
        """The observer of a run into a new trace, which hands all on to `recorder`."""
        from profiler.kernels import KernelRecorder

        folder = rank_directory(output, 0) / PROFILES
        return KernelRecorder(recorder, self.probe, folder, shape, element_bytes=element_bytes)
