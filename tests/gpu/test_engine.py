"""The engine over Triton kernels and decode graphs: what it samples, and what it tells of memory and time."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.gpu.batches import make_batch
from engine.attention.torch_paged import TorchPagedAttention
from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.capture import CapturedGraph
from engine.executors.device import DeviceExecutor
from engine.executors.protocol import GraphKind
from engine.kv_tensors import KVTensors
from engine.models.llama import LlamaModel
from engine.models.loader import LoadedModel
from engine.models.rotary import rotary_table
from engine.observer import ForwardRecord
from engine.request import Request, SamplingParams
from tests.support.tiny_llama import TINY_SHAPE, TinyCheckpoint

pytest.importorskip("triton", reason="Triton is not installed")

# The interpreter's numpy warns of lanes that are discarded.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

POOL = 512
BF16 = torch.bfloat16
LOGIT_TOLERANCE = 0.05  # by which a sampled token's logit may lie below the best


def _model(device: torch.device, dtype: torch.dtype) -> LoadedModel:
    """Weights that bfloat16 holds, in any type."""
    checkpoint = TinyCheckpoint(Path("tiny"), TINY_SHAPE, frozenset({0}))
    tensors = checkpoint.tensors(BF16, device)
    tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    return LoadedModel(LlamaModel(TINY_SHAPE, tensors, pack=False), checkpoint)


def _config(page_size: int, *, mixed: bool = False, rows: int = 16) -> EngineConfig:
    return EngineConfig(
        page_size=page_size, chunked_prefill_size=48, enable_mixed_chunk=mixed, max_running_requests=rows
    ).resolve(max_total_tokens=POOL, context_length=128)


def _rerun(work: Callable[[], None]) -> CapturedGraph:
    """Stands for a CUDA graph where Triton is interpreted."""
    return CapturedGraph(work, 0)


def _executor(loaded: LoadedModel, config: EngineConfig, clock: MonotonicClock) -> DeviceExecutor:
    from engine.attention.triton_paged import TritonPagedAttention

    page_size = config.page_size
    kv = KVTensors(TINY_SHAPE, POOL // page_size, page_size, loaded.dtype, loaded.device)
    attention = TritonPagedAttention(TINY_SHAPE, kv)
    capture = None if loaded.device.type == "cuda" else _rerun
    return DeviceExecutor(loaded, config, clock, attention=attention, capture=capture)


def _requests(count: int, new_tokens: int, longest: int = 70) -> list[Request]:
    rng = np.random.default_rng(1)
    lengths = rng.integers(2, longest, size=count)
    prompts = [rng.integers(TINY_SHAPE.vocab_size, size=length).tolist() for length in lengths]
    sampling = SamplingParams(new_tokens, ignore_eos=True)
    return [Request(i, f"r{i}", prompt, sampling) for i, prompt in enumerate(prompts)]


def _served(
    device: torch.device, requests: list[Request], config: EngineConfig, *, warm: bool = False
) -> list[ForwardRecord]:
    clock = MonotonicClock()
    executor = _executor(_model(device, BF16), config, clock)
    if warm:
        executor.capture_graphs()
    records: list[ForwardRecord] = []
    Engine(config, executor, clock=clock).run(requests, records.append)
    return records


@torch.inference_mode()
def _below_best(device: torch.device, request: Request) -> torch.Tensor:
    """(outputs,) how far each sampled token's logit lies below the best, in float32 and one eager forward."""
    loaded, count = _model(device, torch.float32), len(request.tokens)
    layers = TINY_SHAPE.num_layers
    paged = make_batch(
        TINY_SHAPE, [(0, count)], 0, layers=layers, page_size=1, dtype=torch.float32, device=device
    )
    ids = torch.tensor(request.tokens, device=device)
    plan = TorchPagedAttention(TINY_SHAPE, paged.kv).plan(paged.batch)
    every = torch.arange(count, device=device)
    logits = loaded.model.forward(ids, rotary_table(TINY_SHAPE, count, device), plan, every)
    rows = logits[request.prompt_len - 1 : -1]
    return rows.amax(dim=-1) - rows.gather(1, ids[request.prompt_len :].unsqueeze(1)).squeeze(1)


@pytest.mark.shapes(
    ("page_size", "mixed", "warm"),
    [(16, False, False), (16, True, True), (1, True, False)],
    [(16, False, True)],
)
def test_every_token_is_the_best_or_as_good(
    page_size: int, mixed: bool, warm: bool, device: torch.device
) -> None:
    count, new_tokens, longest, rows = (5, 24, 70, 16) if device.type == "cuda" else (3, 3, 12, 4)
    requests = _requests(count, new_tokens, longest)
    records = _served(device, requests, _config(page_size, mixed=mixed, rows=rows), warm=warm)
    graphs = {(r.result.graph, r.result.padded_rows > 0) for r in records}
    assert {(GraphKind.FULL, True), (GraphKind.PIECEWISE, True)} <= graphs
    for request in requests:
        below = _below_best(device, request)
        assert bool((below < LOGIT_TOLERANCE).all()), below


@pytest.mark.cuda_only
def test_intervals_lie_between_launch_and_result(device: torch.device) -> None:
    records = _served(device, _requests(8, 30), _config(16))
    ends = [record.result.end_ns for record in records]
    assert any(record.overlapped for record in records)
    for record, end_before in zip(records, [0, *ends], strict=False):
        result = record.result
        assert end_before <= result.start_ns < result.end_ns <= record.result_start_ns
        assert result.start_ns >= record.launch_start_ns


@pytest.mark.cuda_only
def test_memory_is_that_of_the_forward(device: torch.device) -> None:
    records = _served(device, _requests(8, 30), _config(16))
    for record in records:
        held, peak = record.result.memory_allocated_bytes, record.result.memory_peak_bytes
        assert held is not None
        assert peak is not None
        rows = len(record.batch.input_ids) + record.result.padded_rows
        own = rows * (2 * TINY_SHAPE.intermediate_size + TINY_SHAPE.hidden_size) * BF16.itemsize
        assert held + own <= peak < held + (64 << 20)


@pytest.mark.cuda_only
def test_a_launch_waits_for_nothing(device: torch.device) -> None:
    """A forward is launched while a kernel keeps the stream busy, and by far sooner than that ends."""
    config, clock = _config(16), MonotonicClock()
    executor = _executor(_model(device, BF16), config, clock)
    Engine(config, executor, clock=clock).run(_requests(4, 8))  # compiled and captured
    assert executor._lane is not None
    engine = Engine(config, executor, clock=clock)
    for request in _requests(4, 8):
        engine.submit(request)
    with torch.cuda.stream(executor._lane.stream):
        torch.cuda._sleep(1_000_000_000)  # type: ignore[no-untyped-call]  # about half a second
        busy = torch.cuda.Event()  # type: ignore[no-untyped-call]
        busy.record()
    assert engine.step() is None  # launched, and nothing to process
    assert not busy.query()  # type: ignore[no-untyped-call]
    assert engine.step() is not None
    assert busy.query()  # type: ignore[no-untyped-call]
