"""What must hold of a KV pool at any time, and once no request is left."""

from collections.abc import Iterable

from engine.cache import KVCache
from engine.request import Request
from profiler.invariants.live import hold_pool


def check_pool(cache: KVCache, live: Iterable[Request]) -> None:
    """Every page has one owner, sizes equal what they count, locks are those of the live requests."""
    hold_pool(cache, list(live))


def check_idle(cache: KVCache) -> None:
    """With no live request every page is free or evictable, and every row is back."""
    check_pool(cache, [])
    state = cache.pool_state()
    assert state.free + state.evictable == state.total
    assert cache.free_rows == len(cache.rows)
