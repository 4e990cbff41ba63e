"""For how many rows decode graphs are captured."""

from bisect import bisect_left

__all__ = ["graph_sizes", "padded_size"]

# SGLang's sizes: the smallest, then steps that grow with the batch.
SMALLEST = (1, 2, 4, 8, 12)
STEPS = ((16, 256, 8), (272, 512, 16), (544, 1 << 20, 32))  # from, to (inclusive), step


def graph_sizes(max_rows: int) -> list[int]:
    """Ascending sizes up to `max_rows`, which is one of them; none if it is 0."""
    sizes = [size for size in SMALLEST if size < max_rows]
    for first, last, step in STEPS:
        sizes += range(first, min(last + 1, max_rows), step)
    return [*sizes, max_rows] if max_rows else []


def padded_size(rows: int, sizes: list[int]) -> int | None:
    """The smallest of ascending `sizes` that holds `rows`; None if none does."""
    at = bisect_left(sizes, rows)
    return sizes[at] if at < len(sizes) else None
