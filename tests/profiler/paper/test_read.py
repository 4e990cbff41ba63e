"""Configurations as kinds of layers: each architecture's rules, and refusals in one line."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelError
from engine.model_families import FAMILIES
from profiler.paper.attention import GroupedAttention
from profiler.paper.feed_forward import DenseFeedForward, Experts
from profiler.paper.latent import LatentAttention
from profiler.paper.model import PaperModel
from profiler.paper.read import ARCHITECTURES, model_from, read_model
from profiler.paper.recurrent import LinearAttention
from tests.support.cli import TINY_CONFIG
from tests.support.paper_models import SIZES, TINY, tiny
from tests.support.refusals import refused_or_fine


def windows(model: PaperModel) -> list[tuple[int | None, int]]:
    return [(layer.attention.window, count) for layer, count in model.layers]


def dense(architecture: str, **changes: Any) -> PaperModel:
    return model_from({**TINY_CONFIG, "architectures": [architecture], **changes}, "here")


def test_windows_lie_where_each_family_has_them() -> None:
    assert windows(dense("MistralForCausalLM", sliding_window=100)) == [(100, 2)]
    assert windows(dense("MistralForCausalLM", sliding_window=None)) == [(None, 2)]
    gemma2 = dense("Gemma2ForCausalLM", num_hidden_layers=5, sliding_window=100)
    assert windows(gemma2) == [(100, 3), (None, 2)]
    gemma3 = dense("Gemma3ForCausalLM", num_hidden_layers=12, sliding_window=100)
    assert windows(gemma3) == [(100, 10), (None, 2)]
    some = {"use_sliding_window": True, "sliding_window": 100, "max_window_layers": 3, "num_hidden_layers": 8}
    assert windows(dense("Qwen2ForCausalLM", **some)) == [(None, 3), (100, 5)]
    listed = {"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 100}
    assert windows(dense("MistralForCausalLM", **listed)) == [(None, 1), (100, 1)]
    assert windows(tiny("GptOssForCausalLM", sliding_window=9)) == [(9, 2), (None, 1)]


def test_each_kind_of_layer_is_told_apart() -> None:
    deepseek = tiny("DeepseekV3ForCausalLM")
    (first, ones), (other, rest) = deepseek.layers
    assert (ones, rest) == (1, 2)
    assert isinstance(first.attention, LatentAttention)
    assert isinstance(first.feed_forward, DenseFeedForward)
    assert isinstance(other.feed_forward, Experts)
    assert other.feed_forward.shared_width == 2 * 16
    sparse = tiny("Qwen3MoeForCausalLM", num_hidden_layers=4, mlp_only_layers=[1])
    assert [isinstance(layer.feed_forward, Experts) for layer, _ in sparse.layers] == [False, True]
    assert [count for _, count in sparse.layers] == [3, 1]
    hybrid = tiny("Qwen3_5ForCausalLM")
    assert [type(layer.attention) for layer, _ in hybrid.layers] == [LinearAttention, GroupedAttention]
    assert [count for _, count in hybrid.layers] == [3, 1]
    gemma = tiny("Gemma4ForCausalLM")
    heads = [
        (a.head_dim, a.num_kv_heads, a.value_is_key)
        for layer, _ in gemma.layers
        if isinstance(a := layer.attention, GroupedAttention)
    ]
    assert heads == [(16, 2, False), (32, 1, True)]
    assert gemma.tied


def test_a_decoder_of_text_is_found_among_other_senses() -> None:
    model = model_from(
        {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "text_config": {**SIZES, **TINY["Qwen3_5ForCausalLM"][1], "mtp_num_hidden_layers": 1},
            "vision_config": {"depth": 27},
            "tie_word_embeddings": True,
        },
        "here",
    )
    assert model.not_counted == ("1 draft layer", "the vision encoder")
    assert model.tied


def test_a_file_or_its_directory_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TINY_CONFIG))
    other = tmp_path / "org--tiny.config.json"
    other.write_text(json.dumps(TINY_CONFIG))
    assert read_model(folder).name == read_model(folder / "config.json").name == "tiny"
    assert read_model(other).name == "org--tiny"
    with pytest.raises(ModelError, match="no such file: give a config"):
        read_model(tmp_path)
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ModelError, match="is no regular file: give a config"):
        read_model(tmp_path)


def test_a_token_takes_the_biases_of_its_own_experts_alone() -> None:
    plain, biased = tiny("MixtralForCausalLM"), tiny("GptOssForCausalLM")
    for model in (plain, biased):
        (_, experts, _), *_ = model.mixtures()
        all_taken = replace_experts(model, per_token=experts.num_experts)
        one = experts.expert_params(model.hidden_size) + experts.expert_biases(model.hidden_size)
        idle = (experts.num_experts - experts.per_token) * model.num_layers
        assert all_taken.active_params - model.active_params == idle * one
        assert all_taken.active_params == model.num_params


def replace_experts(model: PaperModel, **changes: Any) -> PaperModel:
    """The model with other mixtures."""
    layers = []
    for layer, count in model.layers:
        assert isinstance(layer.feed_forward, Experts)
        layers.append((replace(layer, feed_forward=replace(layer.feed_forward, **changes)), count))
    return replace(model, layers=tuple(layers))


def test_every_dense_family_is_known() -> None:
    assert FAMILIES.keys() <= ARCHITECTURES.keys()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"architectures": ["LamaForCausalLM"]}, "'LamaForCausalLM' is not known: give a model of LlamaForC"),
        ({"architectures": ["Qwen3MoeForCausaLM"]}, "give a model of Qwen3MoeForCausalLM or "),
        ({"architectures": ["ResNet"]}, "architecture 'ResNet' is not known: give a model of "),
        ({"architectures": None}, "architectures names no single model"),
        ({"architectures": ["LlamaForCausalLM", "B"]}, "architectures names no single model"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers is 1000000: it must be at most 4096"),
        ({"text_config": 3}, "text_config is 3: it must be an object"),
        ({"quantization_config": {}}, "quantization_config names no quant_method"),
    ],
)
def test_what_is_not_known_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ModelError) as caught:
        model_from({**TINY_CONFIG, **changes}, "here")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("architecture", "changes", "text"),
    [
        ("MixtralForCausalLM", {"num_experts_per_tok": 5}, "5 experts a token of 4"),
        ("GptOssForCausalLM", {"layer_types": ["full_attention"]}, "layer_types must be a list with one"),
        ("GptOssForCausalLM", {"layer_types": ["full_attention", "x", 3]}, "layer_types holds 'x', which"),
        ("GptOssForCausalLM", {"num_key_value_heads": 3}, "4 attention heads cannot share 3 KV heads"),
        (
            "Gemma4ForCausalLM",
            {"hidden_size_per_layer_input": None},
            "hidden_size_per_layer_input 256 is not",
        ),
        ("Gemma4ForCausalLM", {"num_kv_shared_layers": 2}, "num_kv_shared_layers 2 is not known on paper"),
        ("Qwen3MoeForCausalLM", {"mlp_only_layers": 3}, "mlp_only_layers is 3: it must be a list"),
        ("DeepseekV3ForCausalLM", {"kv_lora_rank": None}, "kv_lora_rank is missing"),
    ],
)
def test_what_makes_no_sense_is_refused(architecture: str, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ModelError, match=f"^{architecture}: ") as caught:
        tiny(architecture, **changes)
    assert text in str(caught.value)


def _fields() -> Iterator[tuple[str, str]]:
    for architecture, (_, fields) in TINY.items():
        for field in (*SIZES, *fields, "layer_types", "attention_bias", "quantization_config"):
            yield architecture, field


@given(
    st.sampled_from([*_fields()]),
    st.sampled_from(
        [None, 0, -1, 1, 3, 2**31, 1.5, True, "x", [], [1], ["full_attention"], {}, float("nan")]
    ),
)
def test_any_value_is_read_or_refused_in_one_line(of: tuple[str, str], value: Any) -> None:
    architecture, field = of
    if refused_or_fine(lambda: tiny(architecture, **{field: value})):
        return
    model = tiny(architecture, **{field: value})
    assert 0 < model.active_params <= model.num_params
