"""Attention over pages against a plain float64 softmax, on ragged shapes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from engine.attention import kernels, torch_paged
from engine.attention.decode_groups import group_by_length
from engine.attention.kernels import AttentionKernel, blockwise_attention, cpu_flash_attention, merge
from engine.attention.torch_paged import TorchPagedAttention
from tests.support.ragged import LAYER, Ragged, attention_shape, reference

pytestmark = pytest.mark.usefixtures("one_thread")

KERNELS = [cpu_flash_attention, blockwise_attention]
TOLERANCE = {
    torch.float32: {"rtol": 1e-5, "atol": 1e-5},
    torch.bfloat16: {"rtol": 2e-2, "atol": 2e-2},
}


def _attend(ragged: Ragged, kernel: AttentionKernel | None = None) -> torch.Tensor:
    return ragged.attend(TorchPagedAttention(ragged.shape, ragged.kv, kernel))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short sequences span several blocks, and decode rows several groups."""
    monkeypatch.setattr(kernels, "QUERY_BLOCK", 5)
    monkeypatch.setattr(kernels, "KEY_BLOCK", 7)
    monkeypatch.setattr(torch_paged, "CPU_GROUP_BYTES", 1 << 14)


ROWS = st.lists(st.tuples(st.integers(0, 70), st.integers(1, 40)), max_size=4)
DECODES = st.lists(st.integers(0, 90), max_size=6)
HEADS = st.sampled_from([(1, 1), (4, 2), (6, 2), (3, 3), (4, 1)])


@settings(max_examples=60)
@given(
    extend=ROWS,
    decode=DECODES,
    heads=HEADS,
    head_dim=st.sampled_from([2, 16, 80]),
    page_size=st.sampled_from([1, 4, 16]),
    kernel=st.sampled_from(KERNELS),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_ragged_rows_attend_as_plain_softmax_says(
    extend: list[tuple[int, int]],
    decode: list[int],
    heads: tuple[int, int],
    head_dim: int,
    page_size: int,
    kernel: AttentionKernel,
    dtype: torch.dtype,
) -> None:
    rows = extend + [(prefix, 1) for prefix in decode]
    assume(rows)
    ragged = Ragged(attention_shape(*heads, head_dim), page_size, rows, len(decode), dtype)
    out = _attend(ragged, kernel)
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), ragged.expected(), **TOLERANCE[dtype])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_blocks_and_groups_change_nothing(page_size: int, kernel: AttentionKernel) -> None:
    rows = [(0, 33), (40, 21), (13, 1), (90, 1), (3, 1), (88, 1), (0, 1), (64, 1)]
    ragged = Ragged(attention_shape(4, 2, 16), page_size, rows, 5, torch.float32)
    torch.testing.assert_close(
        _attend(ragged, kernel).double(), ragged.expected(), **TOLERANCE[torch.float32]
    )


def test_the_padding_page_stays_zero() -> None:
    ragged = Ragged(attention_shape(4, 2, 16), 4, [(5, 9), (30, 1), (3, 1)], 2, torch.float32)
    _attend(ragged)
    workspace = ragged.kv.workspace(1)
    assert ragged.kv.gather(LAYER, torch.tensor([0]), workspace).count_nonzero() == 0


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("n", "m", "causal"), [(1, 1, True), (23, 23, True), (4, 50, False), (1, 30, False)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_return_output_and_log_sum_exp(
    kernel: AttentionKernel, n: int, m: int, causal: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(n)
    query, key, value = (torch.randn(1, h, t, 16).to(dtype) for h, t in ((6, n), (2, m), (2, m)))
    out, lse = kernel(query, key, value, causal=causal)
    by_token = [t[0].transpose(0, 1) for t in (query, key, value)]
    expected, expected_lse = reference(*by_token, 0 if causal else m)
    assert out.shape == query.shape
    assert out.dtype == dtype
    torch.testing.assert_close(out[0].transpose(0, 1).double(), expected, **TOLERANCE[dtype])
    # With bfloat16 operands the CPU's flash operator also takes exponentials at a lower precision.
    torch.testing.assert_close(
        lse[0].double(), expected_lse, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-3
    )


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kernel", KERNELS)
def test_masked_keys_do_not_count(kernel: AttentionKernel) -> None:
    query, key, value = (torch.randn(3, h, t, 16) for h, t in ((4, 1), (2, 20), (2, 20)))
    mask = torch.zeros(3, 1, 1, 20)
    lengths = (20, 1, 9)
    for i, length in enumerate(lengths):
        mask[i, ..., length:] = -torch.inf
    out, lse = kernel(query, key, value, mask=mask)
    for i, length in enumerate(lengths):
        alone, alone_lse = kernel(query[i : i + 1], key[i : i + 1, :, :length], value[i : i + 1, :, :length])
        torch.testing.assert_close(out[i : i + 1], alone)
        torch.testing.assert_close(lse[i : i + 1], alone_lse)


@given(cut=st.integers(1, 29), scale=st.sampled_from([0.01, 1.0, 60.0]))
def test_merging_two_parts_is_attention_over_the_whole(cut: int, scale: float) -> None:
    torch.manual_seed(cut)
    query, key, value = (torch.randn(1, 2, t, 8) for t in (4, 30, 30))
    query *= scale
    parts = [blockwise_attention(query, key[:, :, s], value[:, :, s]) for s in (slice(cut), slice(cut, None))]
    merged = merge(*parts[0], *parts[1])
    for got, want in zip(merged, blockwise_attention(query, key, value), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@given(
    lengths=st.lists(st.integers(1, 200), max_size=30),
    max_padding=st.integers(0, 300),
    max_total=st.integers(1, 1000),
)
def test_groups_hold_every_row_once_within_their_limits(
    lengths: list[int], max_padding: int, max_total: int
) -> None:
    groups = group_by_length(lengths, max_padding, max_total)
    assert sorted(row for group in groups for row in group) == list(range(len(lengths)))
    for group in groups:
        padded = len(group) * max(lengths[row] for row in group)
        assert group == sorted(group)
        assert padded - sum(lengths[row] for row in group) <= max_padding
        assert padded <= max_total or len(group) == 1


class _LargestResult(TorchDispatchMode):
    """The most elements of any operator's result."""

    elements = 0

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
        return result


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_operator_makes_an_extend_by_sequence_matrix(kernel: AttentionKernel) -> None:
    prefix, extend = 1500, 2000
    ragged = Ragged(attention_shape(2, 1, 16), 16, [(prefix, extend)], 0, torch.float32)
    with _LargestResult() as largest:
        _attend(ragged, kernel)
    assert largest.elements < extend * (prefix + extend) / 4
