"""Attention over pages against a plain float32 softmax, on ragged shapes."""

import random
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from engine.attention import kernels, torch_paged
from engine.attention.decode_groups import group_by_length
from engine.attention.kernels import AttentionKernel, blockwise_attention, cpu_flash_attention, merge
from engine.attention.torch_paged import TorchPagedAttention
from engine.batch import ForwardBatch, ForwardMode, Role
from engine.kv_tensors import KVTensors
from engine.request import Request
from engine.shapes import ModelShape

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
KERNELS = [cpu_flash_attention, blockwise_attention]
TOLERANCE = {
    torch.float32: {"rtol": 1e-5, "atol": 1e-5},
    torch.bfloat16: {"rtol": 2e-2, "atol": 2e-2},
}


def _shape(num_heads: int, num_kv_heads: int, head_dim: int) -> ModelShape:
    return ModelShape(
        architecture="llama",
        name="attention alone",
        num_layers=2,
        hidden_size=8,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        intermediate_size=8,
        vocab_size=8,
        max_position_embeddings=4096,
        rope_theta=10_000.0,
        rms_norm_eps=1e-5,
    )


def _reference(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, first_position: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, heads, dim) queries at consecutive positions over (m, kv heads, dim): output and log-sum-exp."""
    group = query.shape[1] // key.shape[1]
    key, value = (t.float().repeat_interleave(group, dim=1) for t in (key, value))
    scores = torch.einsum("nhd,mhd->hnm", query.float(), key) * query.shape[2] ** -0.5
    positions = torch.arange(first_position, first_position + query.shape[0]).unsqueeze(1)
    scores = scores.masked_fill(torch.arange(key.shape[0]) > positions, -torch.inf)
    out = torch.einsum("hnm,mhd->nhd", scores.softmax(dim=-1), value)
    return out, scores.logsumexp(dim=-1)


class _Ragged:
    """Sequences of random keys and values in pages in random order, with strangers' values all around."""

    def __init__(
        self, shape: ModelShape, page_size: int, rows: list[tuple[int, int]], decodes: int, dtype: torch.dtype
    ) -> None:
        """`rows` are (prefix, extend); the last `decodes` of them are decode rows."""
        self.shape, self.dtype = shape, dtype
        self.rows = rows
        generator = torch.Generator().manual_seed(len(rows))
        num_pages = sum(-(-(p + e) // page_size) for p, e in rows) + 3
        self.kv = KVTensors(shape, num_pages, page_size, dtype, CPU)
        free = list(range(1, num_pages + 1))
        random.Random(3).shuffle(free)
        pages = [array("i", [free.pop() for _ in range(-(-(p + e) // page_size))]) for p, e in rows]
        slots = torch.arange(page_size, (num_pages + 1) * page_size)
        self.qkv: list[torch.Tensor] = []
        for prefix, extend in rows:
            size = (prefix + extend, shape.q_size + 2 * shape.kv_size)
            self.qkv.append(torch.randn(size, generator=generator).to(dtype))
        for layer in range(shape.num_layers):
            self.kv.write(layer, slots, torch.full((len(slots), 2 * shape.kv_size), 1e4, dtype=dtype))
        for (prefix, _), row_pages, qkv in zip(rows, pages, self.qkv, strict=True):
            row_slots = [row_pages[p // page_size] * page_size + p % page_size for p in range(prefix)]
            self.kv.write(1, torch.tensor(row_slots, dtype=torch.long), qkv[:prefix, shape.q_size :])
        self.batch = self._batch(pages, page_size, decodes)

    def _batch(self, pages: list["array[int]"], page_size: int, decodes: int) -> ForwardBatch:
        num = len(self.rows)
        prefix_lens, extend_lens = np.array(self.rows, dtype=np.int32).T
        zeros = np.zeros(num, dtype=np.int32)
        return ForwardBatch(
            forward_id=0,
            mode=ForwardMode.MIXED,
            requests=[Request(i, str(i), [0]) for i in range(num)],
            num_extend_seqs=num - decodes,
            page_size=page_size,
            rids=zeros,
            attempts=zeros,
            roles=np.array([Role.LAST] * (num - decodes) + [Role.DECODE] * decodes, dtype=np.uint8),
            prefix_lens=prefix_lens,
            extend_lens=extend_lens,
            cached_tokens=zeros,
            input_ids=np.zeros(int(extend_lens.sum()), dtype=np.int32),
            pages=pages,
        )

    def attend(self, kernel: AttentionKernel | None = None) -> torch.Tensor:
        backend = TorchPagedAttention(self.shape, self.kv, kernel)
        new = torch.cat([qkv[prefix:] for qkv, (prefix, _) in zip(self.qkv, self.rows, strict=True)])
        return backend.plan(self.batch).attend(1, new)

    def expected(self) -> torch.Tensor:
        outs = []
        for qkv, (prefix, _) in zip(self.qkv, self.rows, strict=True):
            heads = qkv.view(len(qkv), -1, self.shape.head_dim)
            query, key, value = heads.split([self.shape.num_heads, *[self.shape.num_kv_heads] * 2], dim=1)
            out, _ = _reference(query[prefix:], key, value, prefix)
            outs.append(out.reshape(len(out), -1))
        return torch.cat(outs)


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
    ragged = _Ragged(_shape(*heads, head_dim), page_size, rows, len(decode), dtype)
    out = ragged.attend(kernel)
    assert out.dtype == dtype
    torch.testing.assert_close(out.float(), ragged.expected(), **TOLERANCE[dtype])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_blocks_and_groups_change_nothing(page_size: int, kernel: AttentionKernel) -> None:
    rows = [(0, 33), (40, 21), (13, 1), (90, 1), (3, 1), (88, 1), (0, 1), (64, 1)]
    ragged = _Ragged(_shape(4, 2, 16), page_size, rows, 5, torch.float32)
    torch.testing.assert_close(ragged.attend(kernel), ragged.expected(), **TOLERANCE[torch.float32])


def test_the_padding_page_stays_zero() -> None:
    ragged = _Ragged(_shape(4, 2, 16), 4, [(5, 9), (30, 1), (3, 1)], 2, torch.float32)
    ragged.attend()
    workspace = ragged.kv.workspace(1)
    assert ragged.kv.gather(1, torch.tensor([0]), workspace).count_nonzero() == 0


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
    expected, expected_lse = _reference(*by_token, 0 if causal else m)
    assert out.shape == query.shape
    assert out.dtype == dtype
    torch.testing.assert_close(out[0].transpose(0, 1).float(), expected, **TOLERANCE[dtype])
    # With bfloat16 operands the CPU's flash operator also takes exponentials at a lower precision.
    torch.testing.assert_close(lse[0], expected_lse, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-3)


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
    ragged = _Ragged(_shape(2, 1, 16), 16, [(prefix, extend)], 0, torch.float32)
    with _LargestResult() as largest:
        ragged.attend(kernel)
    assert largest.elements < extend * (prefix + extend) / 4
