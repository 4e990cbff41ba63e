"""Admission under options: align size, most requests, `ignore_eos` without a cache, priorities."""

import pytest

from engine.admission import AddResult, PrefillAdder
from engine.batch import StopReason
from engine.priority import PriorityRules
from engine.request import Request, SamplingParams
from tests.support.adders import adder_of, admitted_lengths, half_done, offer
from tests.support.engines import Prompts


def _cached_prefix(adder: PrefillAdder, tokens: int, length: int) -> Request:
    """A request of which the tree holds the first `tokens`."""
    request = Prompts().request(length, 1)
    pages = adder._cache.allocator.alloc(tokens // adder._cache.page_size)
    assert pages is not None
    adder._cache.tree.insert(request.tokens[:tokens], pages)
    adder._cache.match(request)
    return request


@pytest.mark.parametrize(("prefix", "end"), [(0, 192), (48, 240), (64, 256)])
def test_an_align_size_aligns_the_length_and_the_page_the_end(prefix: int, end: int) -> None:
    adder = adder_of(chunk=200, page=16, truncation_align_size=64)
    request = _cached_prefix(adder, prefix, 500)
    adder.add(request)
    assert (request.prefix_len, request.extend_end) == (prefix, end)


def test_an_align_size_between_pages_still_ends_a_cut_on_a_page() -> None:
    adder = adder_of(chunk=200, page=16, truncation_align_size=36)
    offer(adder, 500)
    assert admitted_lengths(adder) == [176]  # of 192, 180


def test_an_align_size_leaves_continuations_and_whole_requests_alone() -> None:
    adder = adder_of(chunk=200, page=16, truncation_align_size=64)
    request = half_done(500, 192)
    adder.add_chunked(request)
    assert request.extend_end == 392
    whole = adder_of(chunk=208, page=16, truncation_align_size=64)
    offer(whole, 199)
    assert (admitted_lengths(whole), whole.chunked_req) == ([199], None)


def test_a_rest_of_the_chunk_below_the_align_size_admits_no_cut() -> None:
    adder = adder_of(chunk=200, page=1, truncation_align_size=64)
    offer(adder, 137)
    assert offer(adder, 100) is AddResult.OTHER
    assert (admitted_lengths(adder), adder.stop_reason) == ([137], StopReason.ALIGN)


@pytest.mark.parametrize("continued", [False, True])
def test_the_most_requests_of_a_forward_count_the_half_done_one(continued: bool) -> None:
    adder = adder_of(prefill_max_requests=2)
    if continued:
        adder.add_chunked(half_done(100, 50))
    else:
        assert offer(adder, 10) is AddResult.CONTINUE
    assert offer(adder, 10) is AddResult.CONTINUE
    assert offer(adder, 10) is AddResult.OTHER
    assert (len(adder.admitted), adder.stop_reason) == (2, StopReason.MAX_REQUESTS)


@pytest.mark.parametrize("drained", [False, True])
def test_no_policy_cuts_beside_a_half_done_request(drained: bool) -> None:
    # In SGLang only shortest-prefill-first looks; others rely on the chunk being used up.
    adder = adder_of(pool=20_000, disable_radix_cache=drained)
    adder.chunked_req = half_done(12_000, 4096)
    assert offer(adder, 5000) is AddResult.OTHER
    assert (adder.admitted, adder.stop_reason) == ([], StopReason.ORDER)
    assert offer(adder, 4000) is AddResult.CONTINUE


def _draining(pool: int, chunk: int = 4096, page: int = 1, **options: object) -> PrefillAdder:
    return adder_of(pool=pool, chunk=chunk, page=page, disable_radix_cache=True, **options)


@pytest.mark.parametrize(("pool", "admitted"), [(302, False), (303, True)])
def test_a_request_that_ignores_eos_must_drain(pool: int, admitted: bool) -> None:
    adder = _draining(pool)
    assert (offer(adder, 100, 200) is AddResult.NO_TOKEN) == (not admitted)
    assert bool(adder.admitted) == admitted


@pytest.mark.parametrize(("pool", "admitted"), [(301, False), (302, True)])
def test_one_that_may_end_early_is_weighed_as_ever(pool: int, admitted: bool) -> None:
    adder = _draining(pool)
    request = Request(0, "r0", [5] * 100, SamplingParams(200))
    adder.add(request)
    assert bool(adder.admitted) == admitted


@pytest.mark.parametrize(
    ("radix_off", "length", "extent", "left"),
    [
        (True, 97, 97, -12),
        (True, 100, 100, -12),
        (True, 101, 100, -12),  # a cut takes all of the chunk and is charged 112
        (False, 97, 96, 4),
        (False, 100, 96, 4),
    ],
)
def test_without_a_cache_the_raw_length_decides_between_whole_and_cut(
    radix_off: bool, length: int, extent: int, left: int
) -> None:
    adder = adder_of(chunk=100, page=16, disable_radix_cache=radix_off)
    offer(adder, length, 5)
    assert (admitted_lengths(adder), adder.rem_chunk_tokens) == ([extent], left)
    assert (adder.chunked_req is None) == (extent == length)


def test_a_prompt_that_does_not_fit_now_is_not_counted_further() -> None:
    adder = _draining(1000)
    assert offer(adder, 2000, 500) is AddResult.NO_TOKEN
    assert adder.stop_reason is StopReason.CURRENT
    assert offer(adder, 10, 5) is AddResult.CONTINUE


def test_a_prompt_must_fit_beside_what_running_requests_reserve() -> None:
    # 150 tokens are free and the running request gives back 500 when it ends, but until then it reserves 100.
    running = Request(1, "running", [1] * 500, SamplingParams(100, ignore_eos=True))
    adder = _draining(150, decoding=[running])
    assert offer(adder, 50, 5) is AddResult.NO_TOKEN
    assert adder.stop_reason is StopReason.TOTAL
    offer(adder, 49, 5)
    assert admitted_lengths(adder) == [49]


def test_all_that_was_admitted_before_the_first_drains_with_it() -> None:
    adder = _draining(1200)
    adder.add(Request(1, "may end early", [1] * 100, SamplingParams(900)))  # 630 more by the ratio
    assert offer(adder, 100, 600) is AddResult.NO_TOKEN
    assert admitted_lengths(adder) == [100]
    assert offer(_draining(1200), 100, 600) is AddResult.CONTINUE


def test_a_drained_chunk_budget_admits_nobody() -> None:
    adder = _draining(10_000, chunk=64, running=64, mixed=64)
    assert offer(adder, 10, 5) is AddResult.OTHER
    assert (adder.admitted, adder.stop_reason) == ([], StopReason.CHUNK)


def test_running_requests_that_ignore_eos_keep_their_whole_length_in_reserve() -> None:
    decoding = [
        Request(1, "to the end", [1], SamplingParams(100, ignore_eos=True)),
        Request(2, "perhaps", [1], SamplingParams(100)),
    ]
    adder = adder_of(pool=1000, ratio=0.5, decoding=decoding)
    assert adder.rem_total_tokens == 1000 - 100 - 50


URGENT_IS_LARGE = PriorityRules(enabled=True, preempt=True, low_values_first=False, threshold=0)


@pytest.mark.parametrize(
    ("priority", "max_new", "left"),
    [(1, 49, 50), (1, 50, 0), (0, 49, 0), (-1, 110, 0)],  # a prompt of one token: 50 are needed, then 51
)
def test_a_victim_s_reservation_comes_off_the_total_budget(priority: int, max_new: int, left: int) -> None:
    decoding = [
        Request(i, f"d{i}", [1], SamplingParams(limit), priority=i) for i, limit in enumerate((50, 75, 100))
    ]
    adder = adder_of(pool=225, ratio=1.0, decoding=decoding)
    assert adder.rem_total_tokens == 0
    candidate = Request(9, "new", [1], SamplingParams(max_new), priority=priority)
    victims = adder.preempt_for(candidate, URGENT_IS_LARGE)
    assert [v.priority for v in victims] == ([0] if left else [])
    assert adder.rem_total_tokens == left
