"""What a run lost of its KV pool: pages of the tree that were evicted, and requests that gave theirs back."""

from dataclasses import dataclass

import polars as pl

from profiler.tables import TraceLike, frame

__all__ = ["PoolLosses", "pool_losses"]


@dataclass(frozen=True, slots=True)
class PoolLosses:
    """Sums over the forwards; None where the trace does not tell one of them."""

    evicted_pages: int | None
    retracted_reqs: int | None


def pool_losses(trace: TraceLike) -> PoolLosses:
    """Of a trace; a trace without forwards tells nothing."""
    names = ("evicted_pages", "retracted_reqs")
    sums = frame(trace, "forwards").select(
        pl.when(pl.col(name).is_null().any() | (pl.len() == 0))
        .then(None)
        .otherwise(pl.col(name).sum())
        .alias(name)
        for name in names
    )
    return PoolLosses(*(None if value is None else int(value) for value in sums.row(0)))
