"""The closed forms against torch's own count of what a forward multiplies.

torch counts the attention of an extend row as the full rectangle of new tokens by all tokens, as the MATH
kernel computes it; the closed form counts the causal pairs alone. The two differ by the pairs above the
diagonal: for n new tokens n (n - 1) / 2.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine.arithmetic import ForwardSums, forward_cost
from engine.models.checkpoint import open_checkpoint
from engine.shapes import ModelShape
from tests.support.smollm2 import oracle_from
from tests.support.tiny_models import TINY_CONFIG, write_directory


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("tiny")
    return oracle_from(open_checkpoint(write_directory(path / "model")))


def counted(model: Any, tokens: int, cache: Any) -> int:
    ids = torch.arange(tokens).unsqueeze(0) % model.config.vocab_size
    counter = FlopCounterMode(display=False)
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH), counter:
        model(ids, cache=cache, use_cache=True, logits_to_keep=1)
    return counter.get_total_flops()


def extend_sums(prefix: int, extend: int) -> ForwardSums:
    causal = extend * (extend + 1) // 2
    return ForwardSums(
        extend_tokens=extend,
        decode_tokens=0,
        rows_with_logits=1,
        pairs_prefix=extend * prefix,
        pairs_causal=causal,
        pairs_decode=0,
        prefix_tokens=prefix,
        kv_tokens=prefix + extend,
    )


def test_extends_and_decodes_are_what_torch_counts(model: Any) -> None:
    from transformers import DynamicCache

    shape = ModelShape.from_hf_config(TINY_CONFIG, "tiny")
    cache = DynamicCache(config=model.config)
    above_diagonal = 4 * shape.q_size * shape.num_layers
    for prefix, extend in ((0, 17), (17, 40), (57, 2), (59, 1)):
        cost = forward_cost(shape, extend_sums(prefix, extend), 4, 4)
        ours = cost.flops_linear + cost.flops_head + cost.flops_attention_extend
        assert counted(model, extend, cache) == ours + above_diagonal * (extend * (extend - 1) // 2)
    decode = ForwardSums(0, 1, 1, 0, 0, pairs_decode=61, prefix_tokens=0, kv_tokens=61)
    cost = forward_cost(shape, decode, 4, 4)
    assert counted(model, 1, cache) == cost.flops_linear + cost.flops_head + cost.flops_attention_decode
