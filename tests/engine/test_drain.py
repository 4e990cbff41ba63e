"""The drain simulation against what was observed in SGLang."""

from engine.drain import DrainSimulation
from engine.request import Request, SamplingParams


def _request(max_new: int, held: int = 1, output: int = 0, ignore_eos: bool = True) -> Request:
    request = Request(0, "r", [1] * (held - output), SamplingParams(max_new, ignore_eos=ignore_eos))
    request.tokens.extend([2] * output)
    return request


def _lefts(drain: DrainSimulation) -> list[float]:
    assert drain._states is not None
    return [left for left, _ in drain._states]


def test_a_later_candidate_with_most_left_is_put_before_the_last() -> None:
    drain = DrainSimulation(0.7)
    for max_new in (100, 50, 200, 300, 10):
        assert drain.fits(_request(max_new), [], free_tokens=100_000)
    assert _lefts(drain) == [10, 50, 200, 300, 100]


def test_a_refused_candidate_counts_for_the_rest_of_the_round() -> None:
    drain = DrainSimulation(0.7)
    assert not drain.fits(_request(100), [], free_tokens=101)
    assert not drain.fits(_request(60), [], free_tokens=101)
    assert DrainSimulation(0.7).fits(_request(60), [], free_tokens=101)


def test_what_ends_early_gives_its_kv_to_those_that_go_on() -> None:
    # 10 each for two, then 90 more for one: 20 + 90 of 100, but the first leaves its 30 behind.
    assert DrainSimulation(0.7).fits(_request(100), [_request(10, held=30)], free_tokens=100)
    assert not DrainSimulation(0.7).fits(_request(100), [_request(10, held=1)], free_tokens=100)


def test_one_token_must_stay_free_for_each_that_decodes() -> None:
    both = [_request(10)]
    assert not DrainSimulation(0.7).fits(_request(10), both, free_tokens=22)
    assert DrainSimulation(0.7).fits(_request(10), both, free_tokens=23)


def test_the_ratio_weighs_those_that_may_end_early_and_output_counts_whole() -> None:
    drain = DrainSimulation(0.5)
    running = [
        _request(100, held=40, output=20, ignore_eos=False),
        _request(100, held=60, output=50, ignore_eos=False),  # taken to be at its end
    ]
    assert drain.fits(_request(80), running, free_tokens=1000)
    assert _lefts(drain) == [30, 80]


def test_running_requests_are_looked_at_for_the_first_candidate_only() -> None:
    drain = DrainSimulation(0.5)
    drain.fits(_request(80), [_request(7)], free_tokens=1000)
    drain.fits(_request(90), [_request(8), _request(9)], free_tokens=1000)
    assert _lefts(drain) == [7, 90, 80]
