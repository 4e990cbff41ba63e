from array import array
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.arithmetic import (
    ForwardSums,
    activation_estimate_bytes,
    forward_cost,
    forward_sums,
    kv_bytes_per_token,
)
from engine.batch import ForwardBatch, ForwardMode, Role
from engine.request import Request
from engine.shapes import ModelShape

SHAPE = ModelShape(
    architecture="llama",
    name="small",
    num_layers=3,
    hidden_size=10,
    num_heads=4,
    num_kv_heads=2,
    head_dim=6,
    intermediate_size=14,
    vocab_size=50,
    max_position_embeddings=64,
    rope_theta=1e4,
    rms_norm_eps=1e-6,
)


def batch(rows: list[tuple[Role, int, int]]) -> ForwardBatch:
    """A batch of (role, prefix, extend) rows; page tables are not looked at."""
    size = len(rows)
    extends = sum(role != Role.DECODE for role, _, _ in rows)
    lens = np.array([extend for _, _, extend in rows], np.int32)
    return ForwardBatch(
        forward_id=0,
        mode=ForwardMode.MIXED,
        requests=[Request(i, str(i), [1]) for i in range(size)],
        num_extend_seqs=extends,
        page_size=1,
        rids=np.arange(size, dtype=np.int32),
        attempts=np.zeros(size, np.int32),
        roles=np.array([role for role, _, _ in rows], np.uint8),
        prefix_lens=np.array([prefix for _, prefix, _ in rows], np.int32),
        extend_lens=lens,
        cached_tokens=np.zeros(size, np.int32),
        input_ids=np.zeros(int(lens.sum()), np.int32),
        pages=[array("i")] * size,
    )


def sums_of_cuts(cuts: list[int]) -> list[ForwardSums]:
    """One forward per interval between neighbouring cuts."""
    return [forward_sums(batch([(Role.MIDDLE, start, end - start)])) for start, end in pairwise(cuts)]


def test_pairs_of_a_prompt_in_three_chunks() -> None:
    sums = sums_of_cuts([0, 4096, 8192, 12000])
    assert [s.pairs_prefix + s.pairs_causal for s in sums] == [8_390_656, 25_167_872, 38_447_472]


@given(st.integers(0, 11_999), st.sets(st.integers(1, 11_999), max_size=30))
def test_pairs_do_not_depend_on_the_cuts(matched: int, cuts: set[int]) -> None:
    sums = sums_of_cuts([matched, *sorted(c for c in cuts if c > matched), 12_000])
    pairs = sum(s.pairs_prefix + s.pairs_causal for s in sums)
    assert pairs == 72_006_000 - matched * (matched + 1) // 2


@given(st.integers(1, 200), st.integers(0, 200), st.integers(0, 199))
def test_pairs_are_those_counted_one_by_one(extend: int, prefix: int, seq: int) -> None:
    sums = forward_sums(batch([(Role.LAST, prefix, extend), (Role.DECODE, seq, 1)]))
    positions = range(prefix, prefix + extend)
    assert sums.pairs_prefix + sums.pairs_causal == sum(position + 1 for position in positions)
    assert sums.pairs_prefix == sum(prefix for _ in positions)
    assert sums.pairs_decode == seq + 1


def test_sums_of_a_mixed_batch() -> None:
    rows = [(Role.WHOLE, 0, 5), (Role.FIRST, 3, 4), (Role.DECODE, 7, 1), (Role.DECODE, 0, 1)]
    assert forward_sums(batch(rows)) == ForwardSums(
        extend_tokens=9,
        decode_tokens=2,
        rows_with_logits=3,
        pairs_prefix=12,
        pairs_causal=15 + 10,
        pairs_decode=8 + 1,
        prefix_tokens=3,
        kv_tokens=5 + 7 + 8 + 1,
    )


