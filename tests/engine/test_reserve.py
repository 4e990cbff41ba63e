"""What running requests are expected to need, kept incrementally, equals the sum taken anew."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.request import Request, SamplingParams
from engine.reserve import Reserve


def _request(rid: int, max_new: int, ignore_eos: bool = False) -> Request:
    return Request(rid, f"r{rid}", [1, 2], SamplingParams(max_new, ignore_eos=ignore_eos))


def _anew(requests: Sequence[Request], ratio: float) -> float:
    return sum(
        min(r.max_new_tokens - r.output_len, 4096) * (1.0 if r.sampling.ignore_eos else ratio)
        for r in requests
    )


REQUESTS = st.lists(
    st.tuples(st.one_of(st.integers(1, 30), st.integers(4090, 4110)), st.booleans()), min_size=1, max_size=6
)
STEPS = st.lists(st.tuples(st.sampled_from(["join", "token", "token", "leave"]), st.integers(0, 5)))


@given(REQUESTS, STEPS, st.floats(0.0, 1.0))
def test_the_sums_are_those_taken_anew(
    kinds: list[tuple[int, bool]], steps: list[tuple[str, int]], ratio: float
) -> None:
    requests = [_request(rid, *kind) for rid, kind in enumerate(kinds)]
    reserve = Reserve()
    counted: dict[int, Request] = {}
    for step, at in steps:
        request = requests[at % len(requests)]
        if step == "join":
            reserve.join(request)
            counted[request.rid] = request
        elif step == "leave":
            reserve.leave(request)
            counted.pop(request.rid, None)
        else:
            request.tokens.append(7)
            reserve.after_token(request)
    assert reserve.tokens(1.0) == _anew(list(counted.values()), 1.0)
    assert reserve.tokens(ratio) == pytest.approx(_anew(list(counted.values()), ratio))
    assert reserve.tokens(ratio) == pytest.approx(sum(reserve.of(r, ratio) for r in counted.values()))


def test_a_very_long_request_counts_no_more_than_the_clip_until_it_nears_its_end() -> None:
    request = _request(0, 4098)
    reserve = Reserve([request])
    seen = []
    for _ in range(4):
        seen.append(reserve.tokens(0.5))
        request.tokens.append(7)
        reserve.after_token(request)
    assert seen == [2048.0, 2048.0, 2048.0, 2047.5]


def test_one_that_ignores_eos_counts_whole() -> None:
    assert Reserve([_request(0, 100, ignore_eos=True), _request(1, 100)]).tokens(0.25) == 125
