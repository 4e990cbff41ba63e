"""Which forwards torch.profiler watched: they took longer than they would have, and say nothing of others."""

import polars as pl

from profiler.tables import TraceLike, frame

__all__ = ["unwatched", "watched_ids"]


def watched_ids(trace: TraceLike) -> pl.Series:
    """Ids of the forwards that have rows in `kernels`, ascending."""
    return frame(trace, "kernels")["forward_id"].drop_nulls().unique().sort()


def unwatched(trace: TraceLike, forwards: pl.DataFrame) -> pl.DataFrame:
    """Those of `forwards` that may be compared and fitted: the ones that were not watched.

    Where all of them were, they are alike and all are kept.
    """
    rest = forwards.filter(~pl.col("forward_id").is_in(watched_ids(trace).implode()).fill_null(False))
    return forwards if rest.is_empty() else rest
