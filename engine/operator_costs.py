"""FLOPs and least bytes of a forward, operator by operator and layer by layer.

The same numbers as `engine.arithmetic.forward_cost`, told apart: over all operators they sum to its columns.
Keys and values count where they are stored, in COPY, not where they are computed.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from engine.arithmetic import ForwardSums
from engine.operators import Operator
from engine.shapes import ModelShape

__all__ = ["OperatorWork", "operator_costs"]


class OperatorWork(NamedTuple):
    """What one operator of one layer must do in a forward."""

    tokens: int  # new tokens it works on; rows with logits for the head and its norm
    flops: int
    bytes: int


def operator_costs(
    shape: ModelShape,
    sums: ForwardSums,
    weight_bytes_per_param: int,
    kv_bytes_per_element: int,
) -> Mapping[tuple[Operator, int | None], OperatorWork]:
    """By operator and layer; layer None is what no layer has: embedding, last norm and head.

    Every layer has all of its operators, those included that have nothing to do in this forward.
    """
    layer = dict(_layer(shape, sums, weight_bytes_per_param, kv_bytes_per_element))
    costs: dict[tuple[Operator, int | None], OperatorWork] = {
        (operator, i): work for i in range(shape.num_layers) for operator, work in layer.items()
    }
    costs.update({(operator, None): work for operator, work in _outer(shape, sums, weight_bytes_per_param)})
    return costs


def _layer(
    shape: ModelShape, sums: ForwardSums, weight_bytes: int, kv_bytes: int
) -> Iterator[tuple[Operator, OperatorWork]]:
    tokens, hidden, ffn = sums.tokens, shape.hidden_size, shape.intermediate_size
    q, kv = shape.q_size, shape.kv_size
    qkv_biases = q + 2 * kv if shape.attention_bias or shape.qkv_bias else 0
    o_biases = hidden if shape.attention_bias else 0
    gate_up_biases, down_biases = (2 * ffn, hidden) if shape.mlp_bias else (0, 0)

    def matrix(inputs: int, outputs: int, biases: int, moved: int) -> OperatorWork:
        """`moved` are the elements of a token that are read and written."""
        params = inputs * outputs
        return OperatorWork(tokens, 2 * tokens * params, (params + biases + tokens * moved) * weight_bytes)

    yield Operator.QKV, matrix(hidden, q + 2 * kv, qkv_biases, hidden + q)
    yield Operator.O, matrix(q, hidden, o_biases, q + 2 * hidden)
    yield Operator.GATE_UP, matrix(hidden, 2 * ffn, gate_up_biases, hidden + ffn)
    yield Operator.DOWN, matrix(ffn, hidden, down_biases, ffn + 2 * hidden)

    def attention(new_tokens: int, pairs: int, tokens_read: int) -> OperatorWork:
        moved = 2 * q * new_tokens * weight_bytes + 2 * kv * tokens_read * kv_bytes
        return OperatorWork(new_tokens, 4 * q * pairs, moved)

    yield (
        Operator.ATTENTION_EXTEND,
        attention(sums.extend_tokens, sums.pairs_prefix + sums.pairs_causal, sums.prefix_tokens),
    )
    yield (
        Operator.ATTENTION_DECODE,
        attention(sums.decode_tokens, sums.pairs_decode, sums.pairs_decode - sums.decode_tokens),
    )
    yield Operator.COPY, OperatorWork(tokens, 0, 2 * kv * tokens * kv_bytes)
    norms = shape.norms_per_layer * hidden + (2 * shape.head_dim if shape.qk_norm else 0)
    yield Operator.NORM, OperatorWork(tokens, 0, norms * weight_bytes)


def _outer(
    shape: ModelShape, sums: ForwardSums, weight_bytes: int
) -> Iterator[tuple[Operator, OperatorWork]]:
    rows, hidden, vocab = sums.rows_with_logits, shape.hidden_size, shape.vocab_size
    yield Operator.OTHER, OperatorWork(sums.tokens, 0, 2 * sums.tokens * hidden * weight_bytes)
    yield Operator.NORM, OperatorWork(rows, 0, hidden * weight_bytes if rows else 0)
    head = shape.head_params
    moved = (head + rows * (hidden + vocab)) * weight_bytes if rows else 0
    yield Operator.HEAD, OperatorWork(rows, 2 * head * rows, moved)
