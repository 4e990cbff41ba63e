import json
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.models.checkpoint import Checkpoint, open_checkpoint
from engine.models.gguf_header import read_header
from engine.models.loader import load_model
from engine.models.rotary import inverse_frequencies
from engine.shapes import ModelShape
from tests.support.refusals import flips, refused, refused_or_fine
from tests.support.smollm2 import smollm2_checkpoint, smollm2_oracle, smollm2_path
from tests.support.tiny_models import TINY_CONFIG, tiny_weights, write_gguf

CPU = torch.device("cpu")


def load(path: Path) -> dict[str, torch.Tensor]:
    """Open, read the weights and build the tokenizer: everything that reads the file."""
    checkpoint = open_checkpoint(path)
    checkpoint.tokenizer()
    return checkpoint.tensors(torch.float32, CPU)


def test_smollm2_is_described_by_its_metadata() -> None:
    checkpoint = smollm2_checkpoint()
    shape = checkpoint.shape
    assert (shape.num_layers, shape.hidden_size, shape.intermediate_size) == (30, 576, 1536)
    assert (shape.num_heads, shape.num_kv_heads, shape.head_dim, shape.vocab_size) == (9, 3, 64, 49152)
    assert (shape.rope_theta, shape.max_position_embeddings) == (100_000.0, 8192)
    assert shape.rms_norm_eps == pytest.approx(1e-5)
    assert shape.tie_word_embeddings
    assert shape.num_params == 134_515_008
    assert checkpoint.eos_token_ids == {2}
    about = checkpoint.describe()
    assert about["load_format"] == "gguf"
    assert about["weights"] == {"Q4_1": 210, "F32": 61, "Q8_0": 1}


def test_smollm2_answers_in_the_oracle() -> None:
    tokenizer = smollm2_checkpoint().tokenizer()
    assert tokenizer is not None
    prompt = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    ids = torch.tensor([tokenizer.encode(prompt).ids])
    with torch.inference_mode():
        output = smollm2_oracle().generate(ids, max_new_tokens=8, do_sample=False)
    assert tokenizer.decode(output[0, ids.shape[1] :].tolist()).startswith("The capital of France is Paris.")


def test_smollm2_blocks_are_dequantised_as_their_types_define() -> None:
    header = read_header(smollm2_path())
    weights = smollm2_oracle().state_dict()
    with smollm2_path().open("rb") as file:
        file.seek(header.tensors["token_embd.weight"].offset)
        scale, *quants = struct.unpack("<e32b", file.read(34))  # Q8_0: scale, 32 signed bytes
        assert weights["model.embed_tokens.weight"][0, :32].tolist() == [scale * q for q in quants]
        file.seek(header.tensors["blk.3.ffn_up.weight"].offset)
        scale, least, *pairs = struct.unpack("<ee16B", file.read(20))  # Q4_1: scale, minimum, 32 nibbles
        expected = [scale * (b & 15) + least for b in pairs] + [scale * (b >> 4) + least for b in pairs]
        assert weights["model.layers.3.mlp.up_proj.weight"][0, :32].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    "config",
    [
        TINY_CONFIG,
        TINY_CONFIG | {"tie_word_embeddings": True},
        TINY_CONFIG | {"attention_bias": True, "mlp_bias": True},
    ],
    ids=["plain", "tied", "biased"],
)
def test_weights_come_back_under_hugging_face_names_and_in_its_row_order(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    expected = tiny_weights(config)
    tensors = load(write_gguf(tmp_path / "m.gguf", config=config))
    assert list(tensors) == list(expected)
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)


@pytest.mark.parametrize(("kind", "dtype"), [("F16", torch.float16), ("BF16", torch.bfloat16)])
def test_half_floats(tmp_path: Path, kind: str, dtype: torch.dtype) -> None:
    tensors = load(write_gguf(tmp_path / "m.gguf", matrix_type=kind))
    for name, expected in tiny_weights().items():
        assert torch.equal(tensors[name], expected if expected.dim() == 1 else expected.to(dtype).float()), (
            name
        )


