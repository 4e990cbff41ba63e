"""Runs planned forwards through torch on a CPU or a GPU."""

import numpy as np
import torch
from numpy.typing import NDArray

from engine.arithmetic import kv_bytes_per_token
from engine.attention.protocol import AttentionBackend
from engine.attention.torch_paged import TorchPagedAttention
from engine.batch import ForwardBatch
from engine.clock import Clock
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.executors.memory import memory_meter
from engine.executors.protocol import NO_TOKEN, ForwardResult
from engine.kv_tensors import KVTensors
from engine.models.loader import LoadedModel
from engine.models.memory import free_bytes
from engine.models.rotary import rotary_table
from engine.sampling import Draw, sample

__all__ = ["DeviceExecutor"]


class DeviceExecutor:
    """Executor with its own KV pool of the config's size; the model may be shared with other executors."""

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

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch) -> ForwardResult:
        """Run one forward; the device interval spans layers and sampling, not the planning on the host."""
        logit_rows = np.flatnonzero(~batch.is_middle)
        draws = [_draw(batch, row) for row in logit_rows.tolist()]
        ends = np.cumsum(batch.extend_lens)
        input_ids = self._to_device(batch.input_ids)
        positions = self._to_device(_positions(batch, ends))
        logit_tokens = self._to_device(ends[logit_rows] - 1)
        plan = self._attention.plan(batch)
        self._meter.start(large=batch.num_extend_seqs > 0)
        start_ns = self._device_now_ns()
        rotations = self._rotations.index_select(0, positions)
        logits = self._model.forward(input_ids, rotations, plan, logit_tokens)
        tokens = sample(logits, draws)
        end_ns = self._device_now_ns()
        held, peak = self._meter.read()
        next_token_ids = np.full(batch.num_rows, NO_TOKEN)
        next_token_ids[logit_rows] = tokens
        return ForwardResult(
            next_token_ids.tolist(),
            start_ns,
            end_ns,
            memory_allocated_bytes=held,
            memory_peak_bytes=peak,
        )

    def _to_device(self, array: NDArray[np.integer]) -> torch.Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(self._device)

    def _device_now_ns(self) -> int:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return self._clock.now_ns()


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
