"""Sampling: greedy, and a temperature whose draws depend on seed and output index alone."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine import sampling
from engine.sampling import Draw

GREEDY = Draw(0.0, 0, 0)


def sample(logits: torch.Tensor, draws: Sequence[Draw]) -> list[int]:
    tokens: list[int] = sampling.sample(logits, draws).tolist()
    return tokens


def _logits(rows: int, vocab: int = 50) -> torch.Tensor:
    return torch.randn((rows, vocab), generator=torch.Generator().manual_seed(rows))


def test_temperature_zero_takes_the_largest() -> None:
    logits = _logits(5)
    assert sample(logits, [GREEDY] * 5) == logits.argmax(dim=-1).tolist()


def test_no_rows_give_no_tokens() -> None:
    assert sample(torch.empty(0, 50), []) == []


@given(
    draws=st.lists(
        st.builds(
            Draw,
            st.sampled_from([0.0, 0.3, 1.0, 4.0]),
            st.integers(-(2**63), 2**63 - 1),
            st.integers(0, 5000),
        ),
        min_size=1,
        max_size=8,
    ),
    order=st.randoms(use_true_random=False),
)
def test_a_row_draws_the_same_alone_and_in_any_company(draws: list[Draw], order: object) -> None:
    logits = _logits(len(draws))
    together = sample(logits, draws)
    rows = list(range(len(draws)))
    order.shuffle(rows)  # type: ignore[attr-defined]
    assert sample(logits[rows], [draws[r] for r in rows]) == [together[r] for r in rows]
    assert [sample(logits[r : r + 1], [draws[r]])[0] for r in range(len(draws))] == together


def test_seed_and_index_each_change_the_draw() -> None:
    logits = torch.zeros(1, 10_000)
    tokens = {sample(logits, [Draw(1.0, seed, index)])[0] for seed in range(20) for index in range(20)}
    assert len(tokens) > 380


def test_frequencies_follow_the_softmax() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0, -torch.inf]])
    temperature, count = 1.5, 6000
    counts = [0] * 5
    for index in range(count):
        counts[sample(logits, [Draw(temperature, 7, index)])[0]] += 1
    for seen, probability in zip(counts, (logits[0] / temperature).softmax(dim=-1).tolist(), strict=True):
        spread = math.sqrt(count * probability * (1 - probability))
        assert abs(seen - count * probability) <= 4 * spread


@pytest.mark.parametrize("temperature", [1e-6, 1e-300, 5e-324])
def test_a_tiny_temperature_is_greedy(temperature: float) -> None:
    logits = _logits(3) * 1e4
    assert sample(logits, [Draw(temperature, 1, i) for i in range(3)]) == logits.argmax(dim=-1).tolist()


def test_a_huge_temperature_still_draws_a_token() -> None:
    assert 0 <= sample(_logits(1), [Draw(1e308, 1, 0)])[0] < 50


def test_bfloat16_logits_can_be_drawn_from() -> None:
    logits = _logits(2).bfloat16()
    assert sample(logits, [Draw(0.7, 3, 1)] * 2) == sample(logits.float(), [Draw(0.7, 3, 1)] * 2)
