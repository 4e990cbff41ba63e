"""Puts engine, recorder and trace together for recorded runs: `Session` for a model on a device."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config import EngineConfig
from engine.errors import ConfigError, WorkloadError
from engine.limits import check_request
from engine.observer import EngineObserver, ForwardRecord
from engine.request import Request, SamplingParams
from ui.errors import Interrupted
from ui.graph_options import GraphOptions
from ui.interrupt import PatientClock, StopRequest
from ui.provenance import run_meta
from ui.words import plural

if TYPE_CHECKING:
    from engine.clock import Clock
    from engine.engine import Engine
    from engine.executors.protocol import Executor
    from engine.models.loader import LoadedModel
    from engine.shapes import ModelShape
    from profiler.recorder import Recorder
    from profiler.sweep import Sweep
    from profiler.sweep_halfway import Halfway
    from ui.record_options import KernelSampling

__all__ = ["Recording", "Rig", "Session", "StepHook", "resolved"]

StepHook = Callable[[ForwardRecord], None]

SETTLE_NS = 100_000_000  # between opening the trace and time 0, so that no request waits for the disk
WARM_UP_TOKENS = 64
NO_GRAPH_OPTIONS = GraphOptions()


@dataclass(frozen=True, slots=True)
class Rig:
    """What runs a session's forwards, and what recording them needs to know."""

    config: EngineConfig  # resolved
    executor: "Executor"
    clock: "Clock"
    shape: "ModelShape"  # as the executor's rank holds it
    element_bytes: int  # of a weight, and of a KV element
    eos_token_ids: frozenset[int]


def resolved(config: EngineConfig, shape: "ModelShape", pool: int) -> EngineConfig:
    """The config with nothing left open, for a pool of so many tokens.

    Raises ConfigError for a context that is longer than the model's.
    """
    longest = shape.max_position_embeddings
    if config.context_length is not None and config.context_length > longest:
        raise ConfigError(
            f"--context-length {config.context_length} is beyond the model's {longest}: give no more"
        )
    return config.resolve(max_total_tokens=pool, context_length=longest)


class Recording(ABC):
    """Any number of runs on one rig, each into a trace of its own."""

    simulated = False

    def __init__(self, rig: Rig, stop: StopRequest) -> None:
        self.config = rig.config
        self._rig = rig
        self._stop = stop

    def check(self, requests: Sequence[Request], where: Callable[[Request], str]) -> list[Request]:
        """Raise WorkloadError, with `where`, for a request that can never be served.

        Returns those whose `max_new_tokens` is lowered so that they can.
        """
        refused = []
        for request in requests:
            try:
                check_request(request, self.config)
            except WorkloadError as error:
                refused.append(f"{where(request)}: {error}")
        if refused:
            others = f" ({plural(len(refused) - 1, 'other request')} cannot be served either)"
            raise WorkloadError(refused[0] + (others if len(refused) > 1 else ""))
        return [r for r in requests if r.max_new_tokens < r.sampling.max_new_tokens]

    def record_run(
        self,
        requests: Sequence[Request],
        output: Path,
        *,
        workload: Mapping[str, Any],
        seed: int = 0,
        on_step: StepHook = lambda record: None,
    ) -> None:
        """Run the requests into a new trace. After Ctrl-C the trace is closed and Interrupted raised."""

        def drive(recorder: EngineObserver, step: StepHook) -> "Engine":
            engine = self._build(recorder)
            try:
                engine.run((request.fresh() for request in requests), step)  # so that ended take no memory
            except Interrupted:
                engine.land()  # what was launched is recorded, too
                raise
            return engine

        self._warm_up()
        self._record(output, {"kind": "open", **workload}, seed, on_step, drive)

    def record_sweep(
        self,
        sweep: "Sweep",
        output: Path,
        *,
        seed: int = 0,
        before: "Halfway | None" = None,
        on_step: StepHook = lambda record: None,
    ) -> None:
        """Record a sweep into a new trace; Ctrl-C as in `record_run`.

        `before` is what it had recorded there until it was broken off: the trace goes on where that ends.
        Raises ConfigError when that was another model, device or number of threads.
        """
        if before is not None:
            before.require_same(self._meta(seed, {}))
        sweep.prepare(self._build)
        start_ns = before.end_ns if before else 0

        def drive(recorder: EngineObserver, step: StepHook) -> "Engine":
            self._rig.clock.wait_until(start_ns)
            return sweep.record(self._build, recorder, step)

        workload = {"kind": "closed", "sweep": sweep.plan.as_json(sweep.cases)}
        self._record(output, workload, seed, on_step, drive, before)

    def assumptions(self) -> Iterable[str]:
        """What a person should know of how times come about, in lines; nothing where they are measured."""
        return ()

    @abstractmethod
    def _meta(self, seed: int, workload: Mapping[str, Any]) -> dict[str, Any]:
        """What the trace's meta.json says of the run."""

    def _observer(self, recorder: "Recorder", output: Path) -> EngineObserver:
        """What the engine tells of the run into a new trace."""
        return recorder

    @abstractmethod
    def _warm_up(self) -> None:
        """Make the first recorded forward one like any other."""

    @abstractmethod
    def _start_clock(self) -> None:
        """Let the run's time 0 be now, or in a moment."""

    def _start_clock_at(self, t_ns: int) -> None:
        """Let the run's time go on from `t_ns`."""
        self._start_clock()
        self._rig.clock.wait_until(t_ns)

    def _record(
        self,
        output: Path,
        workload: Mapping[str, Any],
        seed: int,
        on_step: StepHook,
        drive: Callable[[EngineObserver, StepHook], "Engine"],
        before: "Halfway | None" = None,
    ) -> None:
        from profiler.recorder import Recorder
        from profiler.sweep_continued import continue_trace
        from traces.writer import TraceWriter

        def step(record: ForwardRecord) -> None:
            on_step(record)
            self._stop.check()

        rig = self._rig
        meta = self._meta(seed, workload)
        writer = continue_trace(output, meta, before) if before else TraceWriter(output, meta)
        self._start_clock_at(before.end_ns if before else 0)
        recorder = Recorder(
            writer,
            rig.shape,
            clock=rig.clock,
            element_bytes=rig.element_bytes,
            simulated=self.simulated,
        )
        try:
            with self._stop:
                engine = drive(self._observer(recorder, output), step)
        except (Interrupted, KeyboardInterrupt) as stop:
            # A second Ctrl-C comes at any moment, and whatever it met is not whole.
            recorder.close(clean_end=isinstance(stop, Interrupted))
            raise Interrupted(f"interrupted; what was recorded is in {output}") from None
        recorder.close(engine.cache.pool_state())

    def _build(self, observer: EngineObserver | None) -> "Engine":
        from engine.engine import Engine

        rig = self._rig
        return Engine(
            rig.config, rig.executor, clock=rig.clock, observer=observer, eos_token_ids=rig.eos_token_ids
        )


