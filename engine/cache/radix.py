"""The radix tree: token prefixes whose KV is kept, shared by page, locked while in use, evicted by age."""

import heapq
import itertools
from array import array
from collections.abc import Iterator

import numpy as np

from engine.cache.page_log import PageLog
from engine.observer import Owner

__all__ = ["Node", "RadixTree"]


class Node:
    """A run of whole pages below its parent; `lock_ref` counts the requests that need it or a descendant."""

    __slots__ = ("children", "key", "last_access", "lock_ref", "node_id", "pages", "parent")

    def __init__(self, node_id: int, parent: "Node | None", key: "array[int]", pages: "array[int]") -> None:
        self.node_id = node_id
        self.parent = parent
        self.key = key  # tokens
        self.pages = pages  # one per page of key
        self.children: dict[bytes, Node] = {}  # by the first page of their tokens
        self.lock_ref = 0
        self.last_access = 0


class RadixTree:
    """Prefixes in whole pages. Sizes are in tokens; matching may split nodes but never changes a size."""

    def __init__(self, page_size: int, log: PageLog | None = None) -> None:
        self.page_size = page_size
        self.evictable_tokens = 0
        self.protected_tokens = 0
        self.root = Node(0, None, array("i"), array("i"))
        self.root.lock_ref = 1  # never evicted
        self._log = log or PageLog()
        self._ids = itertools.count(1)
        self._ticks = itertools.count(1)

    def match(self, tokens: "array[int]") -> "tuple[array[int], Node]":
        """Pages of the longest cached prefix of `tokens`, and the node where it ends.

        A match that ends inside a node splits it, on a page. Every node on the way counts as used now.
        """
        tick = next(self._ticks)
        node, pages = self.root, array("i")
        for child, matched in self._walk(tokens):
            child.last_access = tick
            node = child if matched == len(child.key) else self._split(child, matched)
            node.last_access = tick
            pages.extend(node.pages)
        node.last_access = tick
        return pages, node

    def insert(self, tokens: "array[int]", pages: "array[int]") -> int:
        """Keep the whole pages of `tokens`; returns how many tokens were there already.

        `pages[k]` holds tokens k*page_size onward. Only pages beyond the returned length become the tree's.
        """
        size = len(tokens) // self.page_size * self.page_size
        tokens = tokens[:size]
        tick = next(self._ticks)
        node, done = self.root, 0
        for child, matched in self._walk(tokens):
            child.last_access = tick
            node = child if matched == len(child.key) else self._split(child, matched)
            node.last_access = tick
            done += matched
        if done < size:
            leaf = Node(
                next(self._ids), node, tokens[done:], pages[done // self.page_size : size // self.page_size]
            )
            leaf.last_access = tick
            node.children[self._first_page(leaf.key)] = leaf
            self.evictable_tokens += size - done
            self._log.add(leaf.pages, Owner.TREE, node=leaf.node_id)
        return done

    def lock(self, node: Node) -> None:
        """Protect `node` and everything above it from eviction."""
        for above in self._path(node):
            if above.lock_ref == 0:
                self.evictable_tokens -= len(above.key)
                self.protected_tokens += len(above.key)
                self._log.add(above.pages, Owner.TREE, node=above.node_id, locked=True)
            above.lock_ref += 1

    def unlock(self, node: Node) -> None:
        """Take one lock back from `node` and everything above it."""
        for above in self._path(node):
            above.lock_ref -= 1
            if above.lock_ref == 0:
                self.evictable_tokens += len(above.key)
                self.protected_tokens -= len(above.key)
                self._log.add(above.pages, Owner.TREE, node=above.node_id)

    def evict(self, tokens: int) -> "array[int]":
        """Drop least recently used leaves, whole, until `tokens` are freed; returns their pages."""
        freed = array("i")
        leaves = [(node.last_access, node.node_id, node) for node in self.nodes() if self._is_free_leaf(node)]
        heapq.heapify(leaves)
        while leaves and len(freed) * self.page_size < tokens:
            _, _, node = heapq.heappop(leaves)
            freed.extend(node.pages)
            self.evictable_tokens -= len(node.key)
            parent = node.parent
            assert parent is not None
            del parent.children[self._first_page(node.key)]
            if self._is_free_leaf(parent):
                heapq.heappush(leaves, (parent.last_access, parent.node_id, parent))
        self._log.add(freed, Owner.FREE)
        return freed

    def nodes(self) -> Iterator[Node]:
        """Every node but the root."""
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def _walk(self, tokens: "array[int]") -> Iterator[tuple[Node, int]]:
        """Nodes along `tokens` with the tokens matched in each; only the last may match in part."""
        node, at = self.root, 0
        while len(tokens) - at >= self.page_size:
            child = node.children.get(self._first_page(tokens, at))
            if child is None:
                return
            matched = self._common(child.key, tokens, at)
            whole = matched == len(child.key)
            yield child, matched
            if not whole:
                return
            node, at = child, at + matched

    def _common(self, key: "array[int]", tokens: "array[int]", at: int) -> int:
        """Tokens in whole pages that `key` shares with `tokens[at:]`."""
        size = min(len(key), len(tokens) - at)
        mine = np.frombuffer(key, dtype=np.int32, count=size)
        theirs = np.frombuffer(tokens, dtype=np.int32, count=size, offset=at * tokens.itemsize)
        differs = mine != theirs
        first = int(differs.argmax()) if differs.any() else size
        return first // self.page_size * self.page_size

    def _split(self, node: Node, tokens: int) -> Node:
        """Cut `node` after `tokens`; the new upper part takes its place and shares its lock count."""
        parent, cut = node.parent, tokens // self.page_size
        assert parent is not None
        upper = Node(next(self._ids), parent, node.key[:tokens], node.pages[:cut])
        upper.lock_ref = node.lock_ref
        upper.last_access = node.last_access
        parent.children[self._first_page(upper.key)] = upper
        node.key, node.pages, node.parent = node.key[tokens:], node.pages[cut:], upper
        upper.children[self._first_page(node.key)] = node
        self._log.add(upper.pages, Owner.TREE, node=upper.node_id, locked=upper.lock_ref > 0)
        return upper

    def _first_page(self, tokens: "array[int]", at: int = 0) -> bytes:
        return tokens[at : at + self.page_size].tobytes()

    def _path(self, node: Node) -> Iterator[Node]:
        """`node` and all above it, without the root."""
        while node.parent is not None:
            yield node
            node = node.parent

    @staticmethod
    def _is_free_leaf(node: Node) -> bool:
        return not node.children and node.lock_ref == 0
