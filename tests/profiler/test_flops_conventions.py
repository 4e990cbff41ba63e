"""FLOPs by three conventions: what each leaves out, and what is unknown."""

from pathlib import Path
from typing import Any

import pytest

from engine.arithmetic import ForwardSums, forward_cost
from engine.batch import ForwardMode
from profiler.flops_conventions import flops_conventions
from tests.support.three_runs import record_three_runs
from tests.support.tiny_llama import TINY_SHAPE
from tests.support.traces import MemoryTrace, forward
from traces.reader import open_trace

COSTS = ("flops_linear", "flops_attention_extend", "flops_attention_decode", "flops_head", "bytes_weights")
MODEL = {"dtype": "bfloat16", "num_params": TINY_SHAPE.num_params}
SUMS = ForwardSums(
    extend_tokens=7,
    decode_tokens=3,
    rows_with_logits=4,
    pairs_prefix=70,
    pairs_causal=28,
    pairs_decode=90,
    prefix_tokens=10,
    kv_tokens=107,
)


def mixed(**more: Any) -> dict[str, Any]:
    cost = forward_cost(TINY_SHAPE, SUMS, 2, 2)
    tokens = {"extend_tokens": SUMS.extend_tokens, "decode_tokens": SUMS.decode_tokens}
    told = {name: getattr(cost, name) for name in COSTS}
    return forward(0, 0, 1000, ForwardMode.MIXED, **tokens, **told) | more


def trace(*forwards: dict[str, Any], **model: Any) -> MemoryTrace:
    return MemoryTrace({"forwards": forwards}, {"model": MODEL | model})


def test_each_convention_counts_what_it_says() -> None:
    shape = TINY_SHAPE
    hidden, head_dim, layers = shape.hidden_size, shape.head_dim, shape.num_layers
    qkv = 2 * hidden * head_dim * (shape.num_heads + 2 * shape.num_kv_heads)
    linear = layers * (qkv + 2 * hidden * head_dim * shape.num_heads + 6 * hidden * shape.intermediate_size)
    attention = 4 * shape.num_heads * head_dim * layers
    sglang = SUMS.tokens * linear + attention * (SUMS.pairs_prefix + SUMS.pairs_causal + SUMS.pairs_decode)
    head = 2 * hidden * shape.vocab_size * SUMS.rows_with_logits
    naive = 2 * shape.num_params * SUMS.tokens

    found = flops_conventions(trace(mixed()))
    [row] = found.forwards.to_dicts()
    assert (row["mode"], row["tokens"]) == ("MIXED", 10)
    assert (row["exact"], row["sglang"], row["naive"]) == (sglang + head, sglang, naive)
    assert (row["sglang_ratio"], row["naive_ratio"]) == (
        sglang / (sglang + head),
        naive / (sglang + head),
    )
    assert row["sglang_weight_bytes"] == SUMS.tokens * layers * shape.layer_gemm_params * 2
    assert row["weight_bytes"] == forward_cost(shape, SUMS, 2, 2).bytes_weights
    assert found.ratio("sglang") == row["sglang_ratio"]


def test_totals_are_sums_beyond_any_column() -> None:
    big = 9 * 10**18
    forwards = [mixed(forward_id=i, flops_linear=big, flops_head=0) for i in range(3)]
    assert flops_conventions(trace(*forwards)).total["exact"] > 3 * big > 2**63  # type: ignore[operator]


def test_one_unknown_forward_leaves_the_total_unknown_and_the_others_known() -> None:
    found = flops_conventions(trace(mixed(), mixed(forward_id=1, flops_head=None)))
    assert found.forwards["exact"].null_count() == 1
    assert (found.total["exact"], found.ratio("sglang")) == (None, None)
    assert found.total["sglang"] is not None


@pytest.mark.parametrize("params", [None, 0, "8B", True])
def test_without_the_number_of_parameters_there_is_no_naive_count(params: object) -> None:
    found = flops_conventions(trace(mixed(), num_params=params))
    assert (found.params, found.total["naive"], found.ratio("naive")) == (None, None, None)
    assert found.total["exact"] is not None


def test_of_several_devices_one_s_parameters_count() -> None:
    found = flops_conventions(trace(mixed(), weight_bytes_per_device=2 * 500))
    assert (found.params, found.total["naive"]) == (500, 2 * 500 * 10)


def test_a_trace_without_forwards_has_no_totals() -> None:
    assert set(flops_conventions(MemoryTrace({})).total.values()) == {None}


def test_chunking_changes_the_head_and_nothing_else(tmp_path: Path) -> None:
    runs = record_three_runs(tmp_path)
    whole, chunked = (flops_conventions(open_trace(runs[name])) for name in ("whole", "chunked"))
    assert whole.total["sglang"] == chunked.total["sglang"]
    assert whole.total["exact"] == chunked.total["exact"]
