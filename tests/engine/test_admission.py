"""`PrefillAdder` against the numbers observed in SGLang."""

import pytest

from engine.admission import AddResult
from engine.batch import StopReason
from engine.config import EngineConfig
from engine.errors import ConfigError
from tests.support.adders import adder_of, admitted_lengths, half_done, offer


@pytest.mark.parametrize(
    ("page", "left", "offsets"), [(1, 288, (4065, 3809)), (16, 288, (4080, 3824)), (64, 256, (4160, 3904))]
)
def test_a_last_chunk_leaves_the_rest_of_the_budget(page: int, left: int, offsets: tuple[int, int]) -> None:
    adder = adder_of(page=page)
    total, current = adder.rem_total_tokens, adder.rem_current_tokens
    assert adder.add_chunked(half_done(12_000, 8192))
    assert adder.chunked_req is None
    assert adder.rem_chunk_tokens == left
    assert (total - adder.rem_total_tokens, current - adder.rem_current_tokens) == offsets


@pytest.mark.parametrize("page", [1, 64])
def test_a_middle_chunk_reserves_no_decode_space(page: int) -> None:
    adder = adder_of(page=page)
    total = adder.rem_total_tokens
    assert adder.add_chunked(half_done(12_000, 4096))
    assert adder.chunked_req is not None
    assert total - adder.rem_total_tokens == 4096 + page


@pytest.mark.parametrize(
    ("page", "lengths", "left"), [(1, [3808, 200, 88], 0), (16, [3808, 200, 80], 0), (64, [3808, 200], 0)]
)
def test_short_requests_fill_up_behind_a_last_chunk(page: int, lengths: list[int], left: int) -> None:
    adder = adder_of(page=page)
    adder.add_chunked(half_done(12_000, 8192))
    offer(adder, 200)
    if adder.state() is not AddResult.OTHER:
        offer(adder, 200)
    assert admitted_lengths(adder) == lengths
    assert adder.rem_chunk_tokens == left


def test_mixed_decode_rows_come_off_every_budget() -> None:
    adder = adder_of(pool=1000, chunk=64, running=8, ratio=1.0, mixed=8, max_prefill_tokens=200)
    assert (adder.rem_input_tokens, adder.rem_chunk_tokens) == (192, 56)
    assert (1000 - adder.rem_total_tokens, 1000 - adder.rem_current_tokens) == (408, 8)
    assert offer(adder, 56) is AddResult.OTHER
    assert len(adder.admitted) == 1
    assert adder.rem_input_tokens == 136


def test_an_exact_fill_ends_the_round() -> None:
    adder = adder_of(pool=1000, chunk=64, running=5, ratio=1.0, mixed=5, max_prefill_tokens=200)
    assert (adder.rem_input_tokens, adder.rem_chunk_tokens) == (195, 59)
    assert 1000 - adder.rem_total_tokens == 255
    assert offer(adder, 56) is AddResult.CONTINUE
    assert adder.rem_chunk_tokens == 3
    assert offer(adder, 3) is AddResult.OTHER


def test_the_first_cut_is_aligned_and_a_continuation_is_not() -> None:
    adder = adder_of(page=64, running=100, max_new=512, output=10, mixed=100)
    assert adder.rem_chunk_tokens == 3996
    assert 99_968 - adder.rem_total_tokens == pytest.approx(35_240)
    assert offer(adder, 12_000) is AddResult.CONTINUE
    assert admitted_lengths(adder) == [3968]
    assert adder.rem_chunk_tokens == 28
    assert offer(adder, 500) is AddResult.OTHER
    assert adder.stop_reason is StopReason.ALIGN

    following = adder_of(page=64, running=100, max_new=512, output=10, mixed=100)
    request = half_done(12_000, 3968)
    assert following.add_chunked(request)
    assert request.extend_end == 7964
    assert following.rem_chunk_tokens == -36


@pytest.mark.parametrize(
    ("pool", "chunk", "max_new", "admitted"),
    [
        (12_257, 4096, 256, False),
        (12_258, 4096, 256, True),
        (16_097, -1, 100_000, False),  # the estimate is clipped to 4,096
        (16_098, -1, 100_000, True),
    ],
)
def test_admission_weighs_the_whole_request_strictly(
    pool: int, chunk: int, max_new: int, admitted: bool
) -> None:
    adder = adder_of(pool=pool, chunk=chunk)
    verdict = offer(adder, 12_000, max_new)
    assert bool(adder.admitted) == admitted
    assert admitted or verdict is AddResult.NO_TOKEN


def test_a_chunk_below_a_page_can_never_admit_a_long_prompt() -> None:
    adder = adder_of(chunk=10, page=16)
    assert offer(adder, 100) is AddResult.OTHER
    assert not adder.admitted


