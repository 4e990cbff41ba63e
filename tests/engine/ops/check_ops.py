"""Every operator against float64, by torch and by Triton's interpreter; run by test_ops.py in a process of
its own, because Triton reads TRITON_INTERPRET when it is imported.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.models.llama import LlamaModel
from engine.models.loader import LoadedModel
from engine.ops.protocol import Ops
from engine.ops.torch_ops import TorchOps
from engine.ops.triton_norms import LARGEST_SIZE
from engine.ops.triton_ops import PIECE, TritonOps
from tests.support.counts import LONG
from tests.support.tiny_llama import TINY_SHAPE, Forwards, load_tiny

# The interpreter's numpy warns where numbers become infinite, or of what a select then discards.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# Relative to the largest element of a row. The interpreter cuts 16-bit results short where a GPU rounds.
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10}
EPS = 1e-5

by_each = pytest.mark.parametrize("ops", [TorchOps(), TritonOps()], ids=["torch", "triton"])
few = settings(max_examples=500 if LONG else 10)
dtypes = st.sampled_from(sorted(TOLERANCE, key=str))
tokens = st.integers(0, 6)
sizes = st.integers(1, 200) | st.sampled_from([576, 1023, 1024, 1025])


@pytest.fixture(autouse=True, scope="module")
def poisoned_memory() -> Iterator[None]:
    """New memory holds NaN, or the largest whole number: an element that nobody writes is seen."""
    torch.set_deterministic_debug_mode("error")
    assert torch.empty(3).isnan().all()
    assert torch.ones(1).new_empty(3).isnan().all()
    yield
    torch.set_deterministic_debug_mode("default")


def drawn(seed: int, *size: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(size, generator=torch.Generator().manual_seed(seed)) * scale).to(dtype)


def apart(tensor: torch.Tensor, gap: int) -> torch.Tensor:
    """The same rows, `gap` foreign elements apart."""
    return torch.cat([tensor, tensor.new_full((len(tensor), gap), 1e4)], dim=1)[:, : tensor.shape[1]]


def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    x = x.double()
    return x / (x.square().mean(dim=-1, keepdim=True) + EPS).sqrt() * weight.double()


def assert_close(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.shape == expected.shape
    largest = expected.abs().amax(dim=-1, keepdim=True) if found.numel() else expected
    least = torch.finfo(found.dtype).smallest_normal  # below it numbers lie apart by more than their share
    allowed = TOLERANCE[found.dtype] * largest.clamp(min=least)
    assert ((found.double() - expected.double()).abs() <= allowed).all()  # false for NaN


@by_each
@few
@given(
    st.integers(0, 99), tokens, sizes, dtypes, st.sampled_from([0, 3, 16]), st.sampled_from([1e-4, 1, 1e3])
)
def test_rms_norm(
    ops: Ops, seed: int, tokens: int, size: int, dtype: torch.dtype, gap: int, scale: float
) -> None:
    hidden = apart(drawn(seed, tokens, size, dtype=dtype, scale=scale), gap)
    weight = drawn(seed + 1, size, dtype=dtype)
    found = ops.rms_norm(hidden, weight, EPS)
    assert found.dtype == dtype
    assert_close(found, normed(hidden, weight))


@by_each
@few
@given(st.integers(0, 99), tokens, sizes, dtypes, st.sampled_from([0, 3, 16]))
def test_add_rms_norm(ops: Ops, seed: int, tokens: int, size: int, dtype: torch.dtype, gap: int) -> None:
    update = apart(drawn(seed, tokens, size, dtype=dtype), gap)
    residual = apart(drawn(seed + 1, tokens, size, dtype=dtype), gap)
    weight = drawn(seed + 2, size, dtype=dtype)
    total = update.double() + residual.double()
    found = ops.add_rms_norm(update, residual, weight, EPS)
    assert_close(residual, total)
    assert_close(found, normed(residual, weight))  # of the sum as it was rounded
    assert (residual.as_strided((tokens, gap), (size + gap, 1), size) == 1e4).all()


@by_each
def test_the_longest_rows_and_longer_ones(ops: Ops) -> None:
    for size in (LARGEST_SIZE, LARGEST_SIZE + 1):
        update, residual, weight = (drawn(i, 1, size) for i in range(3))
        total = update + residual
        assert_close(ops.rms_norm(update, weight[0], EPS), normed(update, weight[0]))
        assert_close(ops.add_rms_norm(update, residual, weight[0], EPS), normed(total, weight[0]))
        assert_close(residual, total)


@by_each
@few
@given(st.integers(0, 99), tokens, st.integers(1, 40), st.sampled_from([2, 16, 64, 80, 96, 128, 256]), dtypes)
def test_heads_are_normalised_where_they_lie(
    ops: Ops, seed: int, tokens: int, num_heads: int, head_dim: int, dtype: torch.dtype
) -> None:
    values = 2 * head_dim
    qkv = drawn(seed, tokens, num_heads * head_dim + values, dtype=dtype)
    weight = drawn(seed + 1, num_heads, head_dim, dtype=dtype)
    heads = qkv[:, :-values].view(tokens, num_heads, head_dim)
    expected, rest = normed(heads, weight), qkv[:, -values:].clone()
    ops.rms_norm_heads_(heads, weight, EPS)
    assert_close(heads, expected)
    assert torch.equal(qkv[:, -values:], rest)


@by_each
@few
@given(st.integers(0, 99), tokens, sizes, dtypes, st.sampled_from([0.1, 1, 30]))
def test_silu_and_mul(ops: Ops, seed: int, tokens: int, size: int, dtype: torch.dtype, scale: float) -> None:
    gate_up = drawn(seed, tokens, 2 * size, dtype=dtype, scale=scale)
    gate, up = gate_up.double().chunk(2, dim=-1)
    found = ops.silu_and_mul(gate_up)
    assert found.dtype == dtype
    assert_close(found, gate * gate.sigmoid() * up)


vocabularies = st.integers(1, 50) | st.sampled_from([PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7])


@by_each
@few
@given(st.integers(0, 99), st.integers(0, 4), vocabularies, dtypes)
def test_the_first_of_the_largest_logits_is_chosen(
    ops: Ops, seed: int, rows: int, vocabulary: int, dtype: torch.dtype
) -> None:
    logits = drawn(seed, rows, vocabulary, dtype=dtype).round()  # so that many are equal
    expected = [row.tolist().index(max(row.tolist())) for row in logits]
    assert ops.argmax(logits).tolist() == expected


@by_each
@few
@given(
    st.integers(0, 99),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.1, 0.7, 1.0, 5.0])), max_size=5),
    vocabularies,
    dtypes,
)
def test_a_row_with_noise_takes_the_best_score(
    ops: Ops, seed: int, chosen: list[tuple[int, float]], vocabulary: int, dtype: torch.dtype
) -> None:
    logits = drawn(seed, 4, vocabulary, dtype=dtype, scale=3)
    noise = drawn(seed + 1, len(chosen), vocabulary).exp()
    rows = torch.tensor([row for row, _ in chosen], dtype=torch.int64)
    temperatures = torch.tensor([temperature for _, temperature in chosen])
    found = ops.noisy_argmax(logits, rows, temperatures, noise)
    scores = logits.double()[rows] / temperatures.double().unsqueeze(1) - noise.double()
    assert found.dtype == torch.int64
    assert found.shape == (len(chosen),)
    short_of_best = scores.amax(dim=-1) - scores.gather(1, found.unsqueeze(1)).squeeze(1)
    assert (short_of_best <= 1e-4).all()


@by_each
def test_extreme_temperatures_leave_the_best_or_the_noise(ops: Ops) -> None:
    logits = drawn(0, 2, 2 * PIECE, scale=1e4)
    logits[:, 5] = -torch.inf
    noise = drawn(1, 2, 2 * PIECE)
    noise[:, 5] = -100.0
    limits = torch.finfo(torch.float32)
    rows = torch.tensor([1, 0])
    cold = ops.noisy_argmax(logits, rows, torch.full((2,), limits.tiny), noise)
    assert cold.tolist() == logits[rows].argmax(dim=-1).tolist()
    hot = ops.noisy_argmax(logits[:, 6:], rows, torch.full((2,), limits.max), noise[:, 6:].contiguous())
    assert hot.tolist() == noise[:, 6:].argmin(dim=-1).tolist()


@by_each
def test_a_logit_that_is_no_number_counts_as_the_largest(ops: Ops) -> None:
    logits = drawn(0, 3, PIECE + 9)
    for row, place in enumerate((0, 77, PIECE + 8)):
        logits[row, place] = torch.nan
    assert ops.argmax(logits).tolist() == logits.argmax(dim=-1).tolist() == [0, 77, PIECE + 8]


@by_each
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_logits_that_are_no_numbers_still_name_a_token(ops: Ops, bad: float) -> None:
    for vocabulary in (7, PIECE + 3):
        logits = torch.full((2, vocabulary), bad)
        noise = drawn(0, 2, vocabulary)
        places = [*ops.argmax(logits), *ops.noisy_argmax(logits, torch.arange(2), torch.ones(2), noise)]
        assert all(0 <= place < vocabulary for place in places)


@pytest.mark.parametrize("qk_norm", [False, True])
def test_a_model_gives_the_same_logits_by_either(qk_norm: bool) -> None:
    shape = replace(TINY_SHAPE, num_layers=2, qk_norm=qk_norm)
    plain = load_tiny(shape)
    tensors = plain.checkpoint.tensors(plain.dtype, plain.device)
    fused = LoadedModel(LlamaModel(shape, tensors, ops=TritonOps()), plain.checkpoint)
    logits = []
    for loaded in (plain, fused):
        forwards = Forwards(loaded, page_size=4)
        cut, other = forwards.add(range(13)), forwards.add(range(100, 104))
        forwards.run([(cut, 6), (other, 4)])
        forwards.run([(cut, 7)], decode=[other])
        mixed = forwards.logits
        forwards.run(decode=[cut, other])
        logits.append(torch.cat([mixed, forwards.logits]))
    torch.testing.assert_close(logits[1], logits[0], rtol=1e-4, atol=1e-4)
