"""A simulated run: a model's shape, a GPU's peaks and a cost model instead of weights and a device."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.clock import VirtualClock
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.executors.simulated import SimulatedExecutor
from engine.models.checkpoint import Checkpoint
from engine.models.layout import require_seen_context
from engine.observer import EngineObserver, ForwardRecord
from engine.peaks import Peaks
from engine.request import Request
from engine.shapes import ModelShape
from profiler.cost import MAX_TIME_S, RooflineCost
from profiler.cost_profile import GemmProfile, load_gemm_profile
from profiler.gpu_memory import default_chunk_tokens, pool_tokens
from profiler.hardware import Card, Overrides, find_card, peaks_of
from profiler.tensor_parallel import shard
from ui.errors import UserError
from ui.gpu_options import GpuOptions
from ui.interrupt import StopRequest
from ui.provenance import simulated_meta
from ui.recording import Recording, Rig, StepHook, resolved
from ui.simulation_words import assumption_lines, stop_token_lines
from ui.words import count

if TYPE_CHECKING:
    from profiler.recorder import Recorder

__all__ = ["SimulatedDevice", "SimulatedSession", "simulated_device"]

ELEMENT_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
MOST_PAGES = 1 << 22  # of a pool that is not asked for: each page takes host memory, though it holds nothing


@dataclass(frozen=True, slots=True)
class SimulatedDevice:
    """GPUs that share a model, and what is assumed of them."""

    checkpoint: Checkpoint  # of which only shape, stop tokens and tokenizer are used
    card: Card
    peaks: Peaks
    given: Overrides  # peaks that are the user's and not the card's
    shard: ModelShape  # one GPU's part of the model
    profile: GemmProfile | None
    host_overhead_ns: int
    notes: tuple[str, ...]  # choices that were not the user's own

    @property
    def element_bytes(self) -> int:
        """Size of a weight, an activation and a KV element."""
        return ELEMENT_BYTES[self.peaks.dtype]

    @property
    def label(self) -> str:
        """The GPU's name, with their number if there are several."""
        devices = self.peaks.num_devices
        return self.peaks.name if devices == 1 else f"{devices} × {self.peaks.name}"

    def cost_model(self) -> RooflineCost:
        """What says how long a forward takes."""
        return RooflineCost(self.shard, self.peaks, self.element_bytes, profile=self.profile)

    def resolve(self, config: EngineConfig) -> EngineConfig:
        """Fill what was left open as SGLang does for a GPU of this memory.

        Raises ConfigError when the weights leave no room, or the context is longer than a sliding window.
        """
        chunk = config.chunked_prefill_size
        if chunk is None:
            chunk = default_chunk_tokens(self.peaks.memory_bytes)
            chunk = -(-chunk // config.page_size) * config.page_size
        config = replace(config, chunked_prefill_size=chunk)
        fitting = self.fitting_tokens(config)
        if config.max_total_tokens is not None and config.max_total_tokens > fitting:
            raise ConfigError(
                f"--max-total-tokens {config.max_total_tokens}: {count(fitting)} fit beside the weights on "
                f"{self.label}: give no more"
            )
        config = resolved(config, self.checkpoint.shape, min(fitting, MOST_PAGES * config.page_size))
        assert config.context_length is not None
        require_seen_context(self.checkpoint.shape, config.context_length, "simulated")
        return config

    def fitting_tokens(self, config: EngineConfig) -> int:
        """KV tokens that the weights leave room for; the chunk size of `config` must be resolved."""
        return pool_tokens(self.shard, self.peaks, config, self.element_bytes)


def simulated_device(checkpoint: Checkpoint, options: GpuOptions, dtype: str) -> SimulatedDevice:
    """The device that the options describe. UserError or ConfigError, naming the option, if they do not."""
    if options.gpu is None:
        raise UserError("--executor simulated needs a GPU: give --gpu, like --gpu H200")
    if options.profile_gpu is not None and options.profile is None:
        raise UserError("--profile-gpu chooses among the GPUs of a profile: add --profile, or leave it out")
    card, note = find_card(options.gpu)
    given = Overrides(options.peak_tflops, options.bandwidth, options.link_bandwidth)
    dtype = "bfloat16" if dtype == "auto" else dtype
    tp = options.tp or 1
    shape = shard(checkpoint.shape, tp)
    profile = None
    if options.profile is not None:
        measured_on = card if options.profile_gpu is None else find_card(options.profile_gpu)[0]
        profile = load_gemm_profile(options.profile, measured_on, shape.layer_gemm_params)
    return SimulatedDevice(
        checkpoint=checkpoint,
        card=card,
        peaks=peaks_of(card, dtype, tp, given),
        given=given,
        shard=shape,
        profile=profile,
        host_overhead_ns=round((options.host_overhead_us or 0) * 1e3),
        notes=(note,) if note else (),
    )


class SimulatedSession(Recording):
    """One model on simulated GPUs under one engine config, on a clock of its own."""

    simulated = True

    def __init__(self, device: SimulatedDevice, config: EngineConfig) -> None:
        """Resolve the config; errors as `SimulatedDevice.resolve` raises them."""
        self.device = device
        self._asked = config
        self._with_stop_tokens = 0  # requests of the workload that was checked
        self._recorder: Recorder | None = None  # of the run that goes on
        clock = VirtualClock()
        executor = SimulatedExecutor(
            device.cost_model(),
            clock,
            device.checkpoint.shape.vocab_size,
            host_overhead_ns=device.host_overhead_ns,
        )
        # Nobody can say when the model would stop, so outputs end at max_new_tokens: no token ends them.
        rig = Rig(device.resolve(config), executor, clock, device.shard, device.element_bytes, frozenset())
        super().__init__(rig, StopRequest())

    def check(self, requests: Sequence[Request], where: Callable[[Request], str]) -> list[Request]:
        """As of any run; `assumptions` then says how many requests have stop tokens that end nothing."""
        self._with_stop_tokens = sum(bool(request.sampling.stop_token_ids) for request in requests)
        return super().check(requests, where)

    def assumptions(self) -> Iterator[str]:
        """What the run is made of, in lines."""
        yield from assumption_lines(self.device, self.config, self._asked)
        yield from stop_token_lines(self._with_stop_tokens)

    def record_run(
        self,
        requests: Sequence[Request],
        output: Path,
        *,
        workload: Mapping[str, Any],
        seed: int = 0,
        on_step: StepHook = lambda record: None,
    ) -> None:
        """Record the requests without their stop tokens, as the tokens are no model's.

        Raises ConfigError, when what was recorded is sealed, if the run takes more than MAX_TIME_S.
        """

        def step(record: ForwardRecord) -> None:
            on_step(record)
            if record.result.end_ns > MAX_TIME_S * 10**9:
                raise ConfigError(
                    f"the run takes more than {MAX_TIME_S:.0e} s of simulated time, which is the most: give "
                    "higher peaks, a --profile of shorter times, or less work"
                )

        self._recorder = None
        endless = [_without_stop_tokens(request) for request in requests]
        try:
            super().record_run(endless, output, workload=workload, seed=seed, on_step=step)
        except ConfigError as error:
            if self._recorder is None:
                raise
            self._recorder.close(clean_end=False)
            raise ConfigError(f"{error}; what was recorded is in {output}") from None

    def _observer(self, recorder: "Recorder", output: Path) -> EngineObserver:
        self._recorder = recorder
        return recorder

    def _warm_up(self) -> None:
        """Nothing: a simulated forward pays for nothing that a later one finds ready."""

    def _start_clock(self) -> None:
        """Nothing: the clock stands at 0."""

    def _meta(self, seed: int, workload: Mapping[str, Any]) -> dict[str, Any]:
        return simulated_meta(self.device, self.config, seed=seed, workload=workload)


def _without_stop_tokens(request: Request) -> Request:
    if not request.sampling.stop_token_ids:
        return request
    return Request(
        request.rid,
        request.name,
        request.prompt_token_ids,
        replace(request.sampling, stop_token_ids=frozenset()),
        request.arrival_ns,
        request.priority,
    )