@pytest.mark.parametrize(("kind", "steps"), [("Q8_0", 254), ("Q4_1", 15), ("Q4_0", 8)])
def test_quantised_blocks(tmp_path: Path, kind: str, steps: int) -> None:
    tensors = load(write_gguf(tmp_path / "m.gguf", matrix_type=kind))
    for name, expected in tiny_weights().items():
        spread = expected.max() - expected.min()
        assert (tensors[name] - expected).abs().max() < spread / steps, name


def test_dtype_of_the_weights(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_gguf(tmp_path / "m.gguf"))
    tensors = checkpoint.tensors(torch.bfloat16, CPU)
    for name, expected in tiny_weights().items():
        assert torch.equal(tensors[name], expected.bfloat16()), name


def test_dummy_takes_shape_and_tokenizer_and_leaves_the_weights(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    checkpoint = open_checkpoint(path, "dummy")
    assert checkpoint.load_format == "dummy"
    assert checkpoint.shape == open_checkpoint(path).shape
    assert checkpoint.eos_token_ids == {0}
    assert checkpoint.tokenizer() is not None
    name = "model.layers.0.mlp.up_proj.weight"
    assert not torch.equal(checkpoint.tensors(torch.float32, CPU)[name], tiny_weights()[name])


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        ({"general.architecture": "qwen3"}, "architecture 'qwen3' is not supported"),
        ({"llama.block_count": None}, "llama.block_count is missing"),
        ({"llama.embedding_length": 0}, "llama.embedding_length is 0"),
        ({"llama.embedding_length": "64"}, "llama.embedding_length is '64'"),
        ({"llama.attention.head_count_kv": [2, 2]}, "llama.attention.head_count_kv is of type list"),
        ({"llama.attention.head_count_kv": 3}, "4 attention heads cannot share 3"),
        ({"llama.rope.dimension_count": 8}, "llama.rope.dimension_count is not the head size 16"),
        ({"llama.attention.value_length": 8}, "llama.attention.value_length is not the head size 16"),
        ({"llama.feed_forward_length": 128}, "blk.0.ffn_gate.weight is [96, 64], not [128, 64]"),
        ({"llama.block_count": 3}, "blk.2.attn_norm.weight is missing"),
        ({"llama.block_count": 2**31 - 1}, "blk.2.attn_norm.weight is missing"),
        ({"llama.expert_count": 8}, "mixture of experts is not supported"),
        ({"split.count": 4}, "llama-gguf-split --merge"),
        ({"tokenizer.ggml.eos_token_id": "2"}, "tokenizer.ggml.eos_token_id is '2'"),
        ({"general.alignment": 33}, "general.alignment is no power of two"),
    ],
)
def test_names_what_it_refuses(tmp_path: Path, metadata: dict[str, Any], named: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", metadata=metadata)
    refused(lambda: open_checkpoint(path), str(path), named)


def test_rope_scaling_is_kept_for_whoever_computes_angles(tmp_path: Path) -> None:
    scaled = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    shape = open_checkpoint(write_gguf(tmp_path / "m.gguf", metadata=scaled)).shape
    assert shape.rope_scaling == {"rope_type": "linear", "factor": 4.0}


def write_with_rope_factors(path: Path, factors: list[float], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a tensor that no weight is made of, as the converter writes Llama 3.1's scaling."""
    import gguf

    class Writer(gguf.GGUFWriter):  # type: ignore[misc]
        def write_header_to_file(self) -> None:
            self.add_tensor("rope_freqs.weight", np.array(factors, dtype=np.float32))
            super().write_header_to_file()

    monkeypatch.setattr(gguf, "GGUFWriter", Writer)
    return write_gguf(path)


def test_rope_factors_are_the_scaling_of_llama_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ModelShape.from_hf_config(TINY_CONFIG, "plain")
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaled = replace(plain, rope_scaling=scaling | {"original_max_position_embeddings": 64})
    factors = (inverse_frequencies(plain) / inverse_frequencies(scaled)).tolist()
    assert (factors[0], factors[-1]) == (1.0, 8.0)
    path = write_with_rope_factors(tmp_path / "m.gguf", factors, monkeypatch)
    checkpoint = open_checkpoint(path)
    torch.testing.assert_close(inverse_frequencies(checkpoint.shape), inverse_frequencies(scaled))
    assert json.loads(json.dumps(checkpoint.describe()))["rope_scaling"]["factors"] == factors
    assert load_model(path, device="cpu").shape == checkpoint.shape


@pytest.mark.parametrize(
    ("factors", "named"),
    [
        ([1.0] * 7, "rope_freqs.weight is [7], not one factor a rotary frequency, [8]"),
        ([1.0] * 7 + [0.0], "finite numbers above 0"),
        ([1.0] * 7 + [float("nan")], "finite numbers above 0"),
    ],
)
def test_rope_factors_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factors: list[float], named: str
) -> None:
    path = write_with_rope_factors(tmp_path / "m.gguf", factors, monkeypatch)
    refused(lambda: load_model(path, device="cpu"), named)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", drop=("blk.1.attn_v.weight",))
    refused(lambda: open_checkpoint(path), str(path), "tensor blk.1.attn_v.weight is missing")


def test_values_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    offset = read_header(path).tensors["blk.1.ffn_up.weight"].offset
    with path.open("r+b") as file:
        file.seek(offset + 40)
        file.write(struct.pack("<f", float("nan")))
    checkpoint = open_checkpoint(path)
    refused(lambda: checkpoint.tensors(torch.float32, CPU), str(path), "model.layers.1.mlp.up_proj.weight")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    whole = path.read_bytes()
    data_start = min(tensor.offset for tensor in read_header(path).tensors.values())
    cut = tmp_path / "cut.gguf"
    for length in [*range(4, data_start, 7), *range(data_start, len(whole), 9_973), len(whole) - 1]:
        cut.write_bytes(whole[:length])
        refused(lambda: open_checkpoint(cut), str(cut), "damaged GGUF file")


def test_every_flipped_bit_of_a_header_is_refused_or_harmless(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", matrix_type="Q8_0")
    data_start = min(tensor.offset for tensor in read_header(path).tensors.values())
    outcomes = [refused_or_fine(lambda: load(path)) for _ in flips(path, range(0, data_start))]
    assert 0.3 < sum(outcomes) / len(outcomes) < 1


def count_of(path: Path, key: bytes, skip: int) -> int:
    """Where the 64-bit count lies that stands `skip` bytes after a key."""
    return path.read_bytes().index(key) + len(key) + skip


def test_huge_counts_take_no_memory(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    whole = path.read_bytes()
    places = [
        8,  # tensors
        16,  # keys
        count_of(path, b"general.architecture", 4),  # bytes of a text
        count_of(path, b"tokenizer.ggml.tokens", 8),  # texts of an array
        count_of(path, b"tokenizer.ggml.token_type", 8),  # numbers of an array
        count_of(path, b"blk.1.ffn_up.weight", 4),  # a dimension
    ]
    open_checkpoint(path)  # what an import takes is not counted
    for place in places:
        for count in (2**63, 2**40, 2**24, 10**6):
            path.write_bytes(whole[:place] + struct.pack("<Q", count) + whole[place + 8 :])
            tracemalloc.start()
            refused(lambda: open_checkpoint(path), str(path))
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 10 * len(whole)


def test_smollm2_cut_short_is_refused(tmp_path: Path) -> None:
    with smollm2_path().open("rb") as file:
        head = file.read(2_000_000)
    cut = tmp_path / "cut.gguf"
    for length in (100, 700, 50_000, 500_000, 1_700_000, 1_786_000, 2_000_000):
        cut.write_bytes(head[:length])
        refused(lambda: open_checkpoint(cut), str(cut), "damaged GGUF file")


def test_a_tokenizer_of_another_kind_leaves_the_weights_usable(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", metadata={"tokenizer.ggml.pre": "llama-bpe"})
    checkpoint: Checkpoint = open_checkpoint(path)
    refused(checkpoint.tokenizer, str(path), "pre-tokenizer 'llama-bpe' is not supported", "prompt_tokens")
    assert checkpoint.tensors(torch.float32, CPU)


def test_a_file_without_a_tokenizer_has_none(tmp_path: Path) -> None:
    assert open_checkpoint(write_gguf(tmp_path / "m.gguf", tokenizer=False)).tokenizer() is None
