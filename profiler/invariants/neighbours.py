"""Which forward a rank planned before and after another, and what that one had of the same request."""

import polars as pl

from profiler.invariants.expressions import FORWARD, is_middle
from profiler.invariants.rule import Tables

__all__ = ["middle_beside", "neighbours"]


def neighbours(tables: Tables) -> pl.DataFrame:
    """Of each forward the ids before and after it on its rank, and whether these pairs overlap.

    Two neighbours overlap if the later one was planned before the result of the earlier one.
    """
    return tables.forwards.select(
        *FORWARD,
        previous_id=pl.col("forward_id").shift(1).over("rank"),
        overlapped="overlapped",
        next_id=pl.col("forward_id").shift(-1).over("rank"),
        next_overlapped=pl.col("overlapped").shift(-1).over("rank").fill_null(False),
    )


def middle_beside(rows: pl.DataFrame, tables: Tables, beside: str, keys: tuple[str, ...]) -> pl.DataFrame:
    """Rows with `middle_beside`: whether the forward that their column `beside` names has a middle chunk of
    their request.

    `keys` say which rows are of the same request: those of all its attempts, or of one.
    """
    middle = tables.rows.filter(is_middle).select(
        *keys, pl.col("forward_id").alias(beside), middle_beside=True
    )
    found = rows.join(middle, on=(*keys, beside), how="left", maintain_order="left")
    return found.with_columns(pl.col("middle_beside").fill_null(False))
