"""The closed forms against torch's own count of what a forward multiplies.

torch counts whole products of matrices. Of an extend row of n new tokens behind a prefix of p it counts
n (p + n) pairs, where the closed form counts n p + n (n + 1) / 2. So torch counts exactly n (n - 1) / 2 pairs
more, those above the diagonal of each row, at 4 FLOPs an element of the query heads in each layer. Nothing
else differs: biases, norms and rotary embedding count nothing in either.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine.arithmetic import ForwardCost, ForwardSums, forward_cost, forward_sums
from engine.attention import torch_paged
from engine.attention.kernels import blockwise_attention
from engine.attention.torch_paged import TorchPagedAttention
from engine.batch import ForwardBatch, Role
from engine.executors.inputs import lay_out
from engine.models.layout import llama_tensors
from engine.models.llama import LlamaModel
from engine.models.rotary import rotary_table
from engine.shapes import ModelShape
from tests.support.ragged import Ragged

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
MOST_EXTEND = 40  # below a block of queries, whose part above the diagonal is computed whole

EXAMPLES = settings(max_examples=min(settings().max_examples // 6, 100))  # an example takes 60 ms


def flops(cost: ForwardCost) -> int:
    return cost.flops_linear + cost.flops_head + cost.flops_attention_extend + cost.flops_attention_decode


def above_diagonal(shape: ModelShape, extends: list[int]) -> int:
    """FLOPs of the pairs that torch counts beyond the closed form."""
    return 4 * shape.q_size * shape.num_layers * sum(n * (n - 1) // 2 for n in extends)


# Our own forward, of any rows together.


@st.composite
def shapes(draw: st.DrawFn) -> ModelShape:
    kv_heads = draw(st.integers(1, 3))
    qk_norm = draw(st.booleans())
    return ModelShape(
        architecture="qwen3" if qk_norm else "llama",
        name="random",
        num_layers=draw(st.integers(2, 3)),
        hidden_size=draw(st.integers(3, 70)),
        num_heads=kv_heads * draw(st.integers(1, 4)),
        num_kv_heads=kv_heads,
        head_dim=2 * draw(st.integers(1, 12)),
        intermediate_size=draw(st.integers(1, 90)),
        vocab_size=draw(st.integers(2, 120)),
        max_position_embeddings=512,
        rope_theta=1e4,
        rms_norm_eps=1e-5,
        tie_word_embeddings=draw(st.booleans()),
        attention_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()),
        qkv_bias=draw(st.booleans()),
        qk_norm=qk_norm,
    )


EXTEND_ROWS = st.tuples(
    st.integers(0, 90), st.integers(1, MOST_EXTEND), st.sampled_from([*Role][: Role.DECODE])
)


@dataclass(frozen=True)
class Counted:
    """What a forward of our own multiplies, by torch's count."""

    batch: ForwardBatch
    flops: int


def count(shape: ModelShape, extends: list[tuple[int, int, Role]], decodes: list[int]) -> Counted:
    """Count a forward; KV and weights may hold anything."""
    rows = [(prefix, new) for prefix, new, _ in extends] + [(prefix, 1) for prefix in decodes]
    ragged = Ragged(shape, 4, rows, len(decodes), torch.float32)
    roles = [role for _, _, role in extends] + [Role.DECODE] * len(decodes)
    batch = replace(ragged.batch, roles=np.array(roles, dtype=np.uint8))
    tensors = {name: torch.ones(size) for name, size in llama_tensors(shape)}
    model = LlamaModel(shape, tensors, pack=False)
    inputs = lay_out(batch, TorchPagedAttention(shape, ragged.kv, blockwise_attention), CPU, torch.zeros(0))
    table = rotary_table(shape, 512, CPU)
    counter = FlopCounterMode(display=False)
    with torch.inference_mode(), counter:
        model.forward(inputs.input_ids, table[inputs.positions], inputs.attention, inputs.logit_tokens)
    return Counted(batch, counter.get_total_flops())


