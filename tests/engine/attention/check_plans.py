"""Plans that stay where they are, and whole engines, on Triton's interpreter; run by test_triton.py."""

from collections.abc import Callable

import pytest
import torch

from engine.attention.protocol import AttentionBackend
from engine.attention.torch_paged import TorchPagedAttention
from engine.attention.triton_paged import TritonPagedAttention
from engine.batch import ForwardMode
from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.capture import Capture, CapturedGraph
from engine.executors.device import DeviceExecutor
from engine.executors.graph_sizes import GraphLimits
from engine.executors.protocol import GraphKind
from engine.kv_tensors import KVTensors
from engine.request import Request, SamplingParams
from engine.shapes import ModelShape
from tests.support.ragged import LAYER, Ragged, attention_shape
from tests.support.tiny_llama import load_tiny

pytestmark = pytest.mark.usefixtures("one_thread", "interpreter", "poisoned_memory")

SHAPE = attention_shape(4, 2, 16)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
POOL = 512


def decodes(prefixes: list[int], page_size: int = 4) -> Ragged:
    return Ragged(SHAPE, page_size, [(prefix, 1) for prefix in prefixes], len(prefixes), torch.float32)


def padded(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    return torch.cat([tensor, tensor.new_ones((rows - len(tensor), tensor.shape[1]))])


def test_a_static_plan_gives_each_batch_its_attention_and_the_rows_beyond_none() -> None:
    made = decodes([90, 3, 0, 64, 17])
    plan = TritonPagedAttention(SHAPE, made.kv).static_decode_plan(max_rows=6, max_pages=64)
    for rows in (5, 2):
        part = decodes([90, 3, 0, 64, 17])
        batch = part.batch
        for column in ("prefix_lens", "extend_lens", "pages", "requests"):
            setattr(batch, column, getattr(batch, column)[:rows])
        narrow = plan.narrowed(4) if rows < 4 else plan
        made.kv.pool(LAYER).copy_(part.kv.pool(LAYER))
        narrow.update(batch)
        qkv = padded(part.new[:rows].clone(), narrow.rows)
        narrow.store(LAYER, qkv, padded(part.rotations[:rows], narrow.rows))
        out = narrow.attend(LAYER, qkv)
        torch.testing.assert_close(out[:rows].double(), part.expected()[:rows], **CLOSE)
        assert not out[rows:].any()
        assert not made.kv.pool(LAYER)[: made.kv.page_size].any()  # the padding page


def test_a_fresh_static_plan_stores_and_sees_nothing() -> None:
    made = decodes([5, 6])
    before = made.kv.pool(LAYER).clone()
    plan = TritonPagedAttention(SHAPE, made.kv).static_decode_plan(max_rows=3, max_pages=8)
    qkv = padded(made.new, 3)
    plan.store(LAYER, qkv, padded(made.rotations, 3))
    assert not plan.attend(LAYER, qkv).any()
    assert torch.equal(made.kv.pool(LAYER), before)


def test_a_batch_that_does_not_fit_a_static_plan_is_told_so() -> None:
    made = decodes([5, 6])
    backend = TritonPagedAttention(SHAPE, made.kv)
    assert backend.static_decode_plan(2, 4).fits(made.batch)
    assert not backend.static_decode_plan(1, 4).fits(made.batch)
    assert not backend.static_decode_plan(2, 3).fits(made.batch)
    with pytest.raises(ValueError, match="does not fit"):
        backend.static_decode_plan(1, 4).update(made.batch)
    with pytest.raises(ValueError, match="narrowed"):
        backend.static_decode_plan(2, 4).narrowed(3)
    extend = Ragged(SHAPE, 4, [(5, 1), (6, 1)], 1, torch.float32)
    assert not backend.static_decode_plan(2, 4).fits(extend.batch)


def serve(
    attention: Callable[[ModelShape, KVTensors], AttentionBackend],
    page_size: int,
    capture: Capture | None = None,
) -> tuple[list[list[int]], set[tuple[ForwardMode, GraphKind]]]:
    """Outputs, and modes and graphs of the forwards that made them."""
    loaded = load_tiny()
    config = EngineConfig(page_size=page_size, chunked_prefill_size=32, enable_mixed_chunk=True)
    config = config.resolve(max_total_tokens=POOL, context_length=loaded.shape.max_position_embeddings)
    kv = KVTensors(loaded.shape, POOL // page_size, page_size, loaded.dtype, loaded.device)
    clock = MonotonicClock()
    executor = DeviceExecutor(
        loaded,
        config,
        clock,
        attention=attention(loaded.shape, kv),
        graphs=GraphLimits(max_bs=0),
        capture=capture,
    )
    engine = Engine(config, executor, clock=clock)
    prompts = [[(7 * i + k) % 200 for i in range(length)] for k, length in enumerate((5, 34))]
    first, second = requests = [
        Request(k, str(k), prompt, SamplingParams(5, ignore_eos=True)) for k, prompt in enumerate(prompts)
    ]
    modes = set()
    engine.submit(requests.pop(0))
    while engine.has_work:
        record = engine.step()
        if record is not None:
            modes.add((record.batch.mode, record.result.graph))
        if requests and {mode for mode, _ in modes} >= {ForwardMode.EXTEND, ForwardMode.DECODE}:
            engine.submit(requests.pop())
    return [list(request.output_ids) for request in (first, second)], modes


@pytest.mark.parametrize("page_size", [1, 16])
def test_an_engine_gives_the_outputs_of_torchs_attention(page_size: int) -> None:
    expected, _ = serve(TorchPagedAttention, page_size)
    outputs, modes = serve(TritonPagedAttention, page_size)
    assert outputs == expected
    assert modes == {(mode, GraphKind.NONE) for mode in ForwardMode}


def test_an_engine_that_replays_in_pieces_gives_the_same() -> None:
    """Pieces are run anew here: what is held is that their buffers and padding go with these kernels."""
    expected, _ = serve(TorchPagedAttention, page_size=16)
    outputs, modes = serve(TritonPagedAttention, 16, lambda work: CapturedGraph(work, 0))
    assert outputs == expected
    assert modes == {
        (ForwardMode.EXTEND, GraphKind.PIECEWISE),
        (ForwardMode.DECODE, GraphKind.NONE),
        (ForwardMode.MIXED, GraphKind.PIECEWISE),
    }
