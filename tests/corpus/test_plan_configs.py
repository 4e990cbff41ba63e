"""Published configurations of every architecture on paper: parameters, KV, and a point on every card."""

import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ConfigError
from profiler.hardware import all_cards
from profiler.paper.device import paper_device
from profiler.paper.memory import PaperMemory
from profiler.paper.model import PaperModel
from profiler.paper.plan import paper_plan
from profiler.paper.point import LARGEST_TOKENS, paper_point
from profiler.paper.read import read_model

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
CONFIGS = CORPUS / "configs"
GEMMS = CORPUS / "measured" / "vidur_layer_gemm_vs_tokens.csv"
PUBLISHED_BILLIONS = {  # all, and those that a token takes
    "Qwen--Qwen3-235B-A22B": (235, 22),
    "Qwen--Qwen3-30B-A3B": (30.5, 3.3),
    "deepseek-ai--DeepSeek-V3": (671, 37),
    "google--gemma-4-26B-A4B": (25.2, 3.8),
    "microsoft--Phi-mini-MoE-instruct": (7.6, 2.4),
    "mistralai--Mixtral-8x7B-v0.1": (46.7, 12.9),
    "openai--gpt-oss-120b": (117, 5.1),
    "openai--gpt-oss-20b": (21, 3.6),
    "Qwen--Qwen3.5-27B": (27, 27),
}
KV_BYTES = {  # of a token in 16 bits, while no window is full
    "deepseek-ai--DeepSeek-V3": 2 * 35_136,
    "meta-llama--Meta-Llama-3.1-8B": 131_072,
    "Qwen--Qwen3.5-27B": 16 * 2 * 4 * 256 * 2,
    "google--gemma-4-26B-A4B": 2 * 2 * (25 * 8 * 256 + 5 * 2 * 512),
    "openai--gpt-oss-120b": 36 * 2 * 8 * 64 * 2,
}

pytestmark = pytest.mark.skipif(not CONFIGS.is_dir(), reason=f"no model configurations at {CONFIGS}")
NAMES = sorted(path.name.removesuffix(".config.json") for path in CONFIGS.glob("*.config.json"))


@cache
def read(name: str) -> PaperModel:
    return read_model(CONFIGS / f"{name}.config.json")


def oracle(name: str) -> Any:
    """Transformers' own model of text, without memory."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = json.loads((CONFIGS / f"{name}.config.json").read_text())
    text = config.get("text_config", config)
    kept = {key: value for key, value in text.items() if key not in ("auto_map", "quantization_config")}
    if "tie_word_embeddings" in config:
        kept["tie_word_embeddings"] = config["tie_word_embeddings"]
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(**kept))


def test_there_are_configurations_of_every_kind() -> None:
    assert len(NAMES) == 19
    assert PUBLISHED_BILLIONS.keys() | KV_BYTES.keys() <= {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_transformers(name: str) -> None:
    assert read(name).num_params == sum(weights.numel() for weights in oracle(name).parameters())


@pytest.mark.parametrize("name", PUBLISHED_BILLIONS)
def test_parameters_are_those_published(name: str) -> None:
    model = read(name)
    total, active = PUBLISHED_BILLIONS[name]
    assert model.num_params / 1e9 == pytest.approx(total, rel=0.01)
    without = 0 if model.tied else model.head_params  # the embedding, of which a token takes one row
    least, most = (model.active_params - without) / 1e9, model.active_params / 1e9
    assert least * 0.97 <= active <= most * 1.03


@pytest.mark.parametrize("name", KV_BYTES)
def test_a_token_keeps_what_its_layers_say(name: str) -> None:
    model = read(name)
    device = paper_device(model, "B300")
    memory = PaperMemory(model, device.size, device.peaks.memory_bytes, 1, 1, 4096, 4096)
    assert memory.kv_token_bytes == KV_BYTES[name]


def test_every_configuration_has_a_point_on_every_card_with_known_peaks() -> None:
    known = [card for card in all_cards() if {"bf16_dense_tflops", "bandwidth_tb_s"} <= card.values.keys()]
    assert len(known) >= 25
    for at, name in enumerate(NAMES):
        model = read(name)
        for card in (known[at % len(known)], known[-1 - at % len(known)]):  # each configuration, each card
            device = paper_device(model, card.name, dtype="bf16")
            found = paper_point(device.cost_model(), min(LARGEST_TOKENS, model.max_position_embeddings))
            assert found.status in ("ok", "not_saturated")
            assert (found.tokens is None) == (found.status == "not_saturated")


def test_mixtures_saturate_later_than_dense_models_of_their_active_size() -> None:
    points = {}
    for name in ("Qwen--Qwen3-30B-A3B", "Qwen--Qwen3-8B", "openai--gpt-oss-120b"):
        found = paper_point(paper_device(read(name), "H200").cost_model(), LARGEST_TOKENS)
        points[name] = found.tokens
    dense = points.pop("Qwen--Qwen3-8B")
    assert dense is not None
    assert all(tokens is not None and tokens > 2 * dense for tokens in points.values())


def test_too_large_a_model_is_refused_with_what_would_do() -> None:
    model = read("deepseek-ai--DeepSeek-V3")
    with pytest.raises(ConfigError, match="leave no KV of 4,096 tokens: give --tp 8"):
        paper_plan(model, paper_device(model, "H200"))


@pytest.mark.skipif(not GEMMS.is_file(), reason=f"no measured GEMM times at {GEMMS}")
def test_a_measured_profile_moves_the_point() -> None:
    model = read("meta-llama--Meta-Llama-3.1-8B")
    sheet = paper_device(model, "H100 SXM5")
    measured = paper_device(model, "H100 SXM5", profile=GEMMS)
    assert measured.profile is not None
    assert measured.profile.group.gpu == "h100"
    on_paper = paper_point(sheet.cost_model(), LARGEST_TOKENS).tokens
    by_profile = paper_point(measured.cost_model(), LARGEST_TOKENS).tokens
    assert on_paper is not None
    assert by_profile is not None
    assert by_profile > 1.2 * on_paper


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_every_configuration_has_a_plan_on_eight_gpus_or_fewer(name: str) -> None:
    model = read(name)
    for tp in (1, 2, 4, 8):
        try:
            plan = paper_plan(model, paper_device(model, "H200", tp=tp))
        except ConfigError:
            continue
        assert plan.start.plateau_share is not None
        assert plan.start.plateau_share > 0.8  # the smallest models wait for launches most
        assert plan.memory.requests(plan.start.options.chunk_tokens) > 0
        return
    pytest.fail(f"{name} fits on no eight H200")
