"""Pages of the KV pool: which are free, and in which order they are handed out again."""

from array import array
from collections import deque

__all__ = ["PageAllocator", "ceil_page", "floor_page"]


def ceil_page(tokens: int, page_size: int) -> int:
    """`tokens` rounded up to whole pages, in tokens."""
    return -(-tokens // page_size) * page_size


def floor_page(tokens: int, page_size: int) -> int:
    """`tokens` rounded down to whole pages, in tokens."""
    return tokens // page_size * page_size


class PageAllocator:
    """Hands out pages 1..num_pages of `page_size` tokens; page 0 is padding and never handed out.

    Order of reuse is SGLang's: with one-token pages freed pages queue up at the back (first in, first out),
    with larger pages they go to the front (last in, first out).
    """

    def __init__(self, num_pages: int, page_size: int) -> None:
        self.num_pages = num_pages
        self.page_size = page_size
        self._free = deque(range(1, num_pages + 1))

    @property
    def free_pages(self) -> int:
        """Pages that can be handed out now."""
        return len(self._free)

    @property
    def available_tokens(self) -> int:
        """Tokens that the free pages hold."""
        return len(self._free) * self.page_size

    def alloc(self, count: int) -> "array[int] | None":
        """`count` pages in the order they are handed out, or None (and no change) when too few are free."""
        if count > len(self._free):
            return None
        pop = self._free.popleft
        return array("i", [pop() for _ in range(count)])

    def free(self, pages: "array[int]") -> None:
        """Take pages back; each must have been handed out and not returned since."""
        if self.page_size == 1:
            self._free.extend(pages)
        else:
            self._free.extendleft(reversed(pages))

    def snapshot(self) -> list[int]:
        """The free pages in the order they would be handed out."""
        return list(self._free)
