from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelError
from engine.model_families import FAMILIES
from engine.shapes import ModelShape

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "vocab_size": 128256,
}


def refusal(config: object) -> str:
    with pytest.raises(ModelError) as caught:
        ModelShape.from_hf_config(config, "here/config.json")  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("here/config.json: ")
    return text


def test_reads_the_sizes_of_a_grouped_query_model() -> None:
    shape = ModelShape.from_hf_config(LLAMA_8B, "8b")
    assert (shape.num_layers, shape.num_heads, shape.num_kv_heads, shape.head_dim) == (32, 32, 8, 128)
    assert (shape.q_size, shape.kv_size) == (4096, 1024)
    assert shape.num_params == 8_030_261_248  # as published with the weights
    assert shape.rope_scaling == {"factor": 8.0, "rope_type": "llama3"}


def test_left_out_and_null_fields_take_the_defaults_of_llama() -> None:
    needed = ("architectures", "hidden_size", "intermediate_size", "num_attention_heads")
    config = {key: LLAMA_8B[key] for key in (*needed, "num_hidden_layers", "vocab_size")}
    config |= {"rope_scaling": None, "head_dim": None, "num_key_value_heads": None, "rope_theta": None}
    shape = ModelShape.from_hf_config(config, "plain")
    assert (shape.num_kv_heads, shape.head_dim) == (32, 128)
    assert (shape.rope_theta, shape.rms_norm_eps, shape.max_position_embeddings) == (10_000.0, 1e-6, 2048)
    assert (shape.tie_word_embeddings, shape.attention_bias, shape.mlp_bias) == (False, False, False)
    assert shape.rope_scaling is None


def test_biases_count_as_parameters() -> None:
    plain = ModelShape.from_hf_config(LLAMA_8B, "8b")
    biased = ModelShape.from_hf_config(LLAMA_8B | {"attention_bias": True, "mlp_bias": True}, "8b")
    biases = (4096 + 2 * 1024 + 4096) + (2 * 14336 + 4096)
    assert biased.num_params - plain.num_params == 32 * biases


def test_rope_parameters_are_the_newer_name_of_theta_and_scaling() -> None:
    config = {key: value for key, value in LLAMA_8B.items() if not key.startswith("rope")}
    plain = config | {"rope_parameters": {"rope_theta": 7.0, "rope_type": "default"}}
    assert ModelShape.from_hf_config(plain, "new").rope_theta == 7.0
    assert ModelShape.from_hf_config(plain, "new").rope_scaling is None
    scaled = config | {"rope_parameters": {"rope_theta": 7.0, "rope_type": "linear", "factor": 2.0}}
    assert ModelShape.from_hf_config(scaled, "new").rope_scaling == scaled["rope_parameters"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"architectures": ["OPTForCausalLM"]}, "'OPTForCausalLM' is not supported"),
        ({"architectures": ["A", "B"]}, "architectures names no single model"),
        ({"architectures": {}}, "architectures names no single model"),
        ({"architectures": None, "model_type": "opt"}, "'opt' is not supported"),
        ({"architectures": ["MixtralForCausalLM"], "num_local_experts": 8}, "has a mixture of experts"),
        ({"architectures": ["XForCausalLM"], "text_config": {"num_experts": 4}}, "has a mixture of experts"),
        ({"kv_lora_rank": 512}, "has multi-head latent attention"),
        ({"text_config": {"linear_num_key_heads": 16}}, "has linear attention"),
        ({"architectures": None, "model_type": None}, "architectures names no single model"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": "4096"}, "hidden_size is '4096'"),
        ({"hidden_size": {"a": 1}}, "hidden_size is of type dict"),
        ({"hidden_size": 4097}, "give head_dim"),
        ({"head_dim": 127}, "head_dim 127 is odd"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True"),
        ({"num_hidden_layers": 10**5000}, "num_hidden_layers is a number of 5001 digits"),
        ({"num_key_value_heads": 7}, "32 attention heads cannot share 7"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps is nan"),
        ({"rope_theta": float("inf")}, "rope_theta is inf"),
        ({"rope_theta": [1, 2]}, "rope_theta is of type list"),
        ({"rope_scaling": "linear"}, "rope_scaling is 'linear'"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no'"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu' is not supported"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor 0.5 is not supported"),
    ],
)
def test_names_what_it_refuses(change: dict[str, Any], named: str) -> None:
    assert named in refusal(LLAMA_8B | change)


TINY: dict[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 60,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@pytest.mark.parametrize("biases", [{}, {"attention_bias": True}, {"mlp_bias": True}])
@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_family_has_the_parameters_that_transformers_makes(
    architecture: str, biases: dict[str, bool]
) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(FAMILIES[architecture].model_type, **TINY, **biases)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    ours = TINY | biases | {"architectures": [architecture]}
    assert ModelShape.from_hf_config(ours, "tiny").num_params == model.num_parameters()


@pytest.mark.parametrize("architecture", FAMILIES)
def test_left_out_fields_of_every_family_are_those_of_transformers(architecture: str) -> None:
    from transformers import AutoConfig

    theirs = AutoConfig.for_model(FAMILIES[architecture].model_type)
    sizes = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size")
    config = {key: getattr(theirs, key) for key in sizes} | {"architectures": [architecture]}
    shape = ModelShape.from_hf_config(config, "plain")
    assert shape.num_kv_heads == (theirs.num_key_value_heads or theirs.num_attention_heads)
    assert shape.head_dim == (getattr(theirs, "head_dim", None) or shape.hidden_size // shape.num_heads)
    assert shape.max_position_embeddings == theirs.max_position_embeddings
    assert shape.tie_word_embeddings == theirs.tie_word_embeddings
    assert shape.sliding_window == getattr(theirs, "sliding_window", None)


WINDOWED = {"use_sliding_window": True, "sliding_window": 100}


@pytest.mark.parametrize(
    ("architecture", "fields", "window"),
    [
        ("LlamaForCausalLM", {"sliding_window": 100}, None),
        ("MistralForCausalLM", {}, 4096),
        ("MistralForCausalLM", {"sliding_window": None}, None),
        ("Phi3ForCausalLM", {"sliding_window": 2047}, 2047),
        ("Qwen2ForCausalLM", {"sliding_window": 100}, None),
        ("Qwen2ForCausalLM", WINDOWED | {"max_window_layers": 2}, 100),
        ("Qwen2ForCausalLM", WINDOWED | {"max_window_layers": 3}, None),
        ("Gemma2ForCausalLM", {"sliding_window": 7}, 7),
        ("Gemma2ForCausalLM", {"layer_types": ["full_attention"] * 3}, None),
    ],
)
def test_a_sliding_window_counts_where_a_layer_has_it(
    architecture: str, fields: dict[str, Any], window: int | None
) -> None:
    config = TINY | fields | {"architectures": [architecture]}
    assert ModelShape.from_hf_config(config, "tiny").sliding_window == window


odd_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


FIELDS = {*LLAMA_8B, "head_dim", "rope_parameters", "sliding_window", "layer_types", "text_config"}
FIELDS |= {"use_sliding_window", "max_window_layers", "num_experts"}


@given(st.sampled_from(sorted(FAMILIES)), st.dictionaries(st.sampled_from(sorted(FIELDS)), odd_values))
def test_any_value_anywhere_is_read_or_refused(architecture: str, change: dict[str, Any]) -> None:
    refused = ""
    try:
        ModelShape.from_hf_config(LLAMA_8B | {"architectures": [architecture]} | change, "odd")
    except ModelError as error:
        refused = str(error)
    assert "\n" not in refused
