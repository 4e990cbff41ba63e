from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.checkpoint import open_checkpoint
from tests.support.refusals import refused
from tests.support.smollm2 import smollm2_checkpoint
from tests.support.tiny_models import write_gguf

CHAT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n"
)
CHAT_IDS = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407]
CHAT_IDS += [19712, 8182, 2, 198, 1, 4093, 198, 26843, 665, 2, 198, 1, 520, 9531, 198]


@cache
def smollm2_tokenizer() -> Any:
    return smollm2_checkpoint().tokenizer()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        ("Hello world", [19556, 905]),
        (
            "The quick brown fox jumps over the lazy dog",
            [504, 2365, 6354, 16438, 27003, 690, 260, 23790, 2767],
        ),
        ("  leading spaces", [216, 2899, 5600]),
        ("In 2026, the weather", [788, 216, 34, 32, 34, 38, 28, 260, 3947]),
        ("Write a haiku about the ocean.\n", [19161, 253, 421, 30614, 563, 260, 5065, 30, 198]),
        ("x<|endoftext|>y", [104, 0, 105]),
        (CHAT, CHAT_IDS),
    ],
)
def test_smollm2_ids_are_those_of_its_published_tokenizer(text: str, ids: list[int]) -> None:
    assert smollm2_tokenizer().encode(text).ids == ids
    assert smollm2_tokenizer().decode(ids, skip_special_tokens=False) == text


# SmolLM2's vocabulary lacks some bytes: six control characters, and those that planes 4 to 16 begin with.
KNOWN = st.characters(
    max_codepoint=0x3FFFF, exclude_categories=["Cs"], exclude_characters="\x04\x06\x13\x14\x16\x1d"
)


@given(st.text(KNOWN))
def test_any_text_survives_the_round_trip(text: str) -> None:
    encoded = smollm2_tokenizer().encode(text)
    assert smollm2_tokenizer().decode(encoded.ids, skip_special_tokens=False) == text


def test_merges_digits_and_special_tokens(tmp_path: Path) -> None:
    tokenizer = open_checkpoint(write_gguf(tmp_path / "m.gguf")).tokenizer()
    assert tokenizer is not None
    assert tokenizer.encode("abcdab ab12\n<|end|>plain>").tokens == (
        ["abcd", "ab", "Ġab", "1", "2", "Ċ", "<|end|>", "plain>"]
    )
    assert tokenizer.decode(tokenizer.encode("ab<|end|>plain>").ids) == "abplain>"


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        ({"tokenizer.ggml.model": "llama"}, "tokenizer 'llama' with pre-tokenizer 'smollm' is not supported"),
        ({"tokenizer.ggml.pre": None}, "pre-tokenizer None is not supported"),
        ({"tokenizer.ggml.tokens": None}, "tokenizer.ggml.tokens is missing"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "tokenizer.ggml.tokens is missing or damaged"),
        ({"tokenizer.ggml.token_type": [1]}, "40 tokens have 1 types"),
        ({"tokenizer.ggml.merges": ["ab"]}, "merge 'ab' is no pair of tokens"),
        ({"tokenizer.ggml.merges": ["a x"]}, "its tokenizer is damaged"),
    ],
)
def test_names_what_it_refuses(tmp_path: Path, metadata: dict[str, Any], named: str) -> None:
    checkpoint = open_checkpoint(write_gguf(tmp_path / "m.gguf", metadata=metadata))
    refused(checkpoint.tokenizer, str(tmp_path / "m.gguf"), named)
