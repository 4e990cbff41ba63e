"""The forward against transformers' on a small random model, however the tokens are laid out."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.errors import ModelError
from engine.executors.protocol import NO_TOKEN
from engine.models.linear import can_pack
from engine.models.rotary import inverse_frequencies, pair_rows, rotary_table, rotate_
from engine.shapes import ModelShape
from tests.support.smollm2 import oracle_from
from tests.support.tiny_llama import TINY_SHAPE, Forwards, TinyCheckpoint, load_tiny

pytestmark = pytest.mark.usefixtures("one_thread")

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}
SHAPES = {
    "grouped": TINY_SHAPE,
    "one-kv-head": replace(TINY_SHAPE, num_kv_heads=1),
    "ungrouped": replace(TINY_SHAPE, num_kv_heads=4),
    "tied": replace(TINY_SHAPE, tie_word_embeddings=True),
    "biased": replace(TINY_SHAPE, attention_bias=True, mlp_bias=True),
    "wide-heads": replace(TINY_SHAPE, head_dim=40),
}
LLAMA3_SCALING = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def _prompt(length: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(TINY_SHAPE.vocab_size) for _ in range(length)]


def _oracle(shape: ModelShape, dtype: torch.dtype = torch.float32) -> Any:
    return oracle_from(TinyCheckpoint(Path("tiny"), shape, frozenset()), dtype)


def _close(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> bool:
    return bool((a - b).abs().max() <= TOLERANCE[dtype] * b.abs().max())


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", SHAPES)
def test_logits_are_transformers(name: str, dtype: torch.dtype, pack: bool) -> None:
    if pack and not can_pack(dtype, torch.device("cpu")):
        pytest.skip(f"oneDNN cannot pack {dtype} weights on this CPU")
    shape = SHAPES[name]
    forwards = Forwards(load_tiny(shape, dtype, pack=pack), page_size=4)
    prompt = _prompt(90)
    forwards.run([(forwards.add(prompt), 90)])
    with torch.inference_mode():
        expected = _oracle(shape, dtype)(torch.tensor([prompt])).logits[0, -1:].float()
    assert _close(forwards.logits, expected, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("chunk", [1, 7, 16, 50])
def test_chunks_give_the_logits_of_one_shot(chunk: int, page_size: int, dtype: torch.dtype) -> None:
    forwards = Forwards(load_tiny(dtype=dtype), page_size)
    prompt = _prompt(77)
    forwards.prefill(forwards.add(prompt), 77)
    whole = forwards.logits
    forwards.prefill(forwards.add(prompt), chunk)
    assert _close(forwards.logits, whole, dtype)


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_greedy_output_is_transformers_for_many_requests_at_once(page_size: int) -> None:
    forwards = Forwards(load_tiny(), page_size)
    prompts = [_prompt(n, seed=n) for n in (1, 17, 40, 130)]
    requests = [forwards.add(prompt) for prompt in prompts]
    for request, chunk in zip(requests, (1, 5, 40, 32), strict=True):
        forwards.prefill(request, chunk)
    for _ in range(23):
        forwards.run(decode=requests)
    oracle = _oracle(TINY_SHAPE)
    for request, prompt in zip(requests, prompts, strict=True):
        with torch.inference_mode():
            out = oracle.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=24)
        assert request.output_ids == out[0, len(prompt) :].tolist()


@pytest.mark.parametrize("page_size", [1, 16])
def test_a_mixed_forward_gives_each_row_what_it_gets_alone(page_size: int) -> None:
    def requests(forwards: Forwards) -> tuple[Any, ...]:
        made = tuple(forwards.add(_prompt(n, seed=n)) for n in (30, 60, 45, 9))
        forwards.prefill(made[0], 30)
        forwards.prefill(made[1], 25)
        forwards.run([(made[2], 20)])
        return made

    together = Forwards(load_tiny(), page_size)
    a, b, cut, new = requests(together)
    result = together.run([(cut, 10), (new, 9)], decode=[a, b])
    apart = Forwards(load_tiny(), page_size, seed=1)
    a, b, cut, new = requests(apart)
    logits = []
    for extend, decode in (([(cut, 10)], []), ([(new, 9)], []), ([], [a]), ([], [b])):
        apart.run(extend, decode)
        logits.append(apart.logits)
    assert result.next_token_ids[0] == NO_TOKEN
    assert list(result.next_token_ids[1:]) == [r.tokens[-1] for r in (new, a, b)]
    assert _close(together.logits, torch.cat(logits), torch.float32)


def test_a_forward_of_middle_chunks_computes_no_logits() -> None:
    forwards = Forwards(load_tiny())
    a, b = forwards.add(_prompt(30)), forwards.add(_prompt(40))
    result = forwards.run([(a, 8), (b, 9)])
    assert list(result.next_token_ids) == [NO_TOKEN, NO_TOKEN]
    assert forwards.logits.shape == (0, TINY_SHAPE.vocab_size)


def test_rotating_pairs_is_transformers_rotation() -> None:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    tokens, heads, dim = 9, 3, 16

    def paired(x: torch.Tensor) -> torch.Tensor:
        """What a projection with reordered rows would have given."""
        return pair_rows(x.T.contiguous(), dim).T.contiguous()

    x = torch.randn(tokens, heads * dim)
    ours = paired(x)
    table = rotary_table(replace(TINY_SHAPE, head_dim=dim), 50, torch.device("cpu"))[20 : 20 + tokens]
    rotate_(ours.view(tokens, heads, dim), table)
    halves = torch.cat([table, table], dim=-1).unsqueeze(0)
    per_head = x.view(1, tokens, heads, dim).transpose(1, 2)
    expected, _ = apply_rotary_pos_emb(per_head, per_head, halves.real, halves.imag)
    torch.testing.assert_close(ours, paired(expected[0].transpose(0, 1).reshape(tokens, -1)))


@pytest.mark.parametrize(
    "scaling", [None, {"rope_type": "linear", "factor": 4.0}, {"type": "linear", "factor": 2}, LLAMA3_SCALING]
)
def test_rotary_frequencies_are_transformers(scaling: dict[str, Any] | None) -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    rope = {"rope_type": "default", **(scaling or {}), "rope_theta": 10_000.0}
    rope["rope_type"] = rope.pop("type", rope["rope_type"])
    config = LlamaConfig(hidden_size=64, num_attention_heads=4, head_dim=16, rope_parameters=rope)
    expected = LlamaRotaryEmbedding(config).inv_freq
    torch.testing.assert_close(inverse_frequencies(replace(TINY_SHAPE, rope_scaling=scaling)), expected)


@pytest.mark.parametrize(
    ("scaling", "words"),
    [
        ({"rope_type": "yarn", "factor": 4.0}, "rope scaling 'yarn'"),
        ({"rope_type": "linear"}, "factor"),
        ({"rope_type": "linear", "factor": True}, "factor"),
        ({**LLAMA3_SCALING, "high_freq_factor": 0.5}, "high_freq_factor"),
    ],
)
def test_other_rope_scaling_is_refused_in_one_line(scaling: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words) as error:
        inverse_frequencies(replace(TINY_SHAPE, rope_scaling=scaling))
    assert "\n" not in str(error.value)
