"""`KVCache`: pages, rows and tree together, as the scheduler uses them. It moves integers, never tensors."""

from array import array
from collections.abc import Sequence

import numpy as np

from engine.cache.allocator import PageAllocator, ceil_page, floor_page
from engine.cache.page_log import PageLog
from engine.cache.radix import RadixTree
from engine.observer import Owner, PoolState
from engine.request import Request

__all__ = ["KVCache"]


class KVCache:
    """Who holds which KV pages: free, a request's row, or the tree.

    A row lists a request's pages in order of position. Its first `protected_len` tokens lie in the tree,
    locked by the request; the pages after them are private. With the radix cache off nothing enters it.
    """

    def __init__(
        self, max_total_tokens: int, page_size: int, max_rows: int, *, disable_radix_cache: bool = False
    ) -> None:
        self.page_size = page_size
        self.log = PageLog()
        self.allocator = PageAllocator(max_total_tokens // page_size, page_size)
        self.tree = RadixTree(page_size, self.log)
        self.radix = not disable_radix_cache
        self.rows: list[array[int]] = [array("i") for _ in range(max_rows)]
        self.evicted_pages = 0  # since `take_evicted`
        self.private_pages = 0
        self._free_rows = list(range(max_rows))

    @property
    def available_tokens(self) -> int:
        """Tokens in free pages."""
        return self.allocator.available_tokens

    @property
    def obtainable_tokens(self) -> int:
        """Tokens in free pages and in pages that could be evicted now."""
        return self.allocator.available_tokens + self.tree.evictable_tokens

    @property
    def free_rows(self) -> int:
        """Request rows nobody holds."""
        return len(self._free_rows)

    def pool_state(self) -> PoolState:
        """Whole pages by kind; private pages are counted on their own, so the sum is a check."""
        return PoolState(
            total=self.allocator.num_pages,
            free=self.allocator.free_pages,
            evictable=self.tree.evictable_tokens // self.page_size,
            protected=self.tree.protected_tokens // self.page_size,
            private=self.private_pages,
        )

    def take_evicted(self) -> int:
        """Pages evicted since the last call."""
        evicted, self.evicted_pages = self.evicted_pages, 0
        return evicted

    def match(self, request: Request) -> None:
        """Point the cursor behind the longest cached prefix, at most one token short of the whole."""
        request.matched_pages = array("i")
        request.node = None
        if self.radix:
            request.matched_pages, request.node = self.tree.match(request.tokens[:-1])
        request.prefix_len = len(request.matched_pages) * self.page_size

    def attach(self, request: Request) -> None:
        """Give an admitted request a row that starts with its matched pages; they must be locked already."""
        request.row = self._free_rows.pop()
        self.rows[request.row] = request.matched_pages
        request.matched_pages = array("i")
        request.kv_len = request.protected_len = request.prefix_len

    def grow(self, requests: Sequence[Request], seq_lens: Sequence[int]) -> None:
        """Give each row pages up to its sequence length; there must be enough obtainable ones.

        With pages of more than one token a spare page a row is asked of the tree first, as SGLang does.
        """
        news = [self._new_pages(r, n) for r, n in zip(requests, seq_lens, strict=True)]
        spare = len(requests) if self.page_size > 1 else 0
        tokens = sum(n - r.kv_len for r, n in zip(requests, seq_lens, strict=True))
        self.make_room(tokens + spare * self.page_size)
        self._hand_out(requests, seq_lens, news)

    def grow_decode(self, requests: Sequence[Request]) -> None:
        """Give each row room for one more token; the tree is asked for a whole page a row, as in SGLang."""
        seq_lens = [r.kv_len + 1 for r in requests]
        news = [self._new_pages(r, n) for r, n in zip(requests, seq_lens, strict=True)]
        self.make_room(len(requests) * self.page_size)
        self._hand_out(requests, seq_lens, news)

    def decode_need_tokens(self, requests: Sequence[Request]) -> int:
        """Tokens of the pages that one more token for each request opens."""
        return sum(r.kv_len % self.page_size == 0 for r in requests) * self.page_size

    def make_room(self, tokens: int) -> bool:
        """Evict until `tokens` are free, by the shortfall only; whether they are."""
        short = tokens - self.allocator.available_tokens
        if short > 0 and self.tree.evictable_tokens:
            pages = self.tree.evict(short)
            self.evicted_pages += len(pages)
            self.allocator.free(pages)
        return self.allocator.available_tokens >= tokens

    def checkpoint(self, request: Request, up_to: int) -> None:
        """Hand the whole pages of the first `up_to` tokens to the tree; the tail stays in the row.

        Pages that the tree already had are freed and the row points to the tree's instead; the request's lock
        moves to the new last node.
        """
        if not self.radix:
            return
        row = self._row(request)
        aligned = floor_page(up_to, self.page_size)
        tokens = request.tokens[:aligned]
        known = self.tree.insert(tokens, row[: aligned // self.page_size])
        if aligned > request.prompt_len:
            self.tree.match(tokens[: request.prompt_len])  # a node ends here: output goes before prompt
        first, last = request.protected_len // self.page_size, aligned // self.page_size
        self._free(row[first : known // self.page_size])
        pages, node = self.tree.match(tokens)
        row[first:last] = pages[first:last]
        self.tree.lock(node)
        if request.node is not None:
            self.tree.unlock(request.node)
        request.node = node
        self.private_pages -= last - first
        request.protected_len = aligned

    def release(self, request: Request, *, keep: bool) -> None:
        """End a request's hold on the pool; `keep` leaves its whole pages in the tree for others.

        A forward in flight may still write the freed pages. They can be handed out at once all the same, as
        forwards run in the order of their launches: whoever gets them writes later.
        """
        if keep:  # a forward in flight may have taken the last token, which no sequence goes on from
            self.checkpoint(request, min(request.kv_len, len(request.tokens) - 1))
        row = self._row(request)
        private = row[request.protected_len // self.page_size :]
        self._free(private)
        self.private_pages -= len(private)
        if request.node is not None:
            self.tree.unlock(request.node)
        assert request.row is not None
        self._free_rows.append(request.row)
        request.row = request.node = None
        request.kv_len = request.protected_len = 0

    def row_pages(self, request: Request) -> "array[int]":
        """The request's pages in order of position; the row itself, so copy before keeping."""
        return self._row(request)

    def _row(self, request: Request) -> "array[int]":
        assert request.row is not None, "the request holds no row"
        return self.rows[request.row]

    def _new_pages(self, request: Request, seq_len: int) -> int:
        return (
            ceil_page(seq_len, self.page_size) - ceil_page(request.kv_len, self.page_size)
        ) // self.page_size

    def _hand_out(self, requests: Sequence[Request], seq_lens: Sequence[int], news: list[int]) -> None:
        pages = self.allocator.alloc(sum(news))
        assert pages is not None, "planned beyond what the pool can give"
        self.private_pages += len(pages)
        at = 0
        for request, seq_len, count in zip(requests, seq_lens, news, strict=True):
            if count:
                self._row(request).extend(pages[at : at + count])
                at += count
            request.kv_len = seq_len
        if self.log.enabled:
            rids = np.array([request.rid for request in requests], dtype=np.int32)
            self.log.add(pages, Owner.ROW, rids=np.repeat(rids, news))

    def _free(self, pages: "array[int]") -> None:
        self.allocator.free(pages)
        self.log.add(pages, Owner.FREE)
