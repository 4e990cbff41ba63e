"""Runs planned forwards through torch on a CPU or a GPU, while the engine plans the next one."""

from array import array
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from engine.arithmetic import kv_bytes_per_token
from engine.attention.protocol import AttentionBackend, AttentionPlan
from engine.attention.torch_paged import TorchPagedAttention
from engine.batch import ForwardBatch
from engine.clock import Clock
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.executors.cuda_lane import CudaLane
from engine.executors.memory import memory_meter
from engine.executors.probe import NO_PROBE, ForwardProbe
from engine.executors.protocol import NO_TOKEN, ForwardResult, PendingForward
from engine.kv_tensors import KVTensors
from engine.marks import mark
from engine.models.loader import LoadedModel
from engine.models.memory import free_bytes
from engine.models.rotary import rotary_table
from engine.operators import Operator
from engine.sampling import Draw, sample
from engine.transfer import to_device

__all__ = ["DeviceExecutor"]


@dataclass(frozen=True, slots=True)
class _Inputs:
    """One forward's columns on the device."""

    input_ids: torch.Tensor  # (tokens,)
    positions: torch.Tensor  # (tokens,)
    logit_rows: torch.Tensor  # (n,) rows whose sample counts
    logit_tokens: torch.Tensor  # (n,) their last tokens' places in the batch
    draws: list[Draw]  # n
    attention: AttentionPlan
    num_rows: int
    awaiting_tokens: torch.Tensor | None = None  # places in the batch that the forward before fills
    awaited_rows: torch.Tensor | None = None  # with the samples of these of its rows


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
        probe: ForwardProbe | None = None,
    ) -> None:
        """`config` must be resolved. `attention` defaults to plain torch over a pool made here.

        Raises ConfigError when the pool is larger than what is free on the device.
        """
        if config.max_total_tokens is None or config.context_length is None:
            raise TypeError("the config has open options: call EngineConfig.resolve first")
        self._model = loaded.model
        self._device = loaded.device
        self._clock = clock
        self._probe = probe or NO_PROBE
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
        batch = replace(batch, pages=_used_pages(batch))
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
        inputs = self._lay_out(batch)
        self._meter.start(large=batch.num_extend_seqs > 0)
        with self._probe.window(batch):
            start_ns = self._clock.now_ns()
            self._last_ids = self._compute(inputs)
            end_ns = self._clock.now_ns()
        held, peak = self._meter.read()
        return ForwardResult(
            self._last_ids.tolist(),
            start_ns,
            end_ns,
            memory_allocated_bytes=held,
            memory_peak_bytes=peak,
        )

    @torch.inference_mode()
    def _enqueue(self, batch: ForwardBatch, lane: CudaLane) -> PendingForward:
        """Put a forward on the stream; nothing here waits for the device."""

        def compute() -> torch.Tensor:
            inputs = self._lay_out(batch)
            self._meter.start(large=batch.num_extend_seqs > 0)
            self._last_ids = self._compute(inputs)
            return self._last_ids

        with self._probe.window(batch):
            return lane.enqueue(compute, self._meter)

    def _compute(self, inputs: _Inputs) -> torch.Tensor:
        """(rows,) sampled ids on the device, NO_TOKEN for rows without logits."""
        mark(Operator.OTHER)
        input_ids = inputs.input_ids
        if inputs.awaiting_tokens is not None and inputs.awaited_rows is not None:
            awaited = self._last_ids.index_select(0, inputs.awaited_rows)
            input_ids = input_ids.index_copy(0, inputs.awaiting_tokens, awaited)
        rotations = self._rotations.index_select(0, inputs.positions)
        logits = self._model.forward(input_ids, rotations, inputs.attention, inputs.logit_tokens)
        mark(Operator.OTHER)
        sampled = logits.new_full((inputs.num_rows,), NO_TOKEN, dtype=torch.int64)
        return sampled.index_copy_(0, inputs.logit_rows, sample(logits, inputs.draws))

    def _lay_out(self, batch: ForwardBatch) -> _Inputs:
        logit_rows = np.flatnonzero(~batch.is_middle)
        ends = np.cumsum(batch.extend_lens)
        awaiting = awaited = None
        if batch.awaited_rows is not None:
            rows = np.flatnonzero(batch.awaited_rows >= 0)
            awaiting, awaited = self._to_device(ends[rows] - 1), self._to_device(batch.awaited_rows[rows])
        return _Inputs(
            input_ids=self._to_device(batch.input_ids),
            positions=self._to_device(_positions(batch, ends)),
            logit_rows=self._to_device(logit_rows),
            logit_tokens=self._to_device(ends[logit_rows] - 1),
            draws=[_draw(batch, row) for row in logit_rows.tolist()],
            attention=self._attention.plan(batch),
            num_rows=batch.num_rows,
            awaiting_tokens=awaiting,
            awaited_rows=awaited,
        )

    def _to_device(self, array: NDArray[np.integer]) -> torch.Tensor:
        return to_device(array.astype(np.int64), self._device)


def _used_pages(batch: ForwardBatch) -> "list[array[int]]":
    """Copies of the pages that a forward reads or writes: rows go on changing while it waits."""
    counts = (-(-batch.seq_lens // batch.page_size)).tolist()
    return [row[:count] for row, count in zip(batch.pages, counts, strict=True)]


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


def _positions(batch: ForwardBatch, ends: NDArray[np.integer]) -> NDArray[np.integer]:
    """(tokens,) each token's position in its sequence."""
    starts_in_batch = ends - batch.extend_lens
    shift = np.repeat(batch.prefix_lens - starts_in_batch, batch.extend_lens)
    positions: NDArray[np.integer] = np.arange(len(batch.input_ids)) + shift
    return positions


def _draw(batch: ForwardBatch, row: int) -> Draw:
    request = batch.requests[row]
    # Counted from the row, not the request, whose output may have grown by the time an overlapped batch runs.
    index = int(batch.prefix_lens[row] + batch.extend_lens[row]) - request.prompt_len
    return Draw(request.sampling.temperature, request.sampling.seed, index)