@pytest.fixture(scope="module", autouse=True)
def _rows_alone() -> Any:
    """Decode rows of unlike length are not padded to share a call, which torch would count as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_paged, "CPU_GROUP_BYTES", 0)
        yield


@EXAMPLES
@given(shapes(), st.lists(EXTEND_ROWS, max_size=4), st.lists(st.integers(0, 120), max_size=5))
def test_rows_of_any_kind_in_one_forward(
    shape: ModelShape, extends: list[tuple[int, int, Role]], decodes: list[int]
) -> None:
    if not extends and not decodes:
        decodes = [7]
    counted = count(shape, extends, decodes)
    cost = forward_cost(shape, forward_sums(counted.batch), 4, 4)
    assert counted.flops == flops(cost) + above_diagonal(shape, [n for _, n, _ in extends])


def test_decode_rows_alone_are_counted_alike() -> None:
    shape = shapes_of("llama", {})
    counted = count(shape, [], [0, 31, 90])
    assert counted.flops == flops(forward_cost(shape, forward_sums(counted.batch), 4, 4))


# transformers' forwards, of rows that are as long as one another.

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 40,
    "max_position_embeddings": 512,
    "sliding_window": None,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}


def shapes_of(family: str, sizes: dict[str, Any]) -> ModelShape:
    config = {"architectures": [CLASSES[family]], "model_type": family, **SIZES, **sizes}
    return ModelShape.from_hf_config(config, family)


@st.composite
def configs(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A family, and sizes that its configuration takes."""
    family = draw(st.sampled_from(sorted(CLASSES)))
    kv_heads = draw(st.integers(1, 3))
    heads = kv_heads * draw(st.integers(1, 3))
    head_dim = 2 * draw(st.integers(2, 12))
    sizes = {
        "hidden_size": heads * head_dim if family == "qwen2" else heads * draw(st.integers(1, 20)),
        "intermediate_size": draw(st.integers(1, 90)),
        "num_hidden_layers": draw(st.integers(1, 3)),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": draw(st.integers(2, 120)),
        "tie_word_embeddings": draw(st.booleans()),
    }
    if family != "qwen2":
        sizes["head_dim"] = head_dim
    if family in ("llama", "qwen3"):
        sizes["attention_bias"] = draw(st.booleans())
    if family == "llama":
        sizes["mlp_bias"] = draw(st.booleans())
    return family, sizes


def oracle(family: str, sizes: dict[str, Any]) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(family, **SIZES | sizes, attn_implementation="sdpa")
    return AutoModelForCausalLM.from_config(config).eval()


def counted_by_oracle(model: Any, rows: int, tokens: int, cache: Any) -> int:
    """Of the next `tokens` of each of `rows` sequences, with logits after the last."""
    ids = torch.arange(rows * tokens).view(rows, tokens) % model.config.vocab_size
    counter = FlopCounterMode(display=False)
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH), counter:
        model(ids, cache=cache, use_cache=True, logits_to_keep=1)
    return counter.get_total_flops()


def extend_sums(rows: int, prefix: int, extend: int) -> ForwardSums:
    return ForwardSums(
        extend_tokens=rows * extend,
        decode_tokens=0,
        rows_with_logits=rows,
        pairs_prefix=rows * extend * prefix,
        pairs_causal=rows * extend * (extend + 1) // 2,
        pairs_decode=0,
        prefix_tokens=rows * prefix,
        kv_tokens=rows * (prefix + extend),
    )


@EXAMPLES
@given(
    configs(),
    st.integers(1, 3),
    st.lists(st.integers(1, MOST_EXTEND), min_size=1, max_size=3),
)
def test_extends_and_a_decode_of_other_models_code(
    config: tuple[str, dict[str, Any]], rows: int, chunks: list[int]
) -> None:
    from transformers import DynamicCache

    shape = shapes_of(*config)
    model = oracle(*config)
    cache = DynamicCache(config=model.config)
    prefix = 0
    for extend in chunks:
        cost = forward_cost(shape, extend_sums(rows, prefix, extend), 4, 4)
        expected = flops(cost) + above_diagonal(shape, [extend] * rows)
        assert counted_by_oracle(model, rows, extend, cache) == expected
        prefix += extend
    pairs = rows * (prefix + 1)
    decode = ForwardSums(0, rows, rows, 0, 0, pairs_decode=pairs, prefix_tokens=0, kv_tokens=pairs)
    assert counted_by_oracle(model, rows, 1, cache) == flops(forward_cost(shape, decode, 4, 4))
