"""Puts model, engine, recorder and trace together for one recorded run."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.arithmetic import kv_bytes_per_token
from engine.config import EngineConfig
from engine.errors import ConfigError, WorkloadError
from engine.observer import ForwardRecord
from engine.request import Request, SamplingParams
from ui.errors import Interrupted
from ui.interrupt import PatientClock, StopRequest
from ui.provenance import run_meta
from ui.words import binary_bytes

if TYPE_CHECKING:
    from engine.models.loader import LoadedModel

__all__ = ["Session"]

SETTLE_NS = 100_000_000  # between opening the trace and time 0, so that no request waits for the disk
WARM_UP_TOKENS = 64


class Session:
    """One model under one engine config, ready to record one run.

    The first forwards of a process pay for what later ones find ready, so a throw-away run goes before.
    """

    def __init__(self, loaded: "LoadedModel", config: EngineConfig) -> None:
        from engine.executors.device import DeviceExecutor
        from engine.models.loader import default_max_total_tokens

        pool = config.max_total_tokens or default_max_total_tokens(loaded, config.page_size)
        self.loaded = loaded
        self.config = config.resolve(
            max_total_tokens=pool, context_length=loaded.shape.max_position_embeddings
        )
        self._stop = StopRequest()
        self._clock = PatientClock(self._stop)
        try:
            self._executor = DeviceExecutor(loaded, self.config, self._clock)
        except RuntimeError as error:  # what torch raises when memory is short, on the CPU as on a GPU
            raise ConfigError(
                f"--max-total-tokens {pool}: no memory for a KV pool of "
                f"{binary_bytes(pool * kv_bytes_per_token(loaded.shape, loaded.dtype.itemsize))}: give fewer"
            ) from error

    def check(self, requests: Sequence[Request], where: Callable[[Request], str]) -> list[Request]:
        """Raise WorkloadError, with `where`, for a request that can never be served.

        Returns those whose `max_new_tokens` is lowered so that they can.
        """
        from engine.engine import Engine

        gate = Engine(self.config, self._executor)
        for request in requests:
            try:
                gate.submit(request)
            except WorkloadError as error:
                raise WorkloadError(f"{where(request)}: {error}") from None
        return [r for r in requests if r.max_new_tokens < r.sampling.max_new_tokens]

    def record(
        self,
        requests: Sequence[Request],
        output: Path,
        *,
        seed: int = 0,
        workload: Mapping[str, Any],
        on_step: Callable[[ForwardRecord], None] = lambda record: None,
    ) -> None:
        """Run the requests into a new trace at `output`.

        After Ctrl-C the trace is closed with what was recorded, then Interrupted raised.
        """
        from engine.engine import Engine
        from profiler.recorder import Recorder
        from traces.writer import TraceWriter

        self._warm_up()
        meta = run_meta(self.loaded, self.config, seed=seed, workload=workload)
        writer = TraceWriter(output, meta)
        self._clock.restart(SETTLE_NS)
        element_bytes = self.loaded.dtype.itemsize
        recorder = Recorder(writer, self.loaded.shape, clock=self._clock, element_bytes=element_bytes)
        engine = Engine(
            self.config,
            self._executor,
            clock=self._clock,
            observer=recorder,
            eos_token_ids=self.loaded.eos_token_ids,
        )

        def step(record: ForwardRecord) -> None:
            on_step(record)
            self._stop.check()

        try:
            with self._stop:
                engine.run(requests, step)
        except (Interrupted, KeyboardInterrupt):
            recorder.close(engine.cache.pool_state())
            raise Interrupted(f"interrupted; what was recorded is in {output}") from None
        recorder.close(engine.cache.pool_state())

    def _warm_up(self) -> None:
        """A short prefill and two decodes that nobody watches."""
        from engine.engine import Engine

        assert self.config.max_total_tokens is not None
        tokens = min(WARM_UP_TOKENS, self.config.max_total_tokens - self.config.page_size - 4)
        if tokens > 0:
            sampling = SamplingParams(max_new_tokens=3, ignore_eos=True)
            Engine(self.config, self._executor).run([Request(0, "warm-up", [0] * tokens, sampling)])
