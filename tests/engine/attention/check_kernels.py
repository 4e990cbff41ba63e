"""Every attention kernel against float64 in Triton's interpreter; run by test_triton.py in a process of its
own, because Triton reads TRITON_INTERPRET when it is imported.
"""

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from engine.attention import triton_paged
from engine.attention.block_shapes import AttentionBlocks, BlockShape
from engine.attention.geometry import Geometry
from engine.attention.triton_extend import extend
from engine.attention.triton_merge import merge_states
from engine.attention.triton_paged import TritonPagedAttention
from engine.attention.triton_store import rotate_and_store
from tests.support.counts import LONG
from tests.support.ragged import LAYER, Ragged, attention_shape, reference

pytestmark = pytest.mark.usefixtures("one_thread", "interpreter", "poisoned_memory")

VALUE_SCALE = 0.2  # as large as the values for which the tolerances are usual
TOLERANCE = {
    torch.float32: {"rtol": 1e-5, "atol": 1e-6},
    torch.float16: {"rtol": 2e-3, "atol": 2e-4},
    torch.bfloat16: {"rtol": 1e-2, "atol": 1e-3},
}
SMALL = AttentionBlocks(extend=BlockShape(32, 16, 4, 1), decode=BlockShape(16, 32, 4, 1))
HEAD_DIMS = [64, 80, 96, 128, 256]

few = settings(max_examples=400 if LONG else 8)
dtypes = st.sampled_from(sorted(TOLERANCE, key=str))
page_sizes = st.sampled_from([1, 3, 16, 128])
heads = st.sampled_from([(1, 1), (4, 2), (3, 3), (5, 1), (20, 1)])


def ragged(
    shape: tuple[int, int, int], page_size: int, rows: list[tuple[int, int]], decodes: int, dtype: torch.dtype
) -> Ragged:
    return Ragged(
        attention_shape(*shape), page_size, rows, decodes, dtype, value_scale=VALUE_SCALE, rotate=False
    )


def assert_attends(made: Ragged, window: int | None = None, blocks: AttentionBlocks = SMALL) -> None:
    out = made.attend(TritonPagedAttention(made.shape, made.kv, window=window, blocks=blocks))
    assert out.dtype == made.kv.dtype
    torch.testing.assert_close(out.double(), made.expected(window), **TOLERANCE[made.kv.dtype])


@few
@given(
    extends=st.lists(st.tuples(st.integers(0, 70), st.integers(0, 40)), max_size=3),
    decodes=st.lists(st.integers(0, 150), max_size=3),
    heads=heads,
    head_dim=st.sampled_from([16, 80]),
    page_size=page_sizes,
    window=st.none() | st.integers(1, 80),
    dtype=dtypes,
)
@example([(0, 1), (31, 0), (0, 33), (16, 1)], [0, 31, 32], (4, 2), 16, 3, None, torch.float16)
@example([(64, 32)], [95], (4, 2), 16, 16, 16, torch.bfloat16)
def test_ragged_rows_attend_as_float64_says(
    extends: list[tuple[int, int]],
    decodes: list[int],
    heads: tuple[int, int],
    head_dim: int,
    page_size: int,
    window: int | None,
    dtype: torch.dtype,
) -> None:
    rows = extends + [(prefix, 1) for prefix in decodes]
    assume(sum(new for _, new in rows))
    assert_attends(ragged((*heads, head_dim), page_size, rows, len(decodes), dtype), window)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_every_head_size(head_dim: int, dtype: torch.dtype) -> None:
    assert_attends(ragged((2, 1, head_dim), 16, [(21, 35), (40, 1)], 1, dtype))


@pytest.mark.parametrize("page_size", [1, 2, 8, 32, 64, 128])
def test_every_page_size(page_size: int) -> None:
    assert_attends(ragged((2, 2, 16), page_size, [(130, 3), (129, 1)], 1, torch.float16))


def test_many_splits_merge_into_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_paged, "INTERPRETED_CORES", 132)
    assert_attends(ragged((2, 1, 16), 16, [(700, 1), (0, 1), (31, 1)], 3, torch.float32))


def test_the_largest_scores_are_not_too_large() -> None:
    made = ragged((2, 1, 16), 4, [(20, 20), (50, 1)], 1, torch.float16)
    made.new[:, : made.shape.q_size] *= 100
    for row, (prefix, _) in zip(made.rotated, made.rows, strict=True):
        row[prefix:, : made.shape.q_size] *= 100
    assert_attends(made)


