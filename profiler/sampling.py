"""Which rows of many to draw, so that a picture of a million forwards stays small."""

from collections.abc import Sequence

import numpy as np
import polars as pl

__all__ = ["evenly"]


def evenly(rows: pl.DataFrame, by: Sequence[str], limit: int) -> pl.DataFrame:
    """All rows, or `limit` of them at equal steps of rank in the order of `by`, first and last included."""
    ordered = rows.sort(by)
    if ordered.height <= limit:
        return ordered
    steps = np.linspace(0, ordered.height - 1, limit).round().astype(np.int64)
    return ordered.select(pl.all().gather(steps))
