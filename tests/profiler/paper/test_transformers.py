"""FLOPs and parameters of small models of every kind against what transformers computes and holds."""

from math import inf
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from engine.peaks import Peaks
from profiler.cost_table import EFFICIENCIES
from profiler.paper.attention import GroupedAttention
from profiler.paper.cost import PaperCost
from profiler.paper.elements import ElementBytes
from profiler.paper.model import PaperModel
from profiler.paper.recurrent import BLOCK_TOKENS, LinearAttention
from profiler.price_sums import chunk_sums
from tests.support.paper_models import SIZES, TINY, tiny

TOKENS = 2 * BLOCK_TOKENS  # whole blocks, as transformers pads to them
GEMMS = ("QKV", "O", "GATE_UP", "DOWN", "HEAD", "ROUTER", "EXPERTS_UP", "EXPERTS_DOWN")
COMPUTES_ONLY = Peaks("endless bandwidth", "bfloat16", 1e12, inf, 1)


def oracle(architecture: str) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    model_type, fields = TINY[architecture]
    config = AutoConfig.for_model(model_type, **SIZES | fields)
    config._attn_implementation = config._experts_implementation = "eager"
    return AutoModelForCausalLM.from_config(config).eval()


def counted(model: Any) -> int:
    """FLOPs of one prompt whose last token alone has logits."""
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model(torch.randint(0, SIZES["vocab_size"], (1, TOKENS)), logits_to_keep=1)
    return int(counter.get_total_flops())


def reckoned(model: PaperModel) -> float:
    """The same on paper. Eager attention computes the whole square; we count its triangle."""
    parts = PaperCost(model, COMPUTES_ONLY, ElementBytes()).operator_seconds(chunk_sums(TOKENS))
    linear = sum(parts[name] for name in GEMMS) * _reached("GEMM")
    grouped = [(x.attention, n) for x, n in model.layers if isinstance(x.attention, GroupedAttention)]
    recurrent = [(x.attention, n) for x, n in model.layers if isinstance(x.attention, LinearAttention)]
    if not grouped and not recurrent:
        return linear + parts["ATTENTION_CAUSAL"] * _reached("ATTENTION_CAUSAL") * 2 * TOKENS / (TOKENS + 1)
    square = sum(4 * n * a.q_size * TOKENS**2 for a, n in grouped)
    triangle = sum(4 * n * a.q_size * TOKENS * (TOKENS + 1) // 2 for a, n in grouped)
    attention = parts["ATTENTION_CAUSAL"] * _reached("ATTENTION_CAUSAL") - triangle + square
    for a, n in recurrent:  # solves triangles where we multiply by inverses, and convolves the padded prompt
        solved = 2 * BLOCK_TOKENS * (a.key_head_dim + a.value_head_dim) * a.num_value_heads * TOKENS
        convolved = 2 * a.conv_size * a.conv_kernel * (TOKENS + a.conv_kernel - 1)
        attention += n * (convolved - solved)
    return linear + attention


def _reached(kind: str) -> float:
    compute = EFFICIENCIES[kind].compute
    assert compute is not None
    return compute * COMPUTES_ONLY.flops_per_s


@pytest.mark.parametrize("architecture", TINY)
def test_flops_and_parameters_are_those_of_transformers(architecture: str) -> None:
    model = oracle(architecture)
    ours = tiny(architecture)
    assert ours.num_params == sum(weights.numel() for weights in model.parameters())
    assert reckoned(ours) == pytest.approx(counted(model), rel=1e-9)
