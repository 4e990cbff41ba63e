"""The closed formulas against torch's FlopCounterMode on the same forward.

FlopCounterMode sees matrix products that go through torch's own operators: neither oneDNN's packed ones nor
the CPU's flash attention. So the model is loaded unpacked and attention is either blocks of plain products or
`scaled_dot_product_attention` under `sdpa_kernel(MATH)`. Both compute a causal triangle as a full square:
counted = closed form + 4 * heads * head_dim * layers * sum of n (n - 1) / 2 over extend rows of n tokens.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine.arithmetic import forward_cost, forward_sums
from engine.attention.kernels import AttentionKernel, blockwise_attention
from engine.batch import ForwardBatch
from engine.shapes import ModelShape
from tests.support.smollm2 import oracle_from
from tests.support.tiny_llama import TINY_SHAPE, Forwards, TinyCheckpoint, load_tiny

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPES = [
    TINY_SHAPE,
    replace(TINY_SHAPE, num_kv_heads=1, tie_word_embeddings=True),
    replace(TINY_SHAPE, head_dim=40),
]


def sdpa_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    causal: bool = False,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """AttentionKernel whose products are those of torch's public attention."""
    out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal, enable_gqa=True)
    # Torch's public attention keeps the log-sum-exp to itself. Summed here element by element, no product
    # of matrices is counted twice.
    keys = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scores = (query.unsqueeze(3) * keys.unsqueeze(2)).sum(-1) * query.shape[-1] ** -0.5
    if causal:
        scores = scores.where(torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf)
    return out, scores.logsumexp(-1)


def _batches(forwards: Forwards) -> dict[str, ForwardBatch]:
    running = [forwards.add([1] * 12), forwards.add([2] * 12)]
    for request in running:
        forwards.prefill(request, 12)
    half = forwards.add([3] * 60)
    forwards.run([(half, 33)])
    new = forwards.add([4] * 21)
    return {
        "one-shot": forwards.batch([(new, 21)]),
        "middle chunk": forwards.batch([(half, 10)]),
        "last chunk": forwards.batch([(half, 27)]),
        "decode": forwards.batch(decode=running),
        "mixed": forwards.batch([(half, 27), (new, 5)], decode=running),
    }


def _closed_form(shape: ModelShape, batch: ForwardBatch) -> tuple[int, int]:
    """The forward's FLOPs, and what counting causal attention as a full square adds."""
    cost = forward_cost(shape, forward_sums(batch), 4, 4)
    total = cost.flops_linear + cost.flops_attention_extend + cost.flops_attention_decode + cost.flops_head
    new = batch.extend_lens[: batch.num_extend_seqs].tolist()
    above_diagonal = sum(n * (n - 1) // 2 for n in new)
    return total, 4 * shape.q_size * shape.num_layers * above_diagonal


def _count(forward: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        forward()
    return int(counter.get_total_flops())


@pytest.mark.parametrize("kernel", [blockwise_attention, sdpa_attention])
@pytest.mark.parametrize("shape", SHAPES)
def test_closed_form_is_what_torch_counts(shape: ModelShape, kernel: AttentionKernel) -> None:
    forwards = Forwards(load_tiny(shape, pack=False), page_size=4, kernel=kernel)
    for name, batch in _batches(forwards).items():
        total, square = _closed_form(shape, batch)
        assert _count(lambda batch=batch: forwards.executor.forward(batch)) == total + square, name


@pytest.mark.parametrize("shape", SHAPES)
def test_closed_form_is_what_torch_counts_for_transformers(shape: ModelShape) -> None:
    oracle = oracle_from(TinyCheckpoint(Path("tiny"), shape, frozenset()))
    forwards = Forwards(load_tiny(shape))
    total, square = _closed_form(shape, forwards.batch([(forwards.add([5] * 50), 50)]))
    with torch.inference_mode():
        counted = _count(lambda: oracle(torch.tensor([[5] * 50]), logits_to_keep=1))
    assert counted == total + square


def test_a_cut_prompt_costs_the_attention_of_the_whole() -> None:
    forwards = Forwards(load_tiny())
    whole = forwards.add([1] * 100)
    expected = forward_cost(TINY_SHAPE, forward_sums(forwards.batch([(whole, 100)])), 4, 4)
    cut = forwards.add([1] * 100)
    extend = 0
    for count in (1, 32, 7, 60):
        batch = forwards.batch([(cut, count)])
        extend += forward_cost(TINY_SHAPE, forward_sums(batch), 4, 4).flops_attention_extend
        cut.prefix_len += count
    assert extend == expected.flops_attention_extend


def test_the_fast_path_is_invisible_to_the_counter() -> None:
    """If this fails, torch has learned to count it, and the unpacked path is no longer needed."""
    forwards = Forwards(load_tiny())
    batch = forwards.batch([(forwards.add([1] * 30), 30)])
    _, square = _closed_form(TINY_SHAPE, batch)
    assert _count(lambda: forwards.executor.forward(batch)) < _closed_form(TINY_SHAPE, batch)[0] + square
