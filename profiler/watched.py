"""Which forwards torch.profiler watched: they took longer than they would have, and say nothing of others."""

import polars as pl

from profiler.tables import TraceLike, frame

__all__ = ["slowed", "watched_ids"]


def watched_ids(trace: TraceLike) -> pl.Series:
    """Ids of the forwards that have rows in `kernels`, ascending."""
    return frame(trace, "kernels")["forward_id"].drop_nulls().unique().sort()


def slowed(trace: TraceLike, forwards: pl.DataFrame) -> pl.Series:
    """(forwards,) whether watching made each of `forwards` slower than others: leave it out of fits.

    Where all of them were watched they are alike, and none is left out.
    """
    watched = forwards["forward_id"].is_in(watched_ids(trace).implode()).fill_null(False)
    return watched & (not watched.all())