@few
@given(
    rows=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=2),
    dtype=dtypes,
)
def test_extend_gives_the_log_sum_exp(rows: list[tuple[int, int]], dtype: torch.dtype) -> None:
    tokens = sum(new for _, new in rows)
    assume(tokens)
    made = ragged((4, 2, 16), 4, rows, 0, dtype)
    plan = TritonPagedAttention(made.shape, made.kv, blocks=SMALL).plan(made.batch)
    out, lse = made.new.new_empty((tokens, made.shape.q_size)), torch.empty(tokens, 4)
    geometry = Geometry.of(made.shape, made.kv)
    extend(made.new, made.kv.pool(LAYER), out, plan.extend_columns, geometry, SMALL.extend, lse)
    expected = []
    for qkv, (prefix, _) in zip(made.rotated, rows, strict=True):
        query, key, value = qkv.view(len(qkv), 8, 16).split([4, 2, 2], dim=1)
        expected.append(reference(query[prefix:], key, value, prefix)[1].T)
    torch.testing.assert_close(lse.double(), torch.cat(expected), rtol=1e-5, atol=1e-5)


@few
@given(
    slots=st.lists(st.integers(-1, 30), max_size=9, unique_by=lambda slot: slot if slot >= 0 else object()),
    heads=heads,
    head_dim=st.sampled_from([16, 80, 96]),
    dtype=dtypes,
)
def test_keys_are_rotated_and_stored(
    slots: list[int], heads: tuple[int, int], head_dim: int, dtype: torch.dtype
) -> None:
    geometry = Geometry(*heads, head_dim, page_size=1)
    num_heads, kv_heads = heads
    generator = torch.Generator().manual_seed(len(slots))
    width = (num_heads + 2 * kv_heads) * head_dim
    qkv = torch.randn((len(slots), width), generator=generator).to(dtype)
    angles = torch.randn((len(slots), head_dim // 2), generator=generator)
    expected = qkv.double().view(len(slots), num_heads + 2 * kv_heads, head_dim // 2, 2)
    pairs = torch.view_as_complex(expected[:, :-kv_heads])
    pairs *= torch.polar(torch.ones_like(angles), angles).to(torch.complex128).unsqueeze(1)
    expected = expected.view(qkv.shape)
    pool = torch.full((31, 2 * kv_heads * head_dim), torch.nan, dtype=dtype)

    rotations = torch.polar(torch.ones_like(angles), angles)
    rotate_and_store(qkv, rotations, torch.tensor(slots, dtype=torch.int32), pool, geometry)

    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(qkv.double(), expected, rtol=eps, atol=eps)
    stored = [slot for slot in slots if slot >= 0]
    kept = qkv[[i for i, slot in enumerate(slots) if slot >= 0], num_heads * head_dim :]
    assert torch.equal(pool[stored], kept)
    others = [slot for slot in range(31) if slot not in stored]
    assert pool[others].isnan().all()


@few
@given(
    tokens=st.integers(1, 20),
    head_dim=st.sampled_from([16, 80]),
    cut=st.integers(0, 12),
    scale=st.sampled_from([0.01, 1.0, 60.0]),
    dtype=dtypes,
)
def test_merging_states_is_attention_over_both_key_sets(
    tokens: int, head_dim: int, cut: int, scale: float, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(tokens)
    query = torch.randn((tokens, 2, head_dim), generator=generator) * scale
    key, value = torch.randn((2, 12, 2, head_dim), generator=generator)
    value *= VALUE_SCALE
    states: list[torch.Tensor] = []
    for part in (slice(cut), slice(cut, None)):
        out, lse = reference(query, key[part], value[part], 12)
        states += [out.nan_to_num(0.0).to(dtype).contiguous(), lse.T.float().contiguous()]
    out, lse = query.new_empty(query.shape, dtype=dtype), query.new_empty((tokens, 2))
    merge_states(*states, out, lse)
    expected, expected_lse = reference(query, key, value, 12)
    torch.testing.assert_close(out.double(), expected, **TOLERANCE[dtype])
    torch.testing.assert_close(lse.double(), expected_lse.T, rtol=1e-6, atol=1e-5)


def test_merging_two_states_of_no_keys_gives_none() -> None:
    out, lse = torch.zeros(3, 2, 16), torch.full((3, 2), -torch.inf)
    merged, merged_lse = torch.empty_like(out), torch.empty_like(lse)
    merge_states(out, lse, out, lse, merged, merged_lse)
    assert not merged.any()
    assert torch.equal(merged_lse, lse)
