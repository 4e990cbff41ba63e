"""Which row of a price list is taken, and which limit is named where none can be."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.advice_choice import VALUES, Margins, choose, pays
from profiler.price_rows import Limits, Options, PriceRow

SHARES = {128: 0.60, 256: 0.80, 512: 0.95, 1024: 0.99, 2048: 1.0, 4096: 0.97, None: 0.85}


def row(chunk: int | None, *, mixed: bool = False, interval: int = 0) -> PriceRow:
    """Prefill first leaves a wait of 8 s; mixing one of a ms a token, at a little more TTFT the less so."""
    size = chunk or 8192
    short = mixed or bool(interval)
    extra = 400 / size if mixed else 1600 / size if interval else 0.0
    return PriceRow(
        options=Options(chunk, mixed, interval),
        plateau_share=SHARES[chunk],
        longest_wait_s=size / 1000 + (0.01 if interval else 0) if short else 8.0,
        itl_p99_s=size / 1200 if short else 0.02,
        ttft_p99_s=8.0 / SHARES[chunk] * (1 + extra / 4),
        ttft_long_s=8.0 / SHARES[chunk] * (1 + extra / 4),
        output_tokens_per_s=100 * SHARES[chunk],
        decode_forward_s=0.01,
    )


ROWS = (
    row(None),
    *(
        row(chunk, mixed=mixed, interval=interval)
        for chunk in SHARES
        if chunk
        for mixed, interval in ((False, 0), (True, 0), (False, 1))
    ),
)


def test_without_limits_the_smallest_chunk_at_the_point_mixed_if_that_cuts_the_wait() -> None:
    assert choose(ROWS).row == row(512, mixed=True)
    assert choose(ROWS, enough_tokens=1024).row == row(1024, mixed=True)
    assert len(choose(ROWS).keeping) == len(ROWS)


def test_a_price_that_is_too_high_leaves_prefill_first() -> None:
    dear = [replace(r, ttft_long_s=99.0) if r.options.mixed or r.options.interval else r for r in ROWS]
    assert choose(dear).row == row(512)
    slow = [replace(r, output_tokens_per_s=50.0) if r.options.mixed else r for r in ROWS]
    assert choose(slow, enough_tokens=2048).row == row(2048, interval=1)
    useless = [replace(r, longest_wait_s=7.0) for r in ROWS]
    assert choose(useless).row.options == Options(512)


def test_a_larger_chunk_is_taken_where_mixing_pays_only_there() -> None:
    dear = [
        replace(r, ttft_long_s=99.0) if r.options.mixed and r.options.chunk_tokens == 512 else r for r in ROWS
    ]
    assert not pays(row(512, interval=1), ROWS)
    assert choose(dear).row == row(1024, mixed=True)
    assert choose(dear, enough_tokens=512).row == row(1024, mixed=True)
    unmixed = [r for r in dear if not r.options.mixed or r.options.chunk_tokens == 512]
    assert pays(row(2048, interval=1), ROWS)
    assert choose(unmixed).row == row(2048, interval=1)
    assert choose(unmixed, Limits(itl_max_s=1.0)).row.options == Options(512, mixed=True)


def test_what_is_paid_is_reckoned_against_prefill_first_in_the_same_chunks() -> None:
    assert not pays(row(1024), ROWS)
    assert pays(row(1024, mixed=True), ROWS)
    assert not pays(row(1024, mixed=True), [row(1024, mixed=True), row(512)])


def test_a_limit_that_only_mixing_keeps() -> None:
    limits = Limits(itl_max_s=0.6, ttft_p99_s=11)
    choice = choose([r for r in ROWS if not r.options.interval], limits)
    assert choice.row == row(512, mixed=True)
    assert all(kept.options.mixed for kept in choice.keeping)


def test_a_limit_below_the_point_costs_as_little_throughput_as_it_must() -> None:
    assert choose(ROWS, Limits(itl_max_s=0.3)).row.options.chunk_tokens == 256
    assert choose(ROWS, Limits(itl_max_s=0.3), enough_tokens=512).row.options.chunk_tokens == 256
    assert choose(ROWS, Limits(ttft_p99_s=8.2)).row.options.chunk_tokens == 1024


def test_the_margin_is_kept_too() -> None:
    margins = Margins(prompts={512: 0.3}, sums={1024: 0.5})
    assert choose(ROWS, Limits(itl_max_s=0.6), margins=margins).row.options.chunk_tokens == 256
    assert choose(ROWS, Limits(ttft_p99_s=8.4), margins=margins).row.options.chunk_tokens == 2048
    assert margins.value(row(512, mixed=True), "itl_max_s") == pytest.approx(0.512 * 1.3)
    decodes = Margins(prompts={512: 0.3}, decode=0.1)
    assert decodes.of(row(512), "itl_p99_s") == 0.1
    assert decodes.of(row(512, mixed=True), "itl_p99_s") == 0.3
    assert decodes.of(replace(row(512), itl_p99_s=None), "itl_p99_s") == 0
    short = Margins(prompts={512: 0.3}, short=0.4)
    assert short.of(row(512, mixed=True), "itl_p99_s") == 0.4
    assert short.of(row(512, mixed=True), "itl_max_s") == 0.3


def test_what_a_slower_machine_makes_of_a_wait_is_part_of_the_margin() -> None:
    mixed = row(512, mixed=True)
    slower = {mixed.options: replace(mixed, longest_wait_s=3 * 0.512)}
    margins = Margins(prompts={512: 0.3}, slower=slower)
    assert margins.of(mixed, "itl_max_s") == pytest.approx(2.0)
    assert margins.of(mixed, "itl_p99_s") == 0.3
    assert margins.of(row(512), "itl_max_s") == 0.3
    other = Margins({256: 0.2}, {256: 0.1}, 0.4)
    both = margins.joined(other)
    assert (both.prompts, both.sums, both.decode) == ({512: 0.3, 256: 0.2}, {256: 0.1}, 0.4)
    assert both.slower == slower


def test_an_impossible_limit_is_named_with_what_comes_nearest() -> None:
    choice = choose(ROWS, Limits(itl_max_s=0.005, ttft_p99_s=60))
    assert choice.row is None
    (binding,) = choice.bindings
    assert (binding.limit, binding.limit_s, binding.alone) == ("itl_max_s", 0.005, True)
    assert (binding.best, binding.best_s) == (row(128, mixed=True), 0.128)


def test_limits_that_only_together_are_impossible_are_both_named() -> None:
    choice = choose(ROWS, Limits(itl_max_s=0.3, ttft_p99_s=9.0))
    assert choice.row is None
    waits, first = choice.bindings
    assert (waits.limit, waits.best.options, waits.alone) == ("itl_max_s", Options(1024, mixed=True), False)
    assert (first.limit, first.best.options.chunk_tokens, first.alone) == ("ttft_p99_s", 256, False)


def test_what_is_unknown_breaks_nothing() -> None:
    blank = PriceRow(Options(512))
    assert choose([blank], Limits(itl_max_s=1e-9)).row == blank


seconds = st.one_of(st.none(), st.floats(1e-3, 100))


@st.composite
def price_lists(draw: st.DrawFn) -> list[PriceRow]:
    options = draw(
        st.lists(
            st.builds(Options, st.one_of(st.none(), st.integers(1, 4096)), st.booleans(), st.integers(0, 2)),
            min_size=1,
            unique=True,
        )
    )
    shares = {o.chunk_tokens: draw(st.floats(0.01, 1)) for o in options}
    return [
        PriceRow(
            o,
            plateau_share=shares[o.chunk_tokens],
            **{value: draw(seconds) for value in VALUES.values()},
            ttft_long_s=draw(seconds),
            output_tokens_per_s=draw(seconds),
            decode_forward_s=draw(seconds),
        )
        for o in options
    ]


@given(
    rows=price_lists(),
    limits=st.builds(Limits, seconds, seconds, seconds),
    enough=st.one_of(st.none(), st.integers(1, 5000)),
    margin=st.floats(0, 1),
)
def test_the_choice_keeps_the_limits_or_says_why_none_does(
    rows: list[PriceRow], limits: Limits, enough: int | None, margin: float
) -> None:
    margins = Margins({r.options.chunk_tokens: margin for r in rows}, {}, margin / 2)
    choice = choose(rows, limits, margins=margins, enough_tokens=enough)
    for kept in choice.keeping:
        for name in VALUES:
            limit, value = getattr(limits, name), margins.value(kept, name)
            assert limit is None or value is None or value <= limit * (1 + 1e-9)
    if choice.row is not None:
        assert choice.row in choice.keeping
        assert not choice.bindings
    else:
        assert choice.bindings
        for binding in choice.bindings:
            assert binding.best_s > binding.limit_s * (1 - 1e-9)
