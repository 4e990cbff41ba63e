"""The demo's sizes on machines of any speed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.demo.prompts import make_requests, take_prompts
from ui.demo.sizing import DECODERS, LONG_COST, Speed, choose_sizes
from ui.errors import UserError

CONTEXT = 8192
BUDGET_S = 20.0
SPEEDS = st.builds(Speed, decode_s=st.floats(1e-4, 2.0), prefill_s_per_token=st.floats(1e-6, 0.05))


def encode(text: str) -> list[int]:
    return [ord(char) for char in text]


def seconds_of(speed: Speed) -> float:
    """What the sizes cost if the two long prompts and the decoders cost what probing said."""
    arrivals = choose_sizes(speed, CONTEXT, BUDGET_S).arrivals
    prefill = sum(a.prompt_tokens for a in arrivals) * speed.prefill_s_per_token * LONG_COST
    return prefill + max(a.output_tokens for a in arrivals) * speed.decode_s


def test_two_slow_cores_give_the_usual_picture() -> None:
    sizes = choose_sizes(Speed(decode_s=0.1, prefill_s_per_token=0.003), CONTEXT, BUDGET_S)
    by_name = {a.name: a for a in sizes.arrivals}
    assert (by_name["long-1"].prompt_tokens, by_name["long-2"].prompt_tokens) == (1905, 762)
    assert sizes.chunk_tokens == 256
    assert by_name["decode-1"].output_tokens == 80
    assert seconds_of(Speed(0.1, 0.003)) < 25


def test_a_short_context_shortens_the_long_prompt_or_is_refused() -> None:
    fast = Speed(decode_s=0.001, prefill_s_per_token=1e-5)
    sizes = choose_sizes(fast, 1024, BUDGET_S)
    assert max(a.prompt_tokens + a.output_tokens for a in sizes.arrivals) == 1024
    with pytest.raises(UserError, match="context of 328 tokens"):
        choose_sizes(fast, 327, BUDGET_S)


def test_a_slower_machine_gets_less_work() -> None:
    slow, slower = (choose_sizes(Speed(0.2 * f, 0.006 * f), CONTEXT, BUDGET_S) for f in (1, 3))
    assert slower.total_tokens < slow.total_tokens
    assert slower.chunk_tokens <= slow.chunk_tokens
    assert seconds_of(Speed(0.3, 0.02)) < 35


@given(SPEEDS)
def test_the_order_of_events_holds_at_any_speed(speed: Speed) -> None:
    sizes = choose_sizes(speed, CONTEXT, BUDGET_S)
    arrivals = {a.name: a for a in sizes.arrivals}
    assert len(arrivals) == DECODERS + 5
    assert 0 < arrivals["long-1"].arrival_s < arrivals["short-1"].arrival_s
    assert arrivals["short-1"].arrival_s < arrivals["short-2"].arrival_s < arrivals["long-2"].arrival_s
    assert arrivals["long-2"].arrival_s < arrivals["short-3"].arrival_s
    assert arrivals["long-1"].prompt_tokens >= 7 * sizes.chunk_tokens or sizes.chunk_tokens == 32
    assert sizes.chunk_tokens & (sizes.chunk_tokens - 1) == 0
    # At the probed speed the decoders still decode when the second long prompt comes.
    decoding_s = arrivals["decode-1"].output_tokens * speed.decode_s
    busy_s = arrivals["long-1"].prompt_tokens * speed.prefill_s_per_token * LONG_COST
    assert arrivals["long-2"].arrival_s < busy_s + decoding_s
    # Even at several times that speed they still decode when the first one comes.
    assert arrivals["long-1"].arrival_s < decoding_s / 8


@given(st.lists(st.integers(1, 3000), min_size=2, max_size=12))
def test_prompts_have_their_lengths_and_no_common_start(lengths: list[int]) -> None:
    prompts = take_prompts(lengths, encode)
    assert [len(prompt) for prompt in prompts] == lengths
    assert prompts == take_prompts(lengths, encode)
    assert len({prompt[0] for prompt in prompts}) == len(prompts)


def test_requests_are_new_each_time_and_run_to_their_end() -> None:
    arrivals = choose_sizes(Speed(0.1, 0.003), CONTEXT, BUDGET_S).arrivals
    prompts = take_prompts([a.prompt_tokens for a in arrivals], encode)
    first, second = make_requests(arrivals, prompts), make_requests(arrivals, prompts)
    assert not {id(r) for r in first} & {id(r) for r in second}
    assert all(r.sampling.ignore_eos and r.sampling.temperature == 0 for r in first)
    assert [(r.name, r.prompt_len) for r in first] == [(a.name, a.prompt_tokens) for a in arrivals]
