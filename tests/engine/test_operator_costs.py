"""The split of a forward's FLOPs and bytes by operator, against the forward's own columns."""

from hypothesis import given
from hypothesis import strategies as st

from engine.arithmetic import ForwardSums, forward_cost
from engine.operator_costs import OperatorWork, operator_costs
from engine.operators import Operator
from engine.shapes import ModelShape
from traces.schema import enum_names

LINEAR = (Operator.QKV, Operator.O, Operator.GATE_UP, Operator.DOWN)


@st.composite
def shapes(draw: st.DrawFn) -> ModelShape:
    kv_heads = draw(st.integers(1, 4))
    return ModelShape(
        architecture="llama",
        name="drawn",
        num_layers=draw(st.integers(1, 5)),
        hidden_size=draw(st.integers(1, 64)),
        num_heads=kv_heads * draw(st.integers(1, 4)),
        num_kv_heads=kv_heads,
        head_dim=2 * draw(st.integers(1, 8)),
        intermediate_size=draw(st.integers(1, 64)),
        vocab_size=draw(st.integers(1, 500)),
        max_position_embeddings=4096,
        rope_theta=1e4,
        rms_norm_eps=1e-5,
        tie_word_embeddings=draw(st.booleans()),
        attention_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()),
        qkv_bias=draw(st.booleans()),
        qk_norm=draw(st.booleans()),
        norms_per_layer=draw(st.sampled_from([2, 4])),
    )


@st.composite
def sums(draw: st.DrawFn) -> ForwardSums:
    """Of rows that may all be middle chunks, decode rows or nothing."""
    extends = draw(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 90)), max_size=4))
    decodes = draw(st.lists(st.integers(1, 200), max_size=4))
    prefix = sum(p for p, _ in extends)
    return ForwardSums(
        extend_tokens=sum(n for _, n in extends),
        decode_tokens=len(decodes),
        rows_with_logits=len(decodes) + draw(st.integers(0, len(extends))),
        pairs_prefix=sum(p * n for p, n in extends),
        pairs_causal=sum(n * (n + 1) // 2 for _, n in extends),
        pairs_decode=sum(decodes),
        prefix_tokens=prefix,
        kv_tokens=prefix + sum(n for _, n in extends) + sum(decodes),
    )


@given(shapes(), sums(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_operators_sum_to_the_forwards_columns(
    shape: ModelShape, told: ForwardSums, weight_bytes: int, kv_bytes: int
) -> None:
    costs = operator_costs(shape, told, weight_bytes, kv_bytes)
    whole = forward_cost(shape, told, weight_bytes, kv_bytes)

    def flops(*operators: Operator) -> int:
        return sum(work.flops for (operator, _), work in costs.items() if operator in operators)

    assert flops(*LINEAR) == whole.flops_linear
    assert flops(Operator.ATTENTION_EXTEND) == whole.flops_attention_extend
    assert flops(Operator.ATTENTION_DECODE) == whole.flops_attention_decode
    assert flops(Operator.HEAD) == whole.flops_head
    assert flops(Operator.NORM, Operator.COPY, Operator.OTHER) == 0
    assert sum(work.bytes for work in costs.values()) == (
        whole.bytes_weights + whole.bytes_kv_read + whole.bytes_kv_write + whole.bytes_activation
    )


def test_by_hand() -> None:
    """One layer of hidden 4, two heads of 2 over one KV head, 8 in between; 3 new tokens after 5, fp16."""
    shape = ModelShape(
        "llama", "hand", 1, 4, 2, 1, 2, 8, 10, max_position_embeddings=64, rope_theta=1e4, rms_norm_eps=1e-5
    )
    told = ForwardSums(3, 0, 1, 15, 6, 0, 5, 8)
    costs = operator_costs(shape, told, 2, 2)
    assert costs[Operator.QKV, 0] == OperatorWork(3, 2 * 3 * 4 * 8, 2 * (4 * 8 + 3 * (4 + 4)))
    assert costs[Operator.O, 0] == OperatorWork(3, 2 * 3 * 4 * 4, 2 * (4 * 4 + 3 * (4 + 2 * 4)))
    assert costs[Operator.GATE_UP, 0] == OperatorWork(3, 2 * 3 * 4 * 16, 2 * (4 * 16 + 3 * (4 + 8)))
    assert costs[Operator.DOWN, 0] == OperatorWork(3, 2 * 3 * 8 * 4, 2 * (8 * 4 + 3 * (8 + 2 * 4)))
    assert costs[Operator.ATTENTION_EXTEND, 0] == OperatorWork(3, 4 * 4 * 21, 2 * (3 * 2 * 4 + 5 * 2 * 2))
    assert costs[Operator.ATTENTION_DECODE, 0] == OperatorWork(0, 0, 0)
    assert costs[Operator.COPY, 0] == OperatorWork(3, 0, 2 * 3 * 2 * 2)
    assert costs[Operator.NORM, 0] == OperatorWork(3, 0, 2 * 2 * 4)
    assert costs[Operator.NORM, None] == OperatorWork(1, 0, 2 * 4)
    assert costs[Operator.HEAD, None] == OperatorWork(1, 2 * 4 * 10, 2 * (4 * 10 + 4 + 10))
    assert costs[Operator.OTHER, None] == OperatorWork(3, 0, 2 * 2 * 3 * 4)
    assert len(costs) == 11


def test_operators_are_those_of_the_trace() -> None:
    assert tuple(Operator.__members__) == enum_names("kernels", "op")