def test_sums_beyond_32_bits_are_exact() -> None:
    rows = [(Role.MIDDLE, 1_000_000, 1_000_001), (Role.DECODE, 2_000_000_000, 1), (Role.DECODE, 2**31 - 2, 1)]
    sums = forward_sums(batch(rows))
    assert sums.pairs_prefix == 1_000_000 * 1_000_001
    assert sums.pairs_causal == 1_000_001 * 1_000_002 // 2
    assert sums.pairs_decode == 2_000_000_001 + 2**31 - 1


def test_an_empty_extend_part_costs_nothing() -> None:
    cost = forward_cost(SHAPE, forward_sums(batch([(Role.DECODE, 4, 1)])), 4, 4)
    assert cost.flops_attention_extend == 0
    assert cost.bytes_kv_read == 4 * kv_bytes_per_token(SHAPE, 4)


def test_flops_are_those_of_sglangs_estimator() -> None:
    sums = forward_sums(batch([(Role.LAST, 30, 20), (Role.FIRST, 0, 9), (Role.DECODE, 99, 1)]))
    h, d, q, kv, ffn = SHAPE.hidden_size, SHAPE.head_dim, SHAPE.num_heads, SHAPE.num_kv_heads, 14
    linear = SHAPE.num_layers * (2 * h * d * (q + 2 * kv) + 2 * h * d * q + 6 * h * ffn)
    attention = 4 * q * d * SHAPE.num_layers
    cost = forward_cost(SHAPE, sums, 2, 2)
    assert cost.flops_linear == (20 + 9 + 1) * linear
    assert cost.flops_attention_extend == attention * (20 * 30 + 210 + 45)
    assert cost.flops_attention_decode == attention * 100


def test_a_forward_without_logits_leaves_the_head_alone() -> None:
    middle = forward_cost(SHAPE, forward_sums(batch([(Role.FIRST, 0, 9)])), 2, 2)
    whole = forward_cost(SHAPE, forward_sums(batch([(Role.WHOLE, 0, 9)])), 2, 2)
    assert middle.flops_head == 0
    assert whole.flops_head == 2 * 10 * 50
    assert whole.bytes_weights - middle.bytes_weights == 2 * (10 * 50 + 10)
    assert whole.bytes_activation - middle.bytes_activation == 2 * (10 + 50)


def test_weights_are_read_once_a_forward_and_not_once_a_token() -> None:
    one = forward_cost(SHAPE, forward_sums(batch([(Role.WHOLE, 0, 1)])), 4, 2)
    many = forward_cost(SHAPE, forward_sums(batch([(Role.WHOLE, 0, 64)])), 4, 2)
    assert one.bytes_weights == 4 * SHAPE.num_params - 4 * 10 * (50 - 1)  # one row of the embedding
    assert many.bytes_weights - one.bytes_weights == 4 * 10 * 63


def test_kv_traffic_counts_old_tokens_in_and_new_tokens_out() -> None:
    sums = forward_sums(batch([(Role.LAST, 30, 20), (Role.DECODE, 99, 1)]))
    cost = forward_cost(SHAPE, sums, 4, 2)
    per_token = 2 * 3 * 2 * 6 * 2
    assert kv_bytes_per_token(SHAPE, 2) == per_token
    assert cost.bytes_kv_read == (30 + 99) * per_token
    assert cost.bytes_kv_write == 21 * per_token


def test_activations_of_one_token_without_logits() -> None:
    cost = forward_cost(SHAPE, forward_sums(batch([(Role.FIRST, 0, 1)])), 4, 4)
    qkv, attention, o = 10 + 24, 24 + 24, 24 + 2 * 10
    gate_up, down = 10 + 14, 14 + 2 * 10
    assert cost.bytes_activation == 4 * (3 * (qkv + attention + o + gate_up + down) + 10)


def test_activation_estimate_is_the_largest_of_its_three_moments() -> None:
    attention, mlp = 2 * 10 + 2 * 24 + 2 * 12, 2 * 10 + 3 * 14
    assert activation_estimate_bytes(SHAPE, 8, 0, 2) == 8 * max(attention, mlp) * 2
    assert activation_estimate_bytes(SHAPE, 8, 8, 2) == max(8 * attention * 2, 16 * 10 * 2 + 8 * 50 * 4)
