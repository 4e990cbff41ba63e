"""For how many rows decode forwards are captured, and for how many tokens pieces of those with prompts."""

from bisect import bisect_left
from dataclasses import dataclass

__all__ = ["DEFAULT_GRAPHS", "NO_GRAPHS", "GraphLimits", "graph_sizes", "padded_size", "token_sizes"]

# SGLang's sizes: the smallest, then steps that grow with the batch.
SMALLEST = (1, 2, 4, 8, 12)
STEPS = ((16, 256, 8), (272, 512, 16), (544, 1 << 20, 32))  # from, to (inclusive), step

# Few, since each is a graph a layer. While a forward takes as long as reading its weights, filling it up to
# twice as many tokens is free; from about 256 tokens on padding is paid for.
FEWEST_TOKENS = (16, 32, 64, 128, 192)
TOKEN_STEPS = ((256, 1024, 64), (1280, 1 << 20, 256))


@dataclass(frozen=True, slots=True)
class GraphLimits:
    """The largest forwards that are replayed from graphs, 0 for none.

    By default decode batches as SGLang replays them on a card of 60 to 160 GiB; larger ones gain little.
    Prompts are replayed where launching their kernels may take longer than running them. That is likely as
    long as a forward takes what reading its weights takes, which in bfloat16 ends at peak FLOP/s / bandwidth
    tokens, 150 to 300 on cards from A100 to B200; with small layers it goes on for longer.
    """

    max_bs: int = 256  # rows of a decode forward
    max_tokens: int = 512  # of a forward with prompts, decode rows in it included


DEFAULT_GRAPHS = GraphLimits()
NO_GRAPHS = GraphLimits(0, 0)


def graph_sizes(max_rows: int) -> list[int]:
    """Ascending sizes up to `max_rows`, which is one of them; none if it is 0."""
    return _ladder(SMALLEST, STEPS, max_rows)


def token_sizes(max_tokens: int) -> list[int]:
    """Ascending numbers of tokens up to `max_tokens`, which is one of them; none if it is 0."""
    return _ladder(FEWEST_TOKENS, TOKEN_STEPS, max_tokens)


def padded_size(rows: int, sizes: list[int]) -> int | None:
    """The smallest of ascending `sizes` that holds `rows`; None if none does."""
    at = bisect_left(sizes, rows)
    return sizes[at] if at < len(sizes) else None


def _ladder(smallest: tuple[int, ...], steps: tuple[tuple[int, int, int], ...], most: int) -> list[int]:
    sizes = [size for size in smallest if size < most]
    for first, last, step in steps:
        sizes += range(first, min(last + 1, most), step)
    return [*sizes, most] if most else []
