"""What must hold of a KV pool at any time, recomputed from its parts."""

from collections import Counter
from collections.abc import Sequence

from engine.cache import KVCache
from engine.cache.radix import Node
from engine.request import Request
from profiler.invariants.live.broken import NOWHERE, Place, hold

__all__ = ["hold_pool"]


def hold_pool(cache: KVCache, live: Sequence[Request], place: Place = NOWHERE) -> None:
    """Every page has one owner, sizes equal what they count, locks are those of the live requests.

    `live` are the requests that have not ended. Raises InvariantError; `place` is only told in it.
    """
    holders = [request for request in live if request.row is not None]
    nodes = list(cache.tree.nodes())
    _hold_owners(cache, holders, nodes, place)
    _hold_counts(cache, holders, nodes, place)
    _hold_locks(holders, nodes, place)
    rows, free = len(cache.rows), cache.free_rows
    hold("rows_counted", free + len(holders) == rows, place, rows=rows, free=free, held=len(holders))
    for node in nodes:
        hold(
            "nodes_in_whole_pages",
            len(node.key) == len(node.pages) * cache.page_size > 0,
            place,
            node=node.node_id,
            tokens=len(node.key),
            pages=len(node.pages),
        )
    if cache.radix:
        for request in holders:
            _hold_prefix(cache, request, place)


def _hold_owners(cache: KVCache, holders: Sequence[Request], nodes: Sequence[Node], place: Place) -> None:
    """The free list, the tree, and rows beyond what lies in the tree."""
    owners: dict[int, list[str]] = {page: [] for page in range(1, cache.allocator.num_pages + 1)}
    told = [(page, "free") for page in cache.allocator.snapshot()]
    told += [(page, f"node {node.node_id}") for node in nodes for page in node.pages]
    for request in holders:
        own = cache.row_pages(request)[request.protected_len // cache.page_size :]
        told += [(page, f"row of {request.name}") for page in own]
    for page, owner in told:
        hold("one_owner_per_page", page in owners, place, page=page, owner=owner)
        owners[page].append(owner)
    for page, names in owners.items():
        hold("no_page_lost", len(names) > 0, place, page=page)
        hold(
            "one_owner_per_page",
            len(names) == 1,
            place,
            page=page,
            owners=" and ".join(names),
        )


def _hold_counts(cache: KVCache, holders: Sequence[Request], nodes: Sequence[Node], place: Place) -> None:
    pool, size = cache.pool_state(), cache.page_size
    private = sum(len(cache.row_pages(r)) - r.protected_len // size for r in holders)
    counted = {
        "free": len(cache.allocator.snapshot()),
        "evictable": sum(len(node.pages) for node in nodes if node.lock_ref == 0),
        "protected": sum(len(node.pages) for node in nodes if node.lock_ref > 0),
        "private": private,
    }
    for kind, pages in counted.items():
        told = getattr(pool, kind)
        hold("pool_counted", told == pages, place, kind=kind, told=told, counted=pages)
    parts = pool.free + pool.evictable + pool.protected + pool.private
    hold("pool_conservation", parts == pool.total, place, parts=parts, total=pool.total)


def _hold_locks(holders: Sequence[Request], nodes: Sequence[Node], place: Place) -> None:
    """A node is locked as often as live requests need it or a node below it."""
    wanted: Counter[int] = Counter()
    for request in holders:
        wanted.update(node.node_id for node in _path(request))
    for node in nodes:
        hold(
            "locks_counted",
            node.lock_ref == wanted[node.node_id],
            place,
            node=node.node_id,
            locks=node.lock_ref,
            requests=wanted[node.node_id],
        )


def _hold_prefix(cache: KVCache, request: Request, place: Place) -> None:
    """What of a row lies in the tree are the tree's very pages."""
    shared = request.protected_len // cache.page_size
    of_tree = [page for node in reversed(_path(request)) for page in node.pages]
    hold(
        "row_follows_tree",
        list(cache.row_pages(request)[:shared]) == of_tree[:shared],
        Place(place.forward_id, request.name, request.attempt),
        shared_pages=shared,
        tree_pages=len(of_tree),
    )


def _path(request: Request) -> list[Node]:
    """The node that a request locks and all above it but the root, deepest first."""
    path, node = [], request.node
    while node is not None and node.parent is not None:
        path.append(node)
        node = node.parent
    return path
