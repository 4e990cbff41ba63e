"""The tokenizer that a GGUF file carries: byte-level BPE rebuilt from its tokens and merges."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import ModelError
from engine.fields import shown

if TYPE_CHECKING:
    import tokenizers

__all__ = ["build_tokenizer"]

CONTROL, USER_DEFINED = 3, 4  # llama.cpp's token types that are matched in a text before it is split


def build_tokenizer(metadata: Mapping[str, Any], source: Path) -> "tokenizers.Tokenizer | None":
    """The tokenizer described under `tokenizer.ggml.*`, None if nothing is.

    Supported is the "gpt2" model with the "smollm" way of splitting: digits one by one, then GPT-2's
    pattern. Raises ModelError, naming `source`, for another kind or for parts that do not fit together.
    """
    kind = metadata.get("tokenizer.ggml.model")
    if kind is None:
        return None
    split = metadata.get("tokenizer.ggml.pre")
    if kind != "gpt2" or split != "smollm":
        raise ModelError(
            f"{source}: tokenizer {shown(kind)} with pre-tokenizer {shown(split)} is not supported: "
            "give prompts as prompt_tokens or prompt_token_ids"
        )
    tokens = _list_of(str, metadata, "tokens", source)
    merges = [_merge(merge, source) for merge in _list_of(str, metadata, "merges", source)]
    types = _list_of(int, metadata, "token_type", source)
    if len(types) != len(tokens):
        raise ModelError(f"{source}: {len(tokens)} tokens have {len(types)} types: fetch the file again")
    try:
        return _byte_level_bpe(tokens, merges, types)
    except Exception as error:  # the package raises this very class for whatever it dislikes
        raise ModelError(f"{source}: its tokenizer is damaged: {' '.join(str(error).split())}") from error


def _byte_level_bpe(
    tokens: list[str], merges: list[tuple[str, str]], types: list[int]
) -> "tokenizers.Tokenizer":
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    for wanted, special in ((CONTROL, True), (USER_DEFINED, False)):
        tokenizer.add_tokens(
            [
                AddedToken(token, special=special, normalized=False)
                for token, kind in zip(tokens, types, strict=True)
                if kind == wanted
            ]
        )
    return tokenizer


def _merge(merge: str, source: Path) -> tuple[str, str]:
    left, space, right = merge.partition(" ")
    if not space:
        raise ModelError(f"{source}: merge {shown(merge)} is no pair of tokens: fetch the file again")
    return left, right


def _list_of(kind: type, metadata: Mapping[str, Any], key: str, source: Path) -> list[Any]:
    value = metadata.get(f"tokenizer.ggml.{key}")
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise ModelError(f"{source}: tokenizer.ggml.{key} is missing or damaged: fetch the file again")
    return value
