"""Runs planned forwards through torch on a CPU or a GPU, while the engine plans the next one."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import torch

from engine.arithmetic import kv_bytes_per_token
from engine.attention.choose import paged_attention
from engine.attention.protocol import AttentionBackend, AttentionPlan
from engine.batch import ForwardBatch
from engine.clock import Clock
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.executors.capture import Capture
from engine.executors.cuda_graph import cuda_capture
from engine.executors.cuda_lane import CudaLane
from engine.executors.decode_graphs import DecodeGraphs, StaticAttention
from engine.executors.graph_sizes import DEFAULT_GRAPHS, GraphLimits
from engine.executors.inputs import ForwardInputs, lay_out, with_own_pages
from engine.executors.memory import memory_meter
from engine.executors.piecewise_graphs import PiecewiseGraphs
from engine.executors.probe import NO_PROBE, ForwardProbe
from engine.executors.protocol import NO_TOKEN, ForwardResult, GraphKind, PendingForward
from engine.executors.ready import ReadyForward
from engine.kv_tensors import KVTensors
from engine.marks import mark
from engine.models.layout import require_seen_context
from engine.models.loader import LoadedModel
from engine.models.memory import free_bytes
from engine.models.rotary import rotary_table
from engine.operators import Operator
from engine.sampling import sample
from engine.threads import torch_worker

__all__ = ["DeviceExecutor"]

Forward = Callable[[torch.Tensor, torch.Tensor, AttentionPlan, torch.Tensor], torch.Tensor]
"""`LlamaModel.forward`, or one that gives the same."""

MAX_GRAPH_PAGES = 1 << 24  # of all rows of a decode batch, shared ones counted for each: 64 MiB of numbers


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
        graphs: GraphLimits = DEFAULT_GRAPHS,
        capture: Capture | None = None,
    ) -> None:
        """`config` must be resolved. `attention` is made here, with its pool, if it is not given.

        On a GPU that is Triton's, but not for float32; else plain torch.

        Forwards within `graphs` are replayed, those of decode rows where `attention` allows it. `capture`
        defaults to CUDA's on a GPU and to none on a CPU.

        Raises ConfigError when the pool is larger than what is free on the device, or the context longer than
        the model's sliding window.
        """
        if config.max_total_tokens is None or config.context_length is None:
            raise TypeError("the config has open options: call EngineConfig.resolve first")
        self._model = loaded.model
        self._device = loaded.device
        self._clock = clock
        self._probe = probe or NO_PROBE
        self._meter = memory_meter(loaded.device)
        positions = min(config.context_length, config.max_total_tokens)  # none lies beyond the pool
        require_seen_context(loaded.shape, positions)
        self._worker = torch_worker("forward")
        # In the worker, so that no other thread keeps a team of OpenMP's (see `engine.threads`).
        made = self._worker.submit
        self._rotations = made(rotary_table, loaded.shape, positions, loaded.device).result()
        self._attention = attention or made(_paged_attention, loaded, config).result()
        self._last_ids = torch.empty(0, dtype=torch.int64)  # (rows,) of the forward before, on the device
        if capture is None and loaded.device.type == "cuda":
            capture = cuda_capture(self._meter)
        self._graphs = self._decode_graphs(config, graphs.max_bs, capture)
        self._pieces = self._piecewise_graphs(config, graphs.max_tokens, capture)
        self._lane = CudaLane(loaded.device, clock) if loaded.device.type == "cuda" else None

    @property
    def graphs(self) -> GraphLimits:
        """What is replayed indeed."""
        return GraphLimits(
            max_bs=self._graphs.max_rows if self._graphs else 0,
            max_tokens=self._pieces.max_tokens if self._pieces else 0,
        )

    @torch.inference_mode()
    def capture_graphs(self) -> None:
        """Capture all graphs, before the first forward; else each waits until a batch needs it."""
        with nullcontext() if self._lane is None else torch.cuda.stream(self._lane.stream):
            for graphs in (self._graphs, self._pieces):
                if graphs is not None:
                    graphs.capture_all()

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
        with self._probe.window(batch):
            start_ns = self._clock.now_ns()
            sampled = self._run(ready)
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
        with torch.cuda.stream(lane.stream):
            ready = self._ready(batch)
            self._meter.start(large=batch.num_extend_seqs > 0)
        with self._probe.window(batch):  # not around the above, where a graph may be captured
            return lane.enqueue(ready, self._run, self._meter)

    def _decode_graphs(
        self, config: EngineConfig, max_rows: int, capture: Capture | None
    ) -> DecodeGraphs | None:
        attention = self._attention
        max_rows = min(max_rows, config.max_running_requests or max_rows)
        if capture is None or max_rows == 0 or not isinstance(attention, StaticAttention):
            return None
        pages_of_a_row = -(-len(self._rotations) // config.page_size)
        plan = attention.static_decode_plan(max_rows, min(max_rows * pages_of_a_row, MAX_GRAPH_PAGES))
        return DecodeGraphs(self._model, self._rotations, plan, max_rows, capture)

    def _piecewise_graphs(
        self, config: EngineConfig, max_tokens: int, capture: Capture | None
    ) -> PiecewiseGraphs | None:
        max_tokens = min(max_tokens, config.chunk_tokens or max_tokens, config.max_total_tokens or max_tokens)
        if capture is None or max_tokens == 0:
            return None
        return PiecewiseGraphs(self._model, max_tokens, capture)

    def _ready(self, batch: ForwardBatch) -> ReadyForward:
        """Replayed as a whole or in pieces if there are graphs for the batch, else operator by operator."""
        if self._graphs is not None:
            ready = self._graphs.ready(batch, self._last_ids)
            if ready is not None:
                return ready
        pieces = None if self._pieces is None else self._pieces.fitting(batch)
        inputs = lay_out(batch, self._attention, self._device, self._last_ids)
        if pieces is None:
            return ReadyForward(partial(self._compute, self._model.forward, inputs))
        return ReadyForward(
            partial(self._compute, pieces.forward, inputs),
            GraphKind.PIECEWISE,
            pieces.size - len(batch.input_ids),
            pieces.held_bytes,
        )

    def _run(self, ready: ReadyForward) -> torch.Tensor:
        self._last_ids = ready.compute()
        return self._last_ids

    def _compute(self, forward: Forward, inputs: ForwardInputs) -> torch.Tensor:
        """(rows,) sampled ids on the device, NO_TOKEN for rows without logits."""
        mark(Operator.OTHER)
        rotations = self._rotations.index_select(0, inputs.positions)
        logits = forward(inputs.input_ids, rotations, inputs.attention, inputs.logit_tokens)
        mark(Operator.OTHER)
        sampled = logits.new_full((inputs.num_rows,), NO_TOKEN, dtype=torch.int64)
        return sampled.index_copy_(0, inputs.logit_rows, sample(logits, inputs.draws))


def _paged_attention(loaded: LoadedModel, config: EngineConfig) -> AttentionBackend:
    max_total_tokens, page_size = config.max_total_tokens, config.page_size
    assert max_total_tokens is not None
    needed = max_total_tokens * kv_bytes_per_token(loaded.shape, loaded.dtype.itemsize)
    free = free_bytes(loaded.device)
    if needed > free:
        raise ConfigError(
            f"--max-total-tokens {max_total_tokens}: the KV pool takes {needed / 1e9:.1f} GB and "
            f"{free / 1e9:.1f} GB are free on {loaded.device}: give fewer tokens"
        )
    kv = KVTensors(loaded.shape, max_total_tokens // page_size, page_size, loaded.dtype, loaded.device)
    return paged_attention(loaded.shape, kv)
