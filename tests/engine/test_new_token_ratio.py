"""The estimate of what running requests will still need."""

import pytest

from engine.new_token_ratio import NewTokenRatio
from engine.request import Request, SamplingParams


def _request(max_new: int, output: int) -> Request:
    request = Request(0, "r", [1], SamplingParams(max_new))
    request.tokens.extend([2] * output)
    return request


@pytest.mark.parametrize(("conservativeness", "initial", "minimum"), [(1.0, 0.7, 0.098), (2.0, 1.0, 0.14)])
def test_it_starts_and_ends_where_sglang_does(
    conservativeness: float, initial: float, minimum: float
) -> None:
    ratio = NewTokenRatio(conservativeness)
    assert (ratio.initial, ratio.minimum) == (pytest.approx(initial), pytest.approx(minimum))
    ratio.decay()
    assert ratio.current == pytest.approx(initial - (initial - minimum) / 600)
    for _ in range(700):
        ratio.decay()
    assert ratio.current == pytest.approx(minimum)
    ratio.reset()
    assert ratio.current == ratio.initial


def test_a_retraction_estimates_it_anew() -> None:
    ratio = NewTokenRatio()
    ratio.on_retract([_request(100, 5), _request(50, 3)])
    assert ratio.current == pytest.approx(48 / 151)
    ratio.on_retract([])
    assert ratio.current == 0