def test_whole_or_cut_is_decided_by_the_paged_length() -> None:
    adder = adder_of(page=16)
    assert offer(adder, 4090) is AddResult.OTHER
    assert (adder.chunked_req, adder.rem_chunk_tokens) == (None, 0)


def test_without_chunking_the_first_request_may_exceed_the_input_budget() -> None:
    adder = adder_of(chunk=-1)
    assert offer(adder, 20_000) is AddResult.OTHER
    assert (len(adder.admitted), adder.rem_input_tokens) == (1, -3616)


@pytest.mark.parametrize(("second", "admitted"), [(6384, 1), (6383, 2)])
def test_without_chunking_a_second_request_must_fit_the_input_budget(second: int, admitted: int) -> None:
    adder = adder_of(chunk=-1)
    offer(adder, 10_000)
    assert adder.rem_input_tokens == 6384
    offer(adder, second)
    assert len(adder.admitted) == admitted


def test_with_chunking_the_input_budget_only_stops() -> None:
    adder = adder_of(chunk=8192, max_prefill_tokens=4096)
    assert offer(adder, 12_000) is AddResult.OTHER
    assert (admitted_lengths(adder), adder.rem_input_tokens) == ([8192], -4096)
    three = adder_of(chunk=8192, max_prefill_tokens=4096)
    assert offer(three, 3000) is AddResult.CONTINUE
    assert offer(three, 3000) is AddResult.OTHER
    assert three.rem_input_tokens == -1904


@pytest.mark.parametrize(("page", "left"), [(1, -1), (64, -88)])
def test_a_continuation_cut_by_memory_stops_the_round_by_the_total_budget(page: int, left: int) -> None:
    adder = adder_of(pool=1024, page=page, running=1, max_new=24, ratio=1.0)
    request = half_done(12_000, 4096)
    assert adder.add_chunked(request)
    assert request.extend_end == 4096 + 1000
    assert adder.rem_chunk_tokens == 4096 - (1000 if page == 1 else 1024)
    assert adder.rem_total_tokens == left
    assert offer(adder, 1) is AddResult.NO_TOKEN


@pytest.mark.parametrize(("left", "charged"), [(63, 64 + 64), (65, 128 + 64)])
def test_a_continuation_ends_between_pages_and_is_charged_whole_ones(left: int, charged: int) -> None:
    adder = adder_of(pool=1024, page=64, running=1, max_new=1024 - left, ratio=1.0)
    request = half_done(12_000, 4096)
    assert adder.add_chunked(request)
    assert request.extend_end == 4096 + left
    assert adder.rem_total_tokens == left - charged


@pytest.mark.parametrize(("ratio", "tokens"), [(0.981, 1), (0.993, 100)])
def test_a_total_budget_counts_whole_tokens(ratio: float, tokens: int) -> None:
    # 100 free less 100 * ratio: 1.9 gives one token, 0.7 gives none and falls back to what is free.
    adder = adder_of(pool=100, running=1, max_new=100, ratio=ratio)
    request = half_done(500, 100)
    assert adder.add_chunked(request)
    assert request.extend_end - 100 == tokens


def test_a_continuation_without_budget_is_capped_by_what_the_pool_can_give() -> None:
    # SGLang takes the whole chunk budget here and runs out of memory; this engine takes what there is.
    adder = adder_of(pool=40, chunk=4096, running=4, max_new=50, ratio=1.0)
    request = half_done(200, 103)
    assert adder.rem_total_tokens < 0
    assert adder.add_chunked(request)
    assert request.extend_end - 103 == 40


def test_a_continuation_with_nothing_left_is_parked() -> None:
    adder = adder_of(pool=40)
    adder._cache.allocator.alloc(40)
    assert not adder.add_chunked(half_done(200, 103))
    assert adder.admitted == []


@pytest.mark.parametrize(
    ("running", "page", "tokens"), [(62, 1, 2), (63, 1, 1), (64, 1, 1), (65, 1, 1), (60, 16, 16)]
)
def test_a_mixed_continuation_gets_at_least_one_page(running: int, page: int, tokens: int) -> None:
    # SGLang gives 0 tokens at 64 running and crashes at 65.
    adder = adder_of(chunk=64, page=page, running=running, mixed=running)
    request = half_done(300, 64)
    assert adder.add_chunked(request)
    assert request.extend_end - request.prefix_len == tokens


def test_decode_rows_that_use_up_the_chunk_admit_nobody() -> None:
    adder = adder_of(chunk=64, running=64, mixed=64)
    assert adder.state() is AddResult.OTHER
    assert adder.stop_reason is StopReason.CHUNK


def test_a_config_refuses_what_could_never_be_scheduled() -> None:
    with pytest.raises(ConfigError, match=r"--chunked-prefill-size 10 is no multiple of --page-size 16"):
        EngineConfig(chunked_prefill_size=10, page_size=16)
