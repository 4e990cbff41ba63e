"""The tree: sizes, splits, locks and the order of eviction."""

from array import array
from itertools import count

import pytest

from engine.cache.radix import Node, RadixTree


def _tokens(values: object) -> "array[int]":
    return array("i", values)  # type: ignore[arg-type]


class Tree:
    """A tree fed with fresh page numbers."""

    def __init__(self, page_size: int) -> None:
        self.tree = RadixTree(page_size)
        self.size = page_size
        self._pages = count(1)

    def insert(self, values: list[int]) -> int:
        pages = _tokens([next(self._pages) for _ in range(-(-len(values) // self.size))])
        return self.tree.insert(_tokens(values), pages)

    def match(self, values: list[int]) -> tuple[int, Node]:
        pages, node = self.tree.match(_tokens(values))
        return len(pages) * self.size, node

    def evict(self, tokens: int) -> int:
        return len(self.tree.evict(tokens)) * self.size

    @property
    def sizes(self) -> tuple[int, int]:
        return self.tree.evictable_tokens, self.tree.protected_tokens


@pytest.mark.parametrize("page_size", [1, 2])
def test_a_shared_beginning_is_kept_once(page_size: int) -> None:
    t = Tree(page_size)
    assert t.insert([1, 2, 3, 4, 5, 6, 7, 8]) == 0
    assert t.insert([1, 2, 9, 10]) == 2
    assert t.sizes == (10, 0)
    assert t.match([1, 2, 3, 4, 999])[0] == 4
    assert t.sizes == (10, 0)


def test_matches_and_inserts_end_on_a_page() -> None:
    t = Tree(4)
    t.insert([1, 2, 3, 4, 5, 6])
    assert t.sizes == (4, 0)
    assert t.match([1, 2, 3, 4, 5, 6])[0] == 4
    assert t.match([1, 2, 3])[0] == 0


def test_a_lock_moves_tokens_from_evictable_to_protected() -> None:
    t = Tree(1)
    t.insert([1, 2, 3])
    _, node = t.match([1, 2, 3])
    t.tree.lock(node)
    assert t.sizes == (0, 3)
    assert t.evict(100) == 0
    t.tree.unlock(node)
    assert t.sizes == (3, 0)


@pytest.mark.parametrize("page_size", [1, 4])
def test_leaves_go_oldest_first_and_whole_then_their_parent(page_size: int) -> None:
    t = Tree(page_size)
    shared = [1] * 16
    for family, length in ((2, 8), (3, 12), (4, 4)):
        t.insert(shared + [family] * length)
    assert t.evict(1) == 8
    assert t.evict(9) == 12
    assert t.evict(12) == 20
    assert t.sizes == (0, 0)


@pytest.mark.parametrize("page_size", [1, 4])
def test_a_locked_leaf_keeps_its_parent(page_size: int) -> None:
    t = Tree(page_size)
    shared = [1] * 16
    for family, length in ((2, 8), (3, 12), (4, 4)):
        t.insert(shared + [family] * length)
    _, leaf = t.match(shared + [2] * 8)
    t.tree.lock(leaf)
    assert t.evict(1000) == 16
    assert t.sizes == (0, 24)
    t.tree.unlock(leaf)
    assert t.evict(9) == 24


def test_a_match_makes_a_leaf_the_youngest() -> None:
    t = Tree(1)
    for family, length in ((2, 8), (3, 12)):
        t.insert([1] * 16 + [family] * length)
    t.match([1] * 16 + [2] * 8)
    assert t.evict(1) == 12


def test_splitting_a_locked_node_protects_both_halves() -> None:
    t = Tree(1)
    t.insert([1, 2, 3])
    _, old = t.match([1, 2, 3])
    t.tree.lock(old)
    matched, upper = t.match([1, 2, 77])
    assert (matched, t.sizes) == (2, (0, 3))
    t.tree.lock(upper)
    t.tree.unlock(old)
    assert t.sizes == (1, 2)
    t.tree.unlock(upper)
    assert t.sizes == (3, 0)


def test_a_split_by_page_keeps_the_size() -> None:
    t = Tree(4)
    t.insert(list(range(12)))
    assert t.match([0, 1, 2, 3, 4, 5])[0] == 4
    assert t.sizes == (12, 0)