class Session(Recording):
    """One model on a device under one engine config."""

    def __init__(
        self,
        loaded: "LoadedModel",
        config: EngineConfig,
        kernels: "KernelSampling | None" = None,
        graphs: GraphOptions = NO_GRAPH_OPTIONS,
    ) -> None:
        """Resolve the config and make the KV pool. Raises ConfigError when that does not fit.

        `kernels` says of which forwards kernels are recorded too, `graphs` which are replayed.
        """
        from engine.executors.device import DeviceExecutor
        from engine.models.loader import default_max_total_tokens
        from ui.kernel_watch import KernelWatch

        pool = config.max_total_tokens or default_max_total_tokens(loaded, config.page_size)
        config = resolved(config, loaded.shape, pool)
        stop = StopRequest()
        self._clock = PatientClock(stop)
        self._loaded = loaded
        on_gpu = loaded.device.type == "cuda"
        self._watch = KernelWatch(kernels, self._clock, on_gpu=on_gpu) if kernels else None
        executor = DeviceExecutor(
            loaded,
            config,
            self._clock,
            probe=self._watch.probe if self._watch else None,
            graphs=graphs.limits(),
        )
        self._asked, self._graphs = graphs, executor.graphs
        executor.capture_graphs()  # else each is captured in the midst of the run
        super().__init__(
            Rig(config, executor, self._clock, loaded.shape, loaded.dtype.itemsize, loaded.eos_token_ids),
            stop,
        )

    def assumptions(self) -> Iterable[str]:
        """Of what was given for graphs, what changes nothing on this device."""
        return self._asked.without_effect(self._graphs)

    def _meta(self, seed: int, workload: Mapping[str, Any]) -> dict[str, Any]:
        meta = run_meta(self._loaded, self.config, self._graphs, seed=seed, workload=workload)
        return {**meta, "kernels": self._watch.about} if self._watch else meta

    def _observer(self, recorder: "Recorder", output: Path) -> EngineObserver:
        if self._watch is None:
            return recorder
        return self._watch.before(recorder, output, self._rig.shape, self._rig.element_bytes)

    def _start_clock(self) -> None:
        self._start_clock_at(0)

    def _start_clock_at(self, t_ns: int) -> None:
        self._clock.restart(SETTLE_NS - t_ns)

    def _warm_up(self) -> None:
        """A short prefill and two decodes that nobody watches: a process's first forwards pay for much."""
        assert self.config.max_total_tokens is not None
        tokens = min(WARM_UP_TOKENS, self.config.max_total_tokens - self.config.page_size - 4)
        if tokens > 0:
            sampling = SamplingParams(max_new_tokens=3, ignore_eos=True)
            self._build(None).run([Request(0, "warm-up", [0] * tokens, sampling)])
