"""Runs planned forwards through torch on a CPU or a GPU, while the engine plans the next one."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from engine.arithmetic import kv_bytes_per_token
from engine.attention.protocol import AttentionBackend
from engine.attention.torch_paged import TorchPagedAttention
from engine.batch import ForwardBatch
from engine.clock import Clock
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.executors.cuda_lane import CudaLane
from engine.executors.inputs import ForwardInputs, lay_out, with_own_pages
from engine.executors.memory import memory_meter
from engine.executors.protocol import NO_TOKEN, ForwardResult, PendingForward
from engine.executors.ready import ReadyForward
from engine.kv_tensors import KVTensors
from engine.models.loader import LoadedModel
from engine.models.memory import free_bytes
from engine.models.rotary import rotary_table
from engine.sampling import sample

__all__ = ["DeviceExecutor"]


class DeviceExecutor:
    """Executor with its own KV pool of the config's size; the model may be shared with other executors.

    On a CPU forwards run in one worker thread, in the order of their launches; the thread that plans runs no
    torch operator. On a GPU they queue up on one stream. Either way sampled ids stay where they were computed
    for the forward after.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        config: EngineConfig,
        clock: Clock,
        *,
        attention: AttentionBackend | None = None,
    ) -> None:
        """`config` must be resolved. `attention` defaults to plain torch over a pool made here.

        Raises ConfigError when the pool is larger than what is free on the device.
        """
        if config.max_total_tokens is None or config.context_length is None:
            raise TypeError("the config has open options: call EngineConfig.resolve first")
        self._model = loaded.model
        self._device = loaded.device
        self._clock = clock
        self._meter = memory_meter(loaded.device)
        positions = min(config.context_length, config.max_total_tokens)  # none lies beyond the pool
        self._rotations = rotary_table(loaded.shape, positions, loaded.device)
        self._attention = attention or _paged_attention(loaded, config.max_total_tokens, config.page_size)
        self._last_ids = torch.empty(0, dtype=torch.int64)  # (rows,) of the forward before, on the device
        self._lane = CudaLane(loaded.device, clock) if loaded.device.type == "cuda" else None
        # OpenMP counts threads per calling thread: the worker must be told what the main thread was told.
        self._worker = ThreadPoolExecutor(1, "forward", torch.set_num_threads, (torch.get_num_threads(),))

    def launch(self, batch: ForwardBatch) -> PendingForward:
        """Start one forward; see Executor."""
        batch = with_own_pages(batch)
        if self._lane is not None:
            return self._enqueue(batch, self._lane)
        return self._worker.submit(self.forward, batch)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch) -> ForwardResult:
        """Run one forward on the calling thread, to its end.

        The device interval spans layers and sampling, not the planning on the host.
        """
        if self._lane is not None:
            return self._enqueue(batch, self._lane).result()
        ready = self._ready(batch)
        self._meter.start(large=batch.num_extend_seqs > 0)
        start_ns = self._clock.now_ns()
        sampled = ready.compute()
        end_ns = self._clock.now_ns()
        held, peak = self._meter.read()
        return ForwardResult(
            sampled.tolist(),
            start_ns,
            end_ns,
            memory_allocated_bytes=held,
            memory_peak_bytes=ready.peak_bytes(held, peak),
            graph=ready.graph,
            padded_rows=ready.padded_rows,
        )

    @torch.inference_mode()
    def _enqueue(self, batch: ForwardBatch, lane: CudaLane) -> PendingForward:
        """Put a forward on the stream; nothing here waits for the device."""
        return lane.enqueue(lambda: self._ready(batch), self._meter, large=batch.num_extend_seqs > 0)

    def _ready(self, batch: ForwardBatch) -> ReadyForward:
        inputs = lay_out(batch, self._attention, self._device, self._last_ids)
        return ReadyForward(partial(self._compute, inputs))

    def _compute(self, inputs: ForwardInputs) -> torch.Tensor:
        """(rows,) sampled ids on the device, NO_TOKEN for rows without logits."""
        rotations = self._rotations.index_select(0, inputs.positions)
        logits = self._model.forward(inputs.input_ids, rotations, inputs.attention, inputs.logit_tokens)
        sampled = logits.new_full((inputs.num_rows,), NO_TOKEN, dtype=torch.int64)
        self._last_ids = sampled.index_copy_(0, inputs.logit_rows, sample(logits, inputs.draws))
        return self._last_ids


def _paged_attention(loaded: LoadedModel, max_total_tokens: int, page_size: int) -> TorchPagedAttention:
    needed = max_total_tokens * kv_bytes_per_token(loaded.shape, loaded.dtype.itemsize)
    free = free_bytes(loaded.device)
    if needed > free:
        raise ConfigError(
            f"--max-total-tokens {max_total_tokens}: the KV pool takes {needed / 1e9:.1f} GB and "
            f"{free / 1e9:.1f} GB are free on {loaded.device}: give fewer tokens"
        )
    kv = KVTensors(loaded.shape, max_total_tokens // page_size, page_size, loaded.dtype, loaded.device)
    return TorchPagedAttention(loaded.shape, kv)
