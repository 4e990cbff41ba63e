"""Pages: counts, order of reuse, and the slots they make."""

from array import array

import pytest

from engine.cache import KVCache
from engine.cache.allocator import PageAllocator
from engine.request import Request


def test_one_token_pages_are_reused_first_in_first_out() -> None:
    allocator = PageAllocator(8, 1)
    assert list(allocator.alloc(5) or []) == [1, 2, 3, 4, 5]
    allocator.free(array("i", [2, 3]))
    assert allocator.snapshot() == [6, 7, 8, 2, 3]


def test_larger_pages_are_reused_last_in_first_out() -> None:
    allocator = PageAllocator(8, 4)
    allocator.alloc(3)
    allocator.free(array("i", [1]))
    allocator.free(array("i", [2]))
    assert allocator.snapshot() == [2, 1, 4, 5, 6, 7, 8]


def test_too_few_pages_change_nothing() -> None:
    allocator = PageAllocator(3, 16)
    assert allocator.alloc(4) is None
    assert (allocator.free_pages, allocator.available_tokens) == (3, 48)


def test_the_pool_is_floored_to_whole_pages() -> None:
    assert KVCache(35, 4, 1).available_tokens == 32


@pytest.mark.parametrize(
    ("prefix", "seq", "held", "free", "slots"),
    [
        (2, 11, [0], [3, 4], [2, 3, 12, 13, 14, 15, 16, 17, 18]),
        (4, 7, [0], [3], [12, 13, 14]),
        (2, 4, [0], [], [2, 3]),
        (4, 4, [0], [], []),
    ],
)
def test_an_extend_fills_the_open_page_first(
    prefix: int, seq: int, held: list[int], free: list[int], slots: list[int]
) -> None:
    cache = KVCache(80, 4, 1)
    request = Request(0, "r", range(seq))
    cache.attach(request)
    cache.row_pages(request).extend(held)  # page 0 stands for the row's first page, slots 0 to 3
    request.kv_len = prefix
    cache.allocator.alloc(20)
    cache.allocator.free(array("i", free))
    cache.grow([request], [seq])
    pages = cache.row_pages(request)
    assert [pages[p // 4] * 4 + p % 4 for p in range(prefix, seq)] == slots
    assert cache.allocator.free_pages == 0


@pytest.mark.parametrize(("kv_len", "pages"), [(3, 1), (4, 2), (5, 2)])
def test_a_decode_opens_a_page_only_when_the_last_is_full(kv_len: int, pages: int) -> None:
    cache = KVCache(80, 4, 1)
    request = Request(0, "r", range(kv_len + 1))
    cache.attach(request)
    cache.grow([request], [kv_len])
    assert cache.decode_need_tokens([request]) == (4 if kv_len == 4 else 0)
    cache.grow_decode([request])
    assert len(cache.row_pages(request)) == pages
