"""What must hold of a KV pool at any time, recomputed from its parts."""

from collections import Counter
from collections.abc import Iterable

from engine.cache import KVCache
from engine.request import Request


def owners(cache: KVCache, live: Iterable[Request]) -> Counter[int]:
    """How many owners each page has: the free list, the tree, and rows beyond what lies in the tree."""
    counts: Counter[int] = Counter(cache.allocator.snapshot())
    for node in cache.tree.nodes():
        counts.update(node.pages)
    for request in live:
        if request.row is not None:
            counts.update(cache.row_pages(request)[request.protected_len // cache.page_size :])
    return counts


def check_pool(cache: KVCache, live: Iterable[Request]) -> None:
    """Every page has one owner, sizes equal what they count, locks are those of the live requests."""
    live = list(live)
    counts = owners(cache, live)
    assert set(counts) == set(range(1, cache.allocator.num_pages + 1)), (
        "a page leaked, or a wrong page number"
    )
    assert max(counts.values()) == 1, "a page has two owners"
    state = cache.pool_state()
    assert state.free + state.evictable + state.protected + state.private == state.total
    nodes = list(cache.tree.nodes())
    locked = [n for n in nodes if n.lock_ref > 0]
    assert all(n.lock_ref >= 0 for n in nodes)
    assert state.protected * cache.page_size == sum(len(n.key) for n in locked)
    assert state.evictable * cache.page_size == sum(len(n.key) for n in nodes if n.lock_ref == 0)
    want: Counter[int] = Counter()
    for request in live:
        node = request.node if request.row is not None else None
        while node is not None and node.parent is not None:
            want[node.node_id] += 1
            node = node.parent
    assert {n.node_id: n.lock_ref for n in locked} == dict(want)
    for node in nodes:
        assert len(node.key) == len(node.pages) * cache.page_size > 0
        assert node.parent is cache.tree.root or node.parent.lock_ref >= node.lock_ref
    for request in live:
        if request.row is not None and cache.radix:
            shared = request.protected_len // cache.page_size
            pages, _ = _tree_pages(request)
            assert list(cache.row_pages(request)[:shared]) == pages[:shared], (
                "a row points past its tree pages"
            )


def _tree_pages(request: Request) -> tuple[list[int], int]:
    pages: list[int] = []
    node = request.node
    while node is not None and node.parent is not None:
        pages = list(node.pages) + pages
        node = node.parent
    return pages, len(pages)


def check_idle(cache: KVCache) -> None:
    """With no live request every page is free or evictable, and every row is back."""
    check_pool(cache, [])
    state = cache.pool_state()
    assert state.free + state.evictable == state.total
    assert cache.free_rows == len(cache.rows)
